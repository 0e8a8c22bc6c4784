"""Gives the releases in force the policies of the folder, whatever MLflow says: their models stay."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_schema.policy import Policy
from oal_schema.policy_folder import PolicyFolder
from oal_schema.release import Release

from oal_registry import package
from oal_registry.policy_plan import FLEET, Step, plan
from oal_registry.release_topic import SLOTS, ReleaseTopic
from oal_registry.status import Status

MARK = "; policy "  # what follows it in a release's reason says which policy it was made anew for


class PolicyReleases:
    """Compares releases in force with a folder of policies; `look` reads the folder, `reconcile` acts."""

    def __init__(self, releases: ReleaseTopic, folder: PolicyFolder, key: Ed25519PrivateKey, status: Status):
        self.releases, self.folder, self.key, self.status = releases, folder, key, status
        self._held: dict[str, Policy] = {}  # bundle hash -> its policy

    def look(self) -> bool:
        """Look at the folder; False when it was never right, and nothing should be released.

        A mistake made later changes nothing.
        """
        self._held = {r.hash: self._held.get(r.hash) or held_policy(r) for r in self.releases.in_force.values()}
        for policy in self._held.values():
            self.folder.remember(policy)
        self.folder.look()
        self.status.set("oal_registry_policies", len(self.folder.policies.files))
        if self.folder.wrong:
            self.status.problem("policies", f"{self.folder.path} is not taken: {self.folder.wrong}")
        else:
            self.status.well("policies")
        return self.folder.usable

    def reconcile(self) -> int:
        """One pass; the number of releases made and withdrawn."""
        changes = 0
        for slot in SLOTS:
            for step in plan(slot, self.releases.in_force, self.folder.policies, self._policy_of):
                self._take(step)
                changes += 1
        return changes

    def _policy_of(self, release: Release) -> Policy:
        if release.hash not in self._held:
            self._held[release.hash] = held_policy(release)
        return self._held[release.hash]

    def _take(self, step: Step) -> None:
        key = step.slot, step.scope
        if step.action == "withdraw":
            self.releases.withdraw(*key, reason=f"variant for {step.before.name}/{step.before.version} withdrawn")
        else:
            base = self.releases.in_force[step.slot, FLEET] if step.action == "variant" else self.releases.in_force[key]
            variant_of = base.hash if step.action == "variant" else ""
            back = package.rollback_to(self.releases.in_force, key, first=[bytes.fromhex(base.hash)])
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
            )
        self.status.released(step.slot, f"policy_{step.action}", str(step))


def held_policy(release: Release) -> Policy:
    """The policy in a release's bundle; mode off for none."""
    return release.bundle().policy or Policy()
