"""Which policy a registered model of MLflow belongs to, by the manifests of policies/."""

from __future__ import annotations

from dataclasses import replace

from oal_schema.bundle_law import RWND_FAIR
from oal_schema.manifest import Manifest, known


def names() -> tuple[str, ...]:
    """Registered models of all policies."""
    return tuple(plan.registered for manifest in known().values() for plan in manifest.models)


def heads() -> tuple[str, ...]:
    """Registered models whose aliases name a release: those of role `class`."""
    plans = (plan for manifest in known().values() for plan in manifest.models)
    return tuple(plan.registered for plan in plans if plan.role == "class")


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
