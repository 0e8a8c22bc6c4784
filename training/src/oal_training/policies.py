"""The folders of policies/, as far as training reads them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import yaml
from oal_schema.manifest import SESSION, Manifest, known
from oal_schema.settings import policies as described

from oal_training.errors import TrainingError

POLICIES = Path(__file__).resolve().parents[3] / "policies"
RWND_FAIR = "rwnd-fair"
Rules = TypeVar("Rules")
GATE = "gate.yaml"  # of a policy's folder: what a version must show


def manifest(policy: str) -> Manifest:
    """The manifest of a policy. TrainingError names the policies there are."""
    found = known().get(policy)
    if found is None:
        raise TrainingError(f"there is no policy {policy}; there are {', '.join(known())}")
    return found


def learns(policy: str) -> Manifest:
    """The manifest of a policy whose class model is fitted on items. TrainingError when its law goes by what it
    measures, or when sessions of hosts are what it learns from.
    """
    found = manifest(policy)
    if found.label == SESSION:
        raise TrainingError(f"policy {policy} learns from sessions of hosts, and has no items: `oal-train {policy}`")
    if found.role("class") is None:
        raise TrainingError(f"policy {policy} learns nothing: its law {found.law.name} needs no model, and it has none")
    return found


def feature_hash(policy: str) -> int:
    """First 8 bytes of the hash of the policy's feature program, unsigned."""
    manifest(policy)
    return int(next(p["feature_hash"] for p in described() if p["name"] == policy))


def file(policy: str, name: str) -> Path:
    """A file of a policy's folder. TrainingError when there is none."""
    path = POLICIES / policy / name
    if not path.is_file():
        raise TrainingError(f"policy {policy} has no {name} ({path})")
    return path


def gate_rules(policy: str, rules: type[Rules]) -> Rules:
    """The rules of a policy's `gate.yaml`, as an object of `rules`, whose defaults hold without the file or a key.
    TrainingError when the file cannot be understood.
    """
    path = POLICIES / policy / GATE
    if not path.is_file():
        return rules()
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        return rules(**{key: tuple(value) if isinstance(value, list) else value for key, value in said.items()})
    except (OSError, yaml.YAMLError, AttributeError, TypeError, ValueError, TrainingError) as error:
        raise TrainingError(f"{path}: {error}") from None


@lru_cache
def window_settings() -> dict:
    """`window.yaml` of rwnd-fair: `flow_inputs`, columns of the flow table; `xgboost`, parameters of the fit."""
    return yaml.safe_load(file(RWND_FAIR, "window.yaml").read_text(encoding="utf-8"))
