"""The settings file `training/online.yaml`, checked."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import yaml

from oal_training.errors import TrainingError

DEFAULT = Path(__file__).resolve().parents[3] / "online.yaml"


#: what needs no learning, as online.yaml and gate.yaml name it
RIVALS = ("persistence", "best_column", "two_thresholds")


@dataclass(frozen=True)
class Fit:
    """How a tree is fitted."""

    bins: int
    edges_per_fit: int
    max_nodes: int
    max_depth: int
    min_leaf: int
    min_gain: float
    smoothing: float
    class_weight_power: float


@dataclass(frozen=True)
class Judge:
    """What a tree is judged on, and how much of it there must be."""

    test_share: float
    min_items: int
    min_test_items: int
    min_onsets: int
    min_episodes: int
    reference_block_s: float
    reference_every: int
    reference_tolerance: float
    rivals: list[str]
    rivals_every_s: float

    def __post_init__(self):
        if not isinstance(self.rivals, list) or set(self.rivals) - set(RIVALS) or "persistence" not in self.rivals:
            raise TrainingError(f"settings: judge.rivals are persistence and some of {', '.join(RIVALS[1:])}")


@dataclass(frozen=True)
class Ship:
    """By how much, how surely and how seldom a tree is shipped."""

    margin_onset_ap: float
    margin_macro_f1: float
    first_margin: float
    false_ship_rate: float
    confirm_block_s: float
    min_interval_s: float
    drift_margin: float
    drift_false_ship_rate: float
    drift_min_interval_s: float
    champion_hold_s: float


@dataclass(frozen=True)
class Drift:
    """The drift detector."""

    delta: float
    threshold: float
    min_seconds: int
    alarm_s: float


@dataclass(frozen=True)
class Settings:
    """All of `online.yaml`; units are in the names, meanings beside the values there."""

    window_items: int
    fit_every_s: float
    forget_s: float
    fit: Fit
    judge: Judge
    ship: Ship
    drift: Drift


_PARTS = {"fit": Fit, "judge": Judge, "ship": Ship, "drift": Drift}
_BOUNDS = {
    "window_items": (100, 65535),
    "fit_every_s": (0.05, 3600),
    "bins": (4, 256),
    "max_nodes": (3, 511),
    "max_depth": (1, 64),
    "min_leaf": (1, 65535),
    "test_share": (0.05, 0.9),
    "rivals_every_s": (0, 86400),
    "reference_every": (2, 10**6),
    "edges_per_fit": (1, 10**4),
    "class_weight_power": (0, 2),
    "false_ship_rate": (1e-6, 1),
    "drift_false_ship_rate": (1e-6, 1),
    "confirm_block_s": (2, 3600),
    "reference_block_s": (0.1, 10**6),
    "smoothing": (0.01, 10**6),
}


def load(path: str | Path | None = None, **changes) -> Settings:
    """Read a settings file (None: training/online.yaml).

    `changes` replace single values: `fit={"bins": 128}`, `window_items=500`.

    TrainingError names the file and the value that is missing, unknown, of the wrong type or out of range.
    """
    path = Path(path or DEFAULT)
    try:
        data = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise TrainingError(f"settings {path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise TrainingError(f"settings {path}: not a mapping")
    for key, value in changes.items():
        data[key] = {**data[key], **value} if isinstance(value, dict) else value
    parts = {name: _build(cls, data.get(name), f"{path}: {name}.") for name, cls in _PARTS.items()}
    return _build(Settings, {**data, **parts}, f"{path}: ")


def _build(cls, data, where: str):
    if not isinstance(data, dict):
        raise TrainingError(f"settings {where}: missing, or not a mapping")
    fields = {f.name: f.type for f in dataclasses.fields(cls)}
    if unknown := sorted(set(data) - set(fields)):
        raise TrainingError(f"settings {where}{unknown[0]}: no such setting; there are {', '.join(fields)}")
    if missing := sorted(set(fields) - set(data)):
        raise TrainingError(f"settings {where}{missing[0]} is missing")
    for name, kind in fields.items():
        value = data[name]
        if kind in ("int", "float"):
            if isinstance(value, bool) or not isinstance(value, int if kind == "int" else (int, float)):
                raise TrainingError(
                    f"settings {where}{name}: {value!r} is not {'a whole number' if kind == 'int' else 'a number'}"
                )
            low, high = _BOUNDS.get(name, (0, float("inf")))
            if not low <= value <= high:
                raise TrainingError(f"settings {where}{name}: {value} is not between {low} and {high}")
    return cls(**data)
