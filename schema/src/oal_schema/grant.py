"""What a key may sign: the attributes of its line in a trusted-keys file (README, "Who may sign what").

The C is `ap-exporter/src/enrol/trusted_keys.c`, the Go `deploy/internal/bundle/grant.go`; `golden/keys.*` has all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .mode import ENFORCE, MODES

#: sources of bundles that a role may sign
ROLES = {
    "registry": frozenset({"registry"}),
    "trainer": frozenset({"online"}),
    "operator": frozenset({"registry"}),
}
FLEET = "fleet"
SCOPE = re.compile(r"fleet|(site|ap)/[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
WRITE = "role=registry|trainer|operator scope=fleet|site/SITE|ap/AP_ID max_mode=off|shadow|enforce"


@dataclass(frozen=True)
class Grant:
    """sources: of bundles that the key may sign; scope: nothing outside it; max_mode: OFF, SHADOW or ENFORCE, no policy
    above it.
    """

    role: str
    scope: str = FLEET
    max_mode: int = ENFORCE
    sources: frozenset[str] = frozenset()

    def __str__(self) -> str:
        mode = next(name for name, mode in MODES.items() if mode == self.max_mode)
        return f"role={self.role} scope={self.scope} max_mode={mode}"

    def refuses(self, source: str, target: str, mode: int, ap_id: str | None = None, site: str | None = None) -> str:
        """Why the key may not sign a bundle of this source, target and policy mode (0 without a policy), or empty.

        ap_id, site: the AP that asks; None: a service that stores bundles for APs, and knows no AP's site.
        """
        if source not in self.sources:
            return f"role {self.role} may not sign source {source}"
        if not covers(self.scope, target):
            return f"its scope is {self.scope}, the bundle is for {target}"
        if ap_id is not None and self.scope not in (FLEET, f"ap/{ap_id}", f"site/{site}" if site else FLEET):
            return f"its scope is {self.scope}, this is {ap_id} at site {site or '-'}"
        if min(mode, ENFORCE) > self.max_mode:  # a mode that is none is found later, by who reads the policy
            name = next(name for name, known in MODES.items() if known == min(mode, ENFORCE))
            return f"a policy of mode {name} is above its {str(self).rpartition(' ')[2]}"
        return ""


def grant(role: str, scope: str = FLEET, max_mode: str = "enforce") -> Grant:
    """A grant by the names of a line. ValueError says what is wrong."""
    if role not in ROLES:
        raise ValueError(f"role={role}; it is {', '.join(ROLES)}")
    if not SCOPE.fullmatch(scope):
        raise ValueError(f"scope={scope}; it is fleet, site/SITE or ap/AP_ID")
    if max_mode not in MODES:
        raise ValueError(f"max_mode={max_mode}; it is {', '.join(MODES)}")
    if role == "operator" and scope == FLEET:
        raise ValueError("role=operator needs a scope narrower than fleet")
    return Grant(role, scope, MODES[max_mode], ROLES[role])


def parse(words: Iterable[str]) -> Grant:
    """Attributes of a line, in any order, each once. ValueError says what is wrong."""
    given: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in ("role", "scope", "max_mode"):
            raise ValueError(f"attribute {word}; a line has {WRITE}")
        if name in given:
            raise ValueError(f"{name} is there twice")
        given[name] = value
    if missing := [name for name in ("role", "scope", "max_mode") if name not in given]:
        raise ValueError(f"{missing[0]} is missing; a line has {WRITE}")
    return grant(given["role"], given["scope"], given["max_mode"])


def covers(scope: str, target: str) -> bool:
    """May a key of this scope sign for this target? That an AP is at a site is not known here: who knows it, looks."""
    return scope in (FLEET, target) or scope.startswith("site/") and target.startswith("ap/")
