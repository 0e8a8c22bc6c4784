"""An experiment: a small YAML file that says which model is fitted, how it is judged, and on which items."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from oal_training.batch.models import ModelSpec
from oal_training.batch.split import SplitSpec
from oal_training.errors import TrainingError
from oal_training.policies import POLICIES, RWND_FAIR

COLUMNS = (
    "group",
    "time",
    "time_unit",
    "label",
    "class_now",
    "site",
    "features",
    "drop",
    "horizon_us",
    "label_window_us",
    "target",
)
#: of rwnd-fair's congestion tree, and those that it is compared with
OWN = POLICIES / RWND_FAIR / "experiment.yaml"
EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"
TARGET = ("classes", "congested_from", "bounds")


@dataclass(frozen=True)
class BootstrapSpec:
    """Confidence intervals: `rounds` draws of blocks of `block_s` seconds of an AP."""

    block_s: float = 30.0
    rounds: int = 300


@dataclass(frozen=True)
class SourceSpec:
    """Which items ClickHouse is asked for where the command line says nothing: the latest `last_s` seconds, of one AP
    or site.
    """

    ap: str | None = None
    site: str | None = None
    last_s: float = 86400.0


@dataclass(frozen=True)
class Experiment:
    """text is the YAML as it was read; it goes along with every version, so that a retrain can repeat it.

    held_out: latest share of the items that the model is not fitted on; a version is compared on them before it may be
    champion.
    """

    name: str
    model: ModelSpec
    splits: tuple[SplitSpec, ...] = (SplitSpec("time"), SplitSpec("group"))
    bootstrap: BootstrapSpec = BootstrapSpec()
    source: SourceSpec = SourceSpec()
    columns: dict | None = None
    least_items: int = 200
    held_out: float = 0.25
    text: str = field(default="", compare=False)


def _section(kind: type, values, where: str):
    if not isinstance(values, dict):
        raise TrainingError(f"{where} must be a mapping, not {type(values).__name__}")
    known = {f.name for f in dataclasses.fields(kind)}
    if wrong := sorted(set(values) - known):
        raise TrainingError(f"{where}: unknown {', '.join(wrong)}; known: {', '.join(sorted(known))}")
    try:
        return kind(**values)
    except TypeError as error:
        raise TrainingError(f"{where}: {error}") from None


def parse(text: str, where: str) -> Experiment:
    """An experiment from YAML; TrainingError names what is wrong."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TrainingError(f"{where} is not YAML: {error}") from None
    if not isinstance(found, dict) or "name" not in found or "model" not in found:
        raise TrainingError(f"{where} is no experiment: it needs `name` and `model`")
    parts = {"model": ModelSpec, "bootstrap": BootstrapSpec, "source": SourceSpec}
    values = {
        key: _section(parts[key], value, f"{where}: {key}") if key in parts else value for key, value in found.items()
    }
    if "splits" in values:
        values["splits"] = tuple(_section(SplitSpec, s, f"{where}: splits") for s in values["splits"])
    if wrong := sorted(set(values.get("columns") or ()) - set(COLUMNS)) or sorted(
        set((values.get("columns") or {}).get("target") or ()) - set(TARGET)
    ):
        raise TrainingError(
            f"{where}: columns: unknown {', '.join(wrong)}; known:"
            f" {', '.join((*COLUMNS, *(f'target.{t}' for t in TARGET)))}"
        )
    made = dataclasses.replace(_section(Experiment, values, where), text=text)
    if not isinstance(made.held_out, int | float) or not 0 <= made.held_out <= 0.5:
        raise TrainingError(f"{where}: held_out is {made.held_out}; it is a share of the items, 0 to 0.5")
    return made


def load(path: Path) -> Experiment:
    """The experiment in a file."""
    try:
        return parse(Path(path).read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise TrainingError(
            f"experiment {path}: {error.strerror}; there are"
            f" {', '.join(p.name for p in sorted(EXPERIMENTS.glob('*.yaml')))} in training/experiments, and {OWN}"
        ) from None
