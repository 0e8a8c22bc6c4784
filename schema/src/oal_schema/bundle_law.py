"""What a bundle does with its models' answers: its law, and what it needs of the models (README, "Bundles")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .nodes import BundleError

RWND_FAIR = "rwnd-fair"
#: a folder of policies/
POLICY_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
#: law → subjects that it can be applied to
LAWS = {
    "fair_window": ("flow",),
    "direct": ("flow", "ap", "destination"),
    "mark": ("station",),
    "backlog_cap": ("flow",),
}
#: laws that go by what they measure: a bundle with one of them needs no model
WITHOUT_MODEL = ("mark", "backlog_cap")
#: action → subjects that it can be done to
ACTIONS = {"rwnd": ("flow", "ap"), "mark": ("station",), "cc": ("destination",)}
CLASSES, MAX_VALUE = 4, 1 << 40
#: length of congestion_controls in numbers.yaml, which is not there yet when the generator runs for the first time
CONGESTION_CONTROLS = 9
#: kind that a model of this role has, whatever the law
ROLE_KINDS = {"class": "tree", "window": "sum"}


@dataclass(frozen=True)
class Law:
    """name: one of LAWS; subject: what it is applied to; action: what is done.

    values: direct only, a value for each class, 0: nothing is done.
    """

    name: str = "fair_window"
    subject: str = "flow"
    action: str = "rwnd"
    values: tuple[int, ...] = ()

    def columns(self) -> dict:
        """Fields of Law in `bundle.proto`."""
        return {"name": self.name, "subject": self.subject, "action": self.action, "values": list(self.values)}


FAIR_WINDOW = Law()


def law_of(v: dict | None, kinds: Mapping[str, str]) -> Law:
    """Law of the fields of `bundle.proto`, for models of `kinds` (role → kind). BundleError("unsupported_format")."""
    if v is None:
        raise _bad("no law")
    law = Law(v["name"], v["subject"], v["action"], tuple(v["values"]))
    if law.name not in LAWS or law.subject not in LAWS[law.name]:
        raise _bad(
            f"law {law.name!r} on {law.subject!r}; known are "
            + ", ".join(f"{n} on {'/'.join(s)}" for n, s in LAWS.items())
        )
    if law.action not in ACTIONS or law.subject not in ACTIONS[law.action]:
        raise _bad(f"action {law.action!r} on {law.subject!r}; known are {', '.join(ACTIONS)}")
    wanted = CLASSES if law.name == "direct" else 0
    if len(law.values) != wanted or any(not 0 <= x <= MAX_VALUE for x in law.values):
        raise _bad(f"law {law.name} has values {list(law.values)}; {wanted} of 0 to 2^40")
    if law.action == "cc" and any(x >= CONGESTION_CONTROLS for x in law.values):
        raise _bad(f"law {law.name} has values {list(law.values)}; congestion controls have numbers below "
                   f"{CONGESTION_CONTROLS}")
    if "class" not in kinds and law.name not in WITHOUT_MODEL:
        raise _bad(f"law {law.name} needs a model of role class, and there are {', '.join(kinds) or 'none'}")
    for role, kind in ROLE_KINDS.items():
        if kinds.get(role, kind) != kind:
            raise _bad(f"role {role} is of kind {kind}, not {kinds[role]}")
    return law


def _bad(detail: str) -> BundleError:
    return BundleError("unsupported_format", detail)
