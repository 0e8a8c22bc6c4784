"""What the tags of a version say of its release."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass

from oal_schema import rollout_metrics

from oal_registry.errors import NotPackagable

SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Tag, key in the release's `rollout`, least and greatest value.
NUMBERS = (
    ("rollout.canary_share", "share", 0.0, 1.0),
    ("rollout.soak_s", "soak_s", 0.0, 30 * 86400.0),
    ("rollout.activate_in_s", "activate_in_s", 0.0, 86400.0),
    ("rollout.limit", "limit", -math.inf, math.inf),
    ("rollout.min_aps", "min_aps", 1, 1e6),
    ("rollout.min_onsets", "min_onsets", 0, 1e9),
    ("rollout.deadline_s", "deadline_s", 60.0, 30 * 86400.0),
)
TAGS = frozenset({"site", "pin", "rollout.metric", "rollout.steps", *(tag for tag, *_ in NUMBERS)})
MAX_STEPS = 8
# A rollout of another slot than canary whose tags say something of it: no evidence but that of one AP.
PLAIN = {
    "steps": [1.0],
    "soak_s": 0.0,
    "min_aps": 1,
    "min_onsets": 0,
    "activate_in_s": 0.0,
    "deadline_s": 86400.0,
    "metric": "",
    "limit": None,
}


@dataclass(frozen=True)
class Wish:
    """Scope, whether online trees are forbidden there, and how to roll out (None: at once, to all)."""

    scope: str
    pinned: bool
    rollout: dict | None


def of_tags(tags: dict[str, str], slot: str, canary_defaults: dict) -> Wish:
    """`canary_defaults`: as PLAIN. NotPackagable names the tag that cannot be understood."""
    site = tags.get("site", "").strip()
    if site and not SITE.fullmatch(site):
        raise NotPackagable(f"tag site=`{site[:80]}`: a site is 1 to 64 letters, digits, dots, dashes and underscores")
    pin = tags.get("pin", "false").strip().lower()
    if pin not in ("true", "false"):
        raise NotPackagable(f"tag pin=`{pin[:80]}` is neither true nor false")
    plan = dict(canary_defaults if slot == "canary" else PLAIN)
    given = slot == "canary"
    for tag, name, least, greatest in NUMBERS:
        if tag in tags:
            plan[name], given = _number(f"tag {tag}", tags[tag], least, greatest), True
    if "rollout.steps" in tags:
        plan["steps"], given = steps(tags["rollout.steps"].split(), "tag rollout.steps"), True
    if "rollout.metric" in tags:
        plan["metric"], given = tags["rollout.metric"].strip(), True
        known_metric(plan["metric"], "tag rollout.metric")
    if plan["metric"] and plan["limit"] is None:
        raise NotPackagable("tag rollout.metric is set and rollout.limit is not: there is no value to abort at")
    return Wish(f"site/{site}" if site else "fleet", pin == "true", _record(plan) if given else None)


def known_metric(name: str, where: str) -> None:
    """NotPackagable unless the push service can read it; empty: none is asked for."""
    if name and name not in rollout_metrics.known():
        known = ", ".join(rollout_metrics.known())
        raise NotPackagable(f"{where}=`{name[:80]}` is not the name of a metric; known are {known}")


def steps(shares: list, where: str) -> list[float]:
    """Shares of the APs that have a release step by step; NotPackagable unless each is greater than the one before."""
    made = [_number(where, str(share), 0.0, 1.0) for share in shares]
    if not 1 <= len(made) <= MAX_STEPS or made[0] <= 0 or any(a >= b for a, b in itertools.pairwise(made)):
        raise NotPackagable(f"{where}: 1 to {MAX_STEPS} shares such as `0.1 0.5 1`, each greater than the one before")
    return made


def _record(plan: dict) -> dict:
    """What a release says of it. A first share of its own (`rollout.canary_share`) stands before the greater steps;
    without a soak it stays with its first.
    """
    shares = plan["steps"]
    if share := plan.get("share"):
        shares = [share, *(s for s in shares if s > share)]
    shares = shares if plan["soak_s"] else shares[:1]
    evidence = {"soak_s": plan["soak_s"], "min_aps": int(plan["min_aps"]), "min_onsets": int(plan["min_onsets"])}
    rest = {name: plan[name] for name in ("soak_s", "activate_in_s", "metric", "limit", "deadline_s")}
    return {"share": shares[0], "steps": [{"share": s, **evidence} for s in shares], **rest}


def _number(where: str, text: str, least: float, greatest: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not least <= value <= greatest:
        between = f" from {least:g} to {greatest:g}" if math.isfinite(least) else ""
        raise NotPackagable(f"{where}=`{text[:80]}` is not a number{between}")
    return value
