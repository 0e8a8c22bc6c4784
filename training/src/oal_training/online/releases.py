"""What is in force: the releases of `ap.bundles.v1`, and which of them an AP follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oal_schema import bundle as oal_bundle
from oal_schema import release as oal_release
from oal_schema.bundle_law import RWND_FAIR
from oal_schema.keys import TrustedKey
from oal_schema.nodes import BundleError
from oal_schema.policy import Policy
from oal_schema.release import Release, ReleaseError

from oal_training.online.ap import InForce


@dataclass(frozen=True)
class Followed:
    """What an AP follows.

    `hashes`: of the bundle in force and of others that it may have to go back to, newest first, at most 4.

    serials: of every release for this AP; version: of its latest online tree, 0 for none.
    """

    in_force: InForce | None
    hashes: list[bytes]
    serials: list[int]
    version: int


class LatestReleases:
    """Latest release of every slot and scope that counts: a trusted key signed it that may. `generation` grows with
    each change.

    trusted: the keys of now, by id.
    """

    def __init__(self, trusted: Callable[[], dict[int, TrustedKey]], now_us: Callable[[], int]):
        self._trusted, self._now_us = trusted, now_us
        self.generation = 0
        self.refused = 0
        self._by_key: dict[str, Release] = {}
        self._versions: dict[str, int] = {}  # of online trees by AP; outlives a withdrawal
        self._trees: dict[str, InForce] = {}  # by bundle hash, those in use

    def put(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record of the topic. One that is no release, or that nobody may have signed, is counted in `refused`
        and changes nothing: it is neither compared with nor signed anew.
        """
        try:
            release = oal_release.parse(key or b"", value)
            if release.signed is not None:
                oal_release.verify(release, self._trusted(), self._now_us())
        except (ReleaseError, BundleError, UnicodeDecodeError):
            self.refused += 1
            return
        if release.policy != RWND_FAIR:
            return  # an AP has no online trees of another policy
        name = f"{release.slot}/{release.scope}"
        self.generation += 1
        if release.signed is None:
            self._by_key.pop(name, None)
            return
        self._by_key[name] = release
        if release.slot == "online":
            self._versions[release.scope] = max(release.version, self._versions.get(release.scope, 0))

    def followed(self, ap_id: str, site: str) -> Followed:
        """The champion of fleet, site or AP, or the AP's online tree: the greatest rank wins.

        A pinned champion rules out online trees; a variant stands in for the fleet's release.
        """
        own = f"ap/{ap_id}"
        champions = [r for scope in (own, f"site/{site}", "fleet") if (r := self._by_key.get(f"champion/{scope}"))]
        if any(r.variant_of for r in champions):
            champions = [r for r in champions if r.scope != "fleet"]
        pinned = any(r.pinned for r in champions)
        online = self._by_key.get(f"online/{own}")
        others = [
            r
            for slot in ("canary", "challenger")
            for scope in ("fleet", f"site/{site}", own)
            if (r := self._by_key.get(f"{slot}/{scope}"))
        ]
        rivals = sorted(champions + ([online] if online and not pinned else []), key=lambda r: r.rank, reverse=True)
        everything = rivals + others + ([online] if online else [])
        hashes = list(dict.fromkeys(bytes.fromhex(r.hash) for r in everything))[: oal_bundle.MAX_ROLLBACK]
        return Followed(
            self._tree(rivals[0], pinned) if rivals else None,
            hashes,
            [r.serial for r in everything],
            self._versions.get(own, 0),
        )

    def online(self) -> list[tuple[str, str]]:
        """(AP, its site or "") of every AP that has an online tree released."""
        return [(r.scope.removeprefix("ap/"), r.site) for r in self._by_key.values() if r.slot == "online"]

    def run_id(self, ap_id: str) -> str:
        """MLflow run of the AP's latest online tree, empty for none."""
        online = self._by_key.get(f"online/ap/{ap_id}")
        return online.run_id if online else ""

    def _tree(self, release: Release, pinned: bool) -> InForce:
        found = self._trees.get(release.hash)
        if found is None:
            try:
                held = release.bundle()
                tree, policy = held.tree, held.policy or Policy()
            except BundleError:
                self.refused += 1
                tree, policy = None, Policy()
            if len(self._trees) > 2 * len(self._by_key) + 64:
                live = {r.hash for r in self._by_key.values()}
                self._trees = {h: t for h, t in self._trees.items() if h in live}
            found = self._trees[release.hash] = InForce(
                oal_bundle.bundle_id(bytes.fromhex(release.hash)), tree, policy=policy
            )
        champion = release.slot == "champion"
        return InForce(
            found.bundle_id,
            found.tree,
            pinned,
            release.rank if champion else 0,
            found.policy,
            0 if champion else release.rank,
        )
