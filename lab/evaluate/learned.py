"""Trees that access points learned online, as `lessons` left them: a JSON file, by set/scenario/baseline and access
point ("0", "1", ...); null where the trainer shipped none."""
import functools
import json
import pathlib

from .methods import Method

KEPT = pathlib.Path(__file__).with_name("models") / "online.json"


class NoLesson(ValueError):
    """Nothing was learned there."""


def context(which: str, scenario: str, baseline: Method) -> str:
    return f"{which}/{scenario}/{baseline.name}"


@functools.cache
def read(path: pathlib.Path) -> dict:
    """{"contexts": {context: {"trees": {ap: tree in JSON or None}, ...}}, ...}; empty where there is no file."""
    return json.loads(path.read_text()) if path.exists() else {"contexts": {}}


def trees(path: pathlib.Path, which: str, scenario: str, method: Method, committed: str) -> dict[str, str]:
    """A tree in JSON by access point. NoLesson says what to run."""
    name = context(which, scenario, method.baseline)
    found = read(path)["contexts"].get(name)
    if found is None:
        raise NoLesson(f"{path.name} has no lessons of {name}: lab/evaluate/lessons --set {which} --scenario"
                       f" {scenario} --method {method.baseline.name}")
    return {ap: json.dumps(tree) if tree else committed for ap, tree in found["trees"].items()}
