"""Which policy a registered model of MLflow belongs to, by the manifests of policies/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from oal_schema.bundle_law import RWND_FAIR
from oal_schema.manifest import SESSION, Manifest, ModelPlan, known

#: label → command of `oal-train` that fits and repeats a version
TRAINERS = {"congestion": "fit", SESSION: "cc-select"}


def names() -> tuple[str, ...]:
    """Registered models of all policies."""
    return tuple(plan.registered for manifest in known().values() for plan in manifest.models)


def heads() -> tuple[str, ...]:
    """Registered models whose aliases name a release: those of role `class`."""
    return tuple(plan.registered for _, plan in _heads())


def heads_with_items() -> tuple[str, ...]:
    """Those of them whose features items have: their drift can be looked at."""
    return tuple(plan.registered for manifest, plan in _heads() if manifest.label != SESSION)


def _heads() -> Iterator[tuple[Manifest, ModelPlan]]:
    for manifest in known().values():
        if (plan := manifest.role("class")) is not None:
            yield manifest, plan


def trainer(name: str) -> str:
    """The command of `oal-train` that repeats a version of a registered model."""
    for manifest in known().values():
        if any(plan.registered == name for plan in manifest.models):
            return TRAINERS[manifest.label]
    return TRAINERS["congestion"]


def manifest_of(name: str, role: str) -> Manifest:
    """The policy whose model of this role is registered so; of rwnd-fair, with this name, when no policy names it."""
    for manifest in known().values():
        plan = manifest.role(role)
        if plan is not None and plan.registered == name:
            return manifest
    return renamed(known()[RWND_FAIR], role, name)


def renamed(manifest: Manifest, role: str, name: str) -> Manifest:
    """The policy with another registered model in a role."""
    plans = (replace(plan, registered=name) if plan.role == role else plan for plan in manifest.models)
    return replace(manifest, models=tuple(plans))
