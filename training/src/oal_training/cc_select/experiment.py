"""How the tree is fitted: `policies/cc-select/experiment.yaml`, which goes along with every version."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import yaml

from oal_training import policies
from oal_training.cc_select.lessons import Rules
from oal_training.cc_select.utility import Utility
from oal_training.errors import TrainingError

POLICY = "cc-select"
FILE, GRID = "experiment.yaml", "grid.yaml"


@dataclass(frozen=True)
class Experiment:
    """What the file says. min_bytes -1: as the policy's numbers say."""

    utility: str
    window_s: float
    least_sessions: int
    least_lessons: int
    last_s: float
    leave_out: tuple[str, ...] = ()
    min_bytes: int = -1
    text: str = field(default="", compare=False)

    def __post_init__(self):
        if self.utility not in utilities():
            raise TrainingError(f"utility {self.utility!r} is none of {', '.join(utilities())} ({POLICY}/{GRID})")
        whole = (self.least_sessions, self.least_lessons, self.min_bytes)
        if any(type(v) is not int for v in whole) or self.least_sessions < 1 or self.least_lessons < 1:
            raise TrainingError("least_sessions and least_lessons are whole numbers from 1, min_bytes is one from 0")
        if not self.window_s > 0 or not self.last_s > 0:
            raise TrainingError("window_s and last_s are seconds above 0")
        if unknown := sorted(set(self.leave_out) - set(feature_names())):
            raise TrainingError(f"leave_out names {unknown[0]}, which is no feature of policy {POLICY}")

    def changed(self, **given) -> Experiment:
        """With what the command line says instead; None: as it is."""
        made = dataclasses.replace(self, **{key: value for key, value in given.items() if value is not None})
        said = {f.name: getattr(made, f.name) for f in dataclasses.fields(made) if f.name not in ("text", "leave_out")}
        model = {"kind": "decision_tree", "leave_out": list(made.leave_out)}
        return dataclasses.replace(made, text=yaml.safe_dump({"name": POLICY, "model": model, **said}, sort_keys=False))

    @property
    def least_bytes(self) -> int:
        return self.min_bytes if self.min_bytes >= 0 else number("min_flow_bytes")

    def rules(self) -> Rules:
        """What counts as a lesson."""
        worth = Utility(**utilities()[self.utility])
        return Rules(candidates(), worth, self.least_sessions, round(self.window_s * 1e6), self.least_bytes)

    def seen(self) -> tuple[bool, ...]:
        """Which features the tree sees."""
        return tuple(name not in self.leave_out for name in feature_names())


def parse(text: str, where: str) -> Experiment:
    """An experiment from YAML; TrainingError names what is wrong."""
    try:
        said = dict(yaml.safe_load(text))
        model = dict(said.pop("model"))
        if said.pop("name") != POLICY or model.pop("kind") != "decision_tree":
            raise TrainingError(f"{where}: it is not of {POLICY}, a decision_tree")
        return Experiment(leave_out=tuple(model.pop("leave_out", ())), **model, **said, text=text)
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise TrainingError(f"{where} is no experiment of {POLICY}: {error}") from None


def load() -> Experiment:
    """That of the policy's folder."""
    path = policies.file(POLICY, FILE)
    return parse(path.read_text(encoding="utf-8"), str(path))


def utilities() -> dict[str, dict]:
    """What a session is worth, by name."""
    return yaml.safe_load(policies.file(POLICY, GRID).read_text(encoding="utf-8"))["utilities"]


def candidates() -> tuple[int, ...]:
    """Numbers of the congestion controls that the policy chooses from, in order of the tree's classes."""
    return tuple(policies.manifest(POLICY).law.values)


def name_of(congestion_control: int) -> str:
    """Of a number of the contract's."""
    from oal_schema.policy import spec

    return spec()["congestion_controls"][congestion_control]


def number(name: str) -> int:
    """The default of a number of the policy."""
    from oal_schema.policy import defaults

    return defaults()[name]


def feature_names() -> tuple[str, ...]:
    """Of the policy's feature program, in order."""
    from oal_training.stored.programs import known_programs

    return known_programs()[policies.feature_hash(POLICY)].names
