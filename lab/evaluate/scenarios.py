"""Scenario files of the evaluation: those of lab/scenarios with three keys more. Sets: `tune`, on which settings are
chosen, and `judge`.
"""
import copy
import csv
import functools
import pathlib

import yaml
from host import scenario

from .methods import Method

FOLDER = pathlib.Path(__file__).with_name("scenarios")
SETS = ("tune", "judge")
EXTRA = {"warmup_s": 2.0, "fifo_pkts": 123, "trace": None}
TRACE = {"file": None, "begin_s": 0.0, "low": 0.2, "high": 1.0}


def names(which: str) -> list[str]:
    return sorted(path.stem for path in (FOLDER / which).glob("*.yaml"))


@functools.cache
def load(which: str, name: str) -> dict:
    path = FOLDER / which / f"{name}.yaml"
    if not path.exists():
        raise scenario.ScenarioError(f"no scenario {name} in the set {which}; there are: {', '.join(names(which))}")
    return yaml.safe_load(path.read_text())


def plan(given: dict, name: str, method: Method, seed: int) -> dict:
    """The guest's plan of a scenario, with the method's senders and queue, and the evaluation's own keys under
    `evaluate`.
    """
    given = copy.deepcopy(given)
    extra = {key: given.pop(key, default) for key, default in EXTRA.items()}
    for flow in given["flows"]:
        flow["cc"] = method.control
    given["seed"] = seed
    queue = {"mode": "txq"} if method.queue == "fq" else {"mode": "qdisc", "kind": f"pfifo limit {extra['fifo_pkts']}"}
    given["ap"] = {"security": "open", "queue": queue}
    if extra["trace"]:
        given["changes"] = given.get("changes", []) + trace(scenario.merge(TRACE, extra["trace"], f"{name}.trace"),
                                                            given["duration_s"])
    out = scenario.plan(name, given)
    out["evaluate"] = {"warmup_s": extra["warmup_s"]}
    return out


def trace(spec: dict, duration_s: float) -> list[dict]:
    """Changes of the links' scale that follow a recorded capacity: its mean is 1, limited to low…high times that."""
    with open(FOLDER / "traces" / spec["file"]) as f:
        rows = [row for row in csv.reader(line for line in f if not line.startswith("#"))][1:]
    points = [(float(t), float(kbps)) for t, kbps in rows]
    mean = sum(kbps for _, kbps in points) / len(points)
    return [{"at_s": round(t - spec["begin_s"], 3), "scale": round(min(max(kbps / mean, spec["low"]), spec["high"]), 3)}
            for t, kbps in points if 0 <= t - spec["begin_s"] < duration_s]
