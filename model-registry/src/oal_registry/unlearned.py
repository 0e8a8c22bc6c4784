"""Releases of a policy that has no model: where a file in force is about it, and nowhere else.

Nothing in MLflow can ask for it, so the file does: it says scope, mode and numbers. Of a file that changed, and of
files of sites and access points beside the fleet's, the policy reconciler makes new releases as of any policy.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_schema.manifest import Manifest
from oal_schema.policy_folder import PolicyFolder
from oal_schema.release import Release
from oal_schema.release import key as release_key

from oal_registry import package, programs
from oal_registry.errors import NotPackagable
from oal_registry.policy_plan import FLEET
from oal_registry.release_topic import ReleaseTopic
from oal_registry.status import Status

SLOT = "champion"


class Unlearned:
    """Compares files in force of one policy with its releases; `reconcile` acts. One thread."""

    def __init__(
        self,
        manifest: Manifest,
        releases: ReleaseTopic,
        key: Ed25519PrivateKey,
        status: Status,
        policies: PolicyFolder,
    ):
        self.manifest, self.releases, self.key, self.status, self.policies = manifest, releases, key, status, policies

    def reconcile(self) -> int:
        """One pass; the number of releases made and withdrawn."""
        in_force = self.releases.of(self.manifest.name)
        files = self.policies.policies.of_policy(self.manifest.name).files
        wanted = [FLEET] if FLEET in files else sorted(files)
        gone = [scope for (slot, scope), r in in_force.items() if not r.variant_of and scope not in wanted]
        for scope in gone:
            self.releases.withdraw(SLOT, scope, "no file in force is about it any more", self.manifest.name)
            self._say("withdraw", scope, "withdrawn, no file in force is about it any more")
        return len(gone) + sum(self._release(scope, in_force.get((SLOT, scope))) for scope in wanted)

    def _release(self, scope: str, now: Release | None) -> int:
        """Release it there, unless it is; 0 when it is, or when this registry's key may not sign it."""
        part = f"policy {self.manifest.name} for {scope}"
        program = programs.of_name(self.manifest.program)
        if now is not None and not now.variant_of:
            held = now.bundle()
            if (held.law, held.feature_hash, held.models) == (self.manifest.law, program.feature_hash, []):
                return 0
        try:
            made = package.without_models(
                self.manifest,
                program,
                target=scope,
                serial=self.releases.next_serial(),
                rollback_to=package.rollback_to(self.releases.of(self.manifest.name), (SLOT, scope)),
                key=self.key,
                policy=self.policies.of(scope, self.manifest.name),
            )
            released = self.releases.release(
                SLOT,
                scope,
                made,
                model=self.manifest.release_name,
                version=package.UNLEARNED_VERSION,
                run_id="",
                pinned=False,
                rollout=None,
                reason=f"a file in force for {scope}",
            )
        except NotPackagable as error:
            self.status.problem(part, f"not released: {error}")
            return 0
        self.status.well(part)
        self._say("release", scope, f"{released.reason}, bundle {released.hash[:12]}")
        return 1

    def _say(self, action: str, scope: str, what: str) -> None:
        self.status.released(SLOT, action, f"{release_key(SLOT, scope, self.manifest.name)}: {what}")
