"""Retraining that nobody asks for: when a champion is old, or its features have moved for long.

It asks as a person does, by the tag `retrain=requested`; tags say who and why. What comes of it gets the alias
`challenger`, never another: a champion is a person's word.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from oal_registry.config import Section
from oal_registry.errors import RegistryError
from oal_registry.mlflow_client import MlflowRegistry
from oal_registry.status import Status

ASK_TAG, STATE_TAG = "retrain", "retrain.state"  # requested, taken away when a run begins; running -> done or failed
AT_TAG = "retrain.at"  # when the last run from this version began, seconds since 1970
BY_TAG, WHY_TAG = "retrain.by", "retrain.why"  # schedule or drift; a person's request has none
PSI_TAG = "drift.psi"  # of the feature that moved most, at the last look
LOOKED_TAG, SINCE_TAG = "drift.at", "drift.since"  # of the last look, and since when all looks were above the limit
LOOK_S = 60  # between two passes


@dataclass(frozen=True)
class Settings:
    """Section `retrain` of registry.yaml; 0 switches a trigger off."""

    every_s: float
    psi_above: float
    psi_for_s: float
    least_s: float
    look_every_s: float

    def __post_init__(self):
        for name, value in vars(self).items():
            if value < 0:
                raise RegistryError(f"retrain: {name} is {value:g}; it is 0 or more")
        if self.psi_above and not self.look_every_s:
            raise RegistryError("retrain: psi_above needs look_every_s above 0, or features are never compared")


def settings(values: dict, where: str) -> Settings:
    """From the section of a file; RegistryError names what is missing, unknown or no number."""
    section = Section(values, where)
    made = Settings(**{name: float(section.get(name, (int, float))) for name in Settings.__dataclass_fields__})
    section.done()
    return made


def under_way(tags: dict[str, str]) -> bool:
    """Is a run from this version asked for, or under way?"""
    return tags.get(ASK_TAG) in ("requested", "running") or tags.get(STATE_TAG) == "running"


def why(
    settings: Settings, now_s: float, tags: dict[str, str], made_s: float, begun_s: float
) -> tuple[str, str] | None:
    """(who, why) to train a champion anew now, or None. made_s, begun_s: when it was made, and when a run of its model
    last began.
    """
    last_s = max(made_s, begun_s)
    if under_way(tags) or now_s - last_s < settings.least_s:
        return None
    since_s, looked_s = _number(tags.get(SINCE_TAG)), _number(tags.get(LOOKED_TAG))
    fresh = looked_s is not None and now_s - looked_s <= 3 * settings.look_every_s
    if settings.psi_above and fresh and since_s is not None and looked_s - since_s >= settings.psi_for_s:
        hours = (looked_s - since_s) / 3600
        return "drift", f"PSI {tags.get(PSI_TAG, '?')}, above {settings.psi_above:g} for {hours:.1f} h"
    if settings.every_s and now_s - last_s >= settings.every_s:
        return "schedule", f"{(now_s - last_s) / 3600:.0f} h since the last, each {settings.every_s / 3600:g} h"
    return None


def looked(
    settings: Settings, now_s: float, tags: dict[str, str], psi: dict[str, float] | None
) -> dict[str, str | None]:
    """Tags of a version after a look at its features; None: the tag goes. `psi` None: there was too little to see, and
    what is not known neither begins nor goes on being above.
    """
    if not psi:
        return {LOOKED_TAG: _text(now_s), PSI_TAG: None, SINCE_TAG: None}
    name, most = max(psi.items(), key=lambda one: one[1])
    since_s, before_s = _number(tags.get(SINCE_TAG)), _number(tags.get(LOOKED_TAG))
    if not settings.psi_above or most <= settings.psi_above:
        since = None
    elif since_s is None or before_s is None or now_s - before_s > 3 * settings.look_every_s:
        since = _text(now_s)  # it begins, or nobody looked for long
    else:
        since = _text(since_s)
    return {LOOKED_TAG: _text(now_s), PSI_TAG: f"{most:.2f} of {name}", SINCE_TAG: since}


class Automatic:
    """Asks for retraining of champions by `why`. Once in LOOK_S; one thread."""

    def __init__(
        self,
        registry: MlflowRegistry,
        models: Iterable[str],
        settings: Settings,
        status: Status,
        now: Callable[[], float] = time.time,
    ):
        self.registry, self.models, self.settings = registry, tuple(models), settings
        self.status, self.now = status, now
        self._due = 0.0

    def step(self) -> int:
        """The number of runs asked for."""
        if not (self.settings.every_s or self.settings.psi_above) or self.now() < self._due:
            return 0
        self._due = self.now() + LOOK_S
        return sum(self._look(model) for model in self.models)

    def _look(self, model: str) -> bool:
        number = (self.registry.aliases(model) or {}).get("champion")
        if not number:
            return False
        versions = {int(version.version): version for version in self.registry.versions(model)}
        champion = versions.get(number)
        if champion is None or any(under_way(v.tags) for v in versions.values()):
            return False
        begun_s = max((_number(v.tags.get(AT_TAG)) or 0.0 for v in versions.values()), default=0.0)
        found = why(self.settings, self.now(), champion.tags, champion.creation_timestamp / 1000, begun_s)
        if found is None:
            return False
        for name, value in ((BY_TAG, found[0]), (WHY_TAG, found[1]), (ASK_TAG, "requested")):
            self.registry.set_tag(model, number, name, value)
        self.status.count("oal_registry_retrains_asked_total", who=found[0])
        self.status.log(f"retrain {model}/{number}: asked for by {found[0]}: {found[1]}")
        return True


def hand_on(registry: MlflowRegistry, model: str, version: int, made: int) -> str:
    """What a run that nobody asked for made says who and why, and is challenger; what the log should say of it.

    A challenger that a person set stays.
    """
    tags = registry.version(model, version).tags
    if BY_TAG not in tags:
        return ""
    for name in (BY_TAG, WHY_TAG):
        registry.set_tag(model, made, name, tags.get(name, ""))
    there = (registry.aliases(model) or {}).get("challenger")
    if there and there != made and BY_TAG not in registry.version(model, there).tags:
        return f"{model}/{made} is no challenger: a person made {model}/{there} that"
    registry.set_alias(model, "challenger", made)
    return f"{model}/{made} is challenger"


def forget(registry: MlflowRegistry, model: str, version: int) -> None:
    """The run has ended: who asked for the next is said anew."""
    for name in (BY_TAG, WHY_TAG):
        registry.delete_tag(model, version, name)


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _text(seconds: float) -> str:
    return f"{seconds:.0f}"
