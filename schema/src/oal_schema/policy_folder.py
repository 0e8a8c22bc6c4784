"""The folder of control policies, looked at again and again: what is in force is the last state of it that was whole
and right.
"""

from __future__ import annotations

from pathlib import Path

from .bundle_law import RWND_FAIR
from .policy import Policy
from .policy_file import Policies, PolicyError, load

SHIPPED = Path(__file__).resolve().parents[3] / "policies" / "in-force"


class PolicyFolder:
    """PolicyError when it is wrong from the start. `policies` is what counts, once `usable`; `wrong` says why the
    folder is not taken as it is now, or is empty.
    """

    def __init__(self, path: Path):
        self.path = path
        self.wrong, self.usable = "", False
        self._known: dict[tuple[str, int], Policy] = {}  # by name and version: of bundles in force and of files taken
        self._seen = self._taken = self._state()
        self.policies = load(path)

    def of(self, scope: str, policy: str = RWND_FAIR) -> Policy:
        """What is in force of a policy in bundles that are released for this scope."""
        return self.policies.of_policy(policy).of(scope)

    def remember(self, policy: Policy) -> None:
        """A policy that a bundle in force has: its name and version mean this, and nothing else."""
        if policy.name:
            self._known.setdefault((policy.name, policy.version), policy)

    def look(self) -> None:
        """Take the folder as it is now, if it is right. A change is taken at the second look: at the first it may be
        half written.
        """
        state = self._state()
        if state != self._seen:
            self._seen = state
            return
        try:
            new = self.policies if state == self._taken else load(self.path)
            self._refuse_without_version(new)
        except PolicyError as error:
            self.wrong = str(error)
            return
        self.policies, self._taken, self.wrong, self.usable = new, state, "", True
        for file in new.every():
            self.remember(file.policy)

    def _refuse_without_version(self, policies: Policies) -> None:
        changed = [
            f"{f.path.name}: it changed, and its version is still {f.policy.version}; raise it"
            for f in policies.not_raised(self._known.values())
        ]
        if changed:
            raise PolicyError("\n".join(changed))

    def _state(self) -> tuple:
        try:
            return tuple(
                sorted((p.name, (s := p.stat()).st_mtime_ns, s.st_size, s.st_ino) for p in self.path.glob("*.yaml"))
            )
        except OSError as error:  # a file that goes away between the two calls
            return (str(error),)
