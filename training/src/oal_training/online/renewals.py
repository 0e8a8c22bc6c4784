"""Online trees in force that carry another policy than their AP's: what is released once more, items or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from oal_schema.policy import Policy
from oal_schema.policy_folder import PolicyFolder

from oal_training.online import shipment
from oal_training.online.ap import Ap
from oal_training.online.decision import POLICY, Decision
from oal_training.online.programs import Program
from oal_training.online.releases import LatestReleases
from oal_training.online.shipment import Shipment

GOLDEN_ROWS = 200  # latest items from which golden vectors are chosen


class Renewals:
    """Looks at every AP that has an online tree, whether it sends items or not. Cheap while nothing has changed.

    aps: those with a window; an AP without one has the site that its latest release says.
    """

    def __init__(
        self,
        releases: LatestReleases,
        folder: PolicyFolder,
        aps: Mapping[str, Ap],
        programs: Mapping[int, Program],
        signing_key,
    ):
        self._releases, self._folder, self._aps = releases, folder, aps
        self._programs, self._key = programs, signing_key
        self._settled: tuple | None = None  # what there was to look at when nothing was due

    def due(self, mine: Callable[[str], bool], now_us: int, share: object = None) -> Iterator[Shipment]:
        """Shipments that bring APs their policy of now. `mine`: is the AP this trainer's; `share`: what that depends
        on.
        """
        state = (self._releases.generation, id(self._folder.policies), share, len(self._aps))
        if state == self._settled:
            return
        found = False
        for ap_id, site in self._releases.online():
            if mine(ap_id) and (again := self._renewal(ap_id, site, now_us)):
                found = True
                yield again
        self._settled = None if found else state

    def _renewal(self, ap_id: str, released_site: str, now_us: int) -> Shipment | None:
        ap = self._aps.get(ap_id)
        site = ap.site if ap is not None and ap.site else released_site
        followed = self._releases.followed(ap_id, site)
        now = followed.in_force
        if now is None or not now.rank or now.tree is None:
            return None
        policy = self._policy(ap_id, site, now.policy)
        program = self._programs.get(now.tree.feature_hash)
        if (now.policy.name, now.policy.version) == (policy.name, policy.version) or program is None:
            return None
        again = Decision(
            ap_id, site, now_us, True, POLICY, feature_hash=now.tree.feature_hash, tree=now.tree
        )
        comparable = ap is not None and len(ap) and ap.feature_hash == now.tree.feature_hash
        recent = ap.window.values[-GOLDEN_ROWS:] if comparable else None
        return shipment.make(
            again, program, followed, recent, self._key, self._releases.run_id(ap_id), policy, now.rank
        )

    def _policy(self, ap_id: str, site: str, has: Policy) -> Policy:
        """Of an AP whose site nobody knows (released before releases said it): the file that it has a policy of, as
        long as there is that file.
        """
        policies = self._folder.policies
        if not site and f"ap/{ap_id}" not in policies.files:
            for file in policies.files.values():
                if file.policy.name == has.name and not file.applies_to.startswith("ap/"):
                    return file.policy
        return policies.of_ap(ap_id, site)
