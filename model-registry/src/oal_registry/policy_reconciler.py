"""Gives the releases in force the policies of the folder, whatever MLflow says: their models stay."""

from __future__ import annotations

from collections.abc import Collection

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_schema.policy import Policy
from oal_schema.policy_folder import PolicyFolder
from oal_schema.release import Release
from oal_schema.release import key as release_key

from oal_registry import package
from oal_registry.errors import NotPackagable
from oal_registry.policy_plan import FLEET, Step, plan
from oal_registry.release_topic import SLOTS, ReleaseTopic
from oal_registry.status import Status

MARK = "; policy "  # what follows it in a release's reason says which policy it was made anew for


class PolicyReconciler:
    """Compares releases in force with the folder of what is in force; `look` reads it, `reconcile` acts.

    known: names of the policies that the platform has.
    """

    def __init__(
        self,
        releases: ReleaseTopic,
        folder: PolicyFolder,
        key: Ed25519PrivateKey,
        status: Status,
        known: Collection[str],
    ):
        self.releases, self.folder, self.key, self.status, self.known = releases, folder, key, status, known
        self._held: dict[str, Policy] = {}  # bundle hash -> its policy

    def look(self) -> bool:
        """Look at the folder; False when it was never right, and nothing should be released.

        A mistake made later changes nothing.
        """
        self._held = {r.hash: self._held.get(r.hash) or held_policy(r) for r in self.releases.every()}
        for policy in self._held.values():
            self.folder.remember(policy)
        self.folder.look()
        self.status.set("oal_registry_policies", len(self.folder.policies.every()))
        if self.folder.wrong:
            self.status.problem("policies", f"{self.folder.path} is not taken: {self.folder.wrong}")
        else:
            self.status.well("policies")
        return self.folder.usable

    def reconcile(self) -> int:
        """One pass; the number of releases made and withdrawn."""
        changes = 0
        for policy in self.releases.policies():
            if policy not in self.known:
                changes += self._withdraw_all(policy)
                continue
            for slot in SLOTS:
                for step in plan(
                    slot, self.releases.of(policy), self.folder.policies.of_policy(policy), self._policy_of
                ):
                    changes += self._take(step)
        return changes

    def _withdraw_all(self, policy: str) -> int:
        """The policy's folder is gone: its releases are taken back, and access points give it up."""
        keys = list(self.releases.of(policy))
        for slot, scope in keys:
            self.releases.withdraw(slot, scope, f"policy {policy} is none of this platform's any more", policy)
            self.status.released(slot, "policy_gone", f"{release_key(slot, scope, policy)}: withdrawn, no such policy")
        return len(keys)

    def _policy_of(self, release: Release) -> Policy:
        if release.hash not in self._held:
            self._held[release.hash] = held_policy(release)
        return self._held[release.hash]

    def _take(self, step: Step) -> int:
        """Do it; 0 when this registry's key may not sign it."""
        part = f"policy at {release_key(step.slot, step.scope, step.of_policy)}"
        try:
            self._do(step)
        except NotPackagable as error:
            self.status.problem(part, f"not released: {error}")
            return 0
        self.status.well(part)
        self.status.released(step.slot, f"policy_{step.action}", str(step))
        return 1

    def _do(self, step: Step) -> None:
        key = step.slot, step.scope
        if step.action == "withdraw":
            reason = f"variant for {step.before.name}/{step.before.version} withdrawn"
            self.releases.withdraw(*key, reason=reason, policy=step.of_policy)
        else:
            in_force = self.releases.of(step.of_policy)
            base = in_force[step.slot, FLEET] if step.action == "variant" else in_force[key]
            variant_of = base.hash if step.action == "variant" else ""
            back = package.rollback_to(in_force, key, first=[bytes.fromhex(base.hash)])
            made = package.renew(
                base.bundle(),
                target=step.scope,
                serial=self.releases.next_serial(),
                rollback_to=back,
                key=self.key,
                policy=step.policy,
            )
            reason = (
                f"{base.reason.partition(MARK)[0]}{MARK}{step.policy.name}/{step.policy.version}"
                f" {step.policy.mode_name}"
            )
            self.releases.release(
                *key,
                made,
                model=base.model,
                version=base.version,
                run_id=base.run_id,
                pinned=base.pinned,
                reason=reason,
                rollout=base.rollout,
                rank=base.rank,
                variant_of=variant_of,
                promoted_by=base.promoted_by,
            )


def held_policy(release: Release) -> Policy:
    """The policy in a release's bundle; mode off for none."""
    return release.bundle().policy or Policy()
