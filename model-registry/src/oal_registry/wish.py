"""What the tags of a version say of its release."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from oal_registry.errors import NotPackagable

SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}|")
# Tag, key in the release's `rollout`, least and greatest value.
NUMBERS = (
    ("rollout.canary_share", "share", 0.0, 1.0),
    ("rollout.soak_s", "soak_s", 0.0, 30 * 86400.0),
    ("rollout.activate_in_s", "activate_in_s", 0.0, 86400.0),
    ("rollout.limit", "limit", -math.inf, math.inf),
)
TAGS = frozenset({"site", "pin", "rollout.metric", *(tag for tag, *_ in NUMBERS)})


@dataclass(frozen=True)
class Wish:
    """Scope, whether online trees are forbidden there, and how to roll out (None: at once, to all)."""

    scope: str
    pinned: bool
    rollout: dict | None


def of_tags(tags: dict[str, str], slot: str, canary_defaults: dict) -> Wish:
    """NotPackagable names the tag that cannot be understood."""
    site = tags.get("site", "").strip()
    if site and not SITE.fullmatch(site):
        raise NotPackagable(f"tag site=`{site[:80]}`: a site is 1 to 64 letters, digits, dots, dashes and underscores")
    pin = tags.get("pin", "false").strip().lower()
    if pin not in ("true", "false"):
        raise NotPackagable(f"tag pin=`{pin[:80]}` is neither true nor false")
    rollout = {"share": 1.0, "soak_s": 0.0, "activate_in_s": 0.0, "metric": "", "limit": None}
    if slot == "canary":
        rollout |= canary_defaults
    given = slot == "canary"
    for tag, name, least, greatest in NUMBERS:
        if tag in tags:
            rollout[name], given = _number(tag, tags[tag], least, greatest), True
    if "rollout.metric" in tags:
        if not METRIC.fullmatch(tags["rollout.metric"].strip()):
            raise NotPackagable(f"tag rollout.metric=`{tags['rollout.metric'][:80]}` is not the name of a metric")
        rollout["metric"], given = tags["rollout.metric"].strip(), True
    if rollout["metric"] and rollout["limit"] is None:
        raise NotPackagable("tag rollout.metric is set and rollout.limit is not: there is no value to abort at")
    return Wish(f"site/{site}" if site else "fleet", pin == "true", rollout if given else None)


def _number(tag: str, text: str, least: float, greatest: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not least <= value <= greatest:
        between = f" from {least:g} to {greatest:g}" if math.isfinite(least) else ""
        raise NotPackagable(f"tag {tag}=`{text[:80]}` is not a number{between}")
    return value
