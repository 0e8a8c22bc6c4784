"""Scenario files of the evaluation: those of lab/scenarios with a few keys more. Sets: `tune`, on which settings are
chosen, `judge`, `uplink`, of stations that upload, `mmwave`, of links that people block, `mark`, of one access
point for the policy mark, `loss`, of one whose queue, air or wire loses, for loss-cause, `sender`, of one download
for policies at its sender, `ecn`, of one over a link whose capacity varies, and `choose`, of two servers at one
access point.
"""
import copy
import csv
import functools
import pathlib
import random

import yaml
from host import scenario

from . import blockage, sender_models
from .methods import CONTROLS, Method

FOLDER = pathlib.Path(__file__).with_name("scenarios")
SETS = ("tune", "judge", "uplink", "mmwave", "mark", "loss", "sender", "ecn", "choose")
EXTRA = {"warmup_s": 2.0, "fifo_pkts": 123, "trace": None, "swing": None, "blockage": None, "sampled": False}
SAMPLED_HZ = 20  # of senders' windows, where a scenario says `sampled`
OTHER = "other"  # a flow's `cc`: not the method's congestion control but the other one
PLAIN = "plain"  # a flow's `cc`: CUBIC, whatever the method's is
#: `each`: every station walks for itself. Of Sprout's model (below): 200 packets/s in the root of a second, of 500.
SWING = {"each": False, "sigma": 0.4, "step_s": 0.1, "low": 0.2, "high": 2.0, "outage_s": 1.0, "seed": 1}
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
    plain = [n for n, flow in enumerate(given["flows"]) if flow.get("cc") == PLAIN]
    for n, flow in enumerate(given["flows"]):
        if method.mixed:
            flow["ecn"] = n % 2 == 0
        flow["cc"] = {OTHER: other(method.cc), PLAIN: "cubic"}.get(flow.get("cc"), method.cc)
        if flow["cc"] == "dctcp":
            flow["peer_cc"] = flow["cc"]  # its marks are told packet by packet
    given["seed"] = seed
    if method.ecn:
        given["ecn"] = True
    if method.ect1:
        given["ect1"] = True
    given["ap"] = {"security": "open", "queue": method.ap_queue(extra["fifo_pkts"])}
    if extra["trace"]:
        given["changes"] = given.get("changes", []) + trace(scenario.merge(TRACE, extra["trace"], f"{name}.trace"),
                                                            given["duration_s"])
    if extra["swing"]:
        given["changes"] = given.get("changes", []) + swing(scenario.merge(SWING, extra["swing"], f"{name}.swing"),
                                                            given)
    if extra["blockage"]:
        spec = scenario.merge(blockage.DEFAULTS, extra["blockage"], f"{name}.blockage")
        given["changes"] = given.get("changes", []) + blockage.changes(spec, given["stations"], given["duration_s"])
    out = scenario.plan(name, given)
    out["evaluate"] = {"warmup_s": extra["warmup_s"], "control": method.control, "cc": method.cc, "plain": plain}
    out["looked"] = True
    out["oal_lc"] = sender_models.model(method.control, name, method.queue)
    out["oal_ecn"] = sender_models.marks(method.control, name)
    if extra["sampled"]:
        out["sniff_hz"] = SAMPLED_HZ
    return out


def trace(spec: dict, duration_s: float) -> list[dict]:
    """Changes of the links' scale that follow a recorded capacity: its mean is 1, limited to low…high times that."""
    with open(FOLDER / "traces" / spec["file"]) as f:
        rows = [row for row in csv.reader(line for line in f if not line.startswith("#"))][1:]
    points = [(float(t), float(kbps)) for t, kbps in rows]
    mean = sum(kbps for _, kbps in points) / len(points)
    return [{"at_s": round(t - spec["begin_s"], 3), "scale": round(min(max(kbps / mean, spec["low"]), spec["high"]), 3)}
            for t, kbps in points if 0 <= t - spec["begin_s"] < duration_s]


def other(control: str) -> str:
    """The congestion control that a method's is mixed with."""
    return CONTROLS[(CONTROLS.index(control) + 1) % len(CONTROLS)] if control in CONTROLS else CONTROLS[0]


def walk(spec: dict, steps: int, chance: random.Random) -> list[float]:
    """Capacity over what the link is given as, a value a step: Brownian motion between low and high, which stays at
    low for about outage_s once it is there. The model by which Sprout forecasts cellular links (Winstein, Sivaraman,
    Balakrishnan, NSDI 2013).
    """
    level, out = chance.uniform(max(spec["low"], 0.5), min(spec["high"], 1.5)), []
    for _ in range(steps):
        moved = level + chance.gauss(0, spec["sigma"] * spec["step_s"] ** 0.5)
        stays = level <= spec["low"] and chance.random() > spec["step_s"] / spec["outage_s"]
        level = spec["low"] if stays else min(max(moved, spec["low"]), spec["high"])
        out.append(round(level, 3))
    return out


def swing(spec: dict, given: dict) -> list[dict]:
    """Changes of the links that follow walks: of all stations' scale, or of each station's rate."""
    steps = round(given["duration_s"] / spec["step_s"])
    at_s = [round(n * spec["step_s"], 3) for n in range(steps)]
    if not spec["each"]:
        levels = walk(spec, steps, random.Random(f"{spec['seed']} all"))
        return [{"at_s": t, "scale": level} for t, level in zip(at_s, levels)]
    return [
        {"at_s": t, "stations": [s["name"]], "rate_mbps": round(s["rate_mbps"] * level, 2)} for s in given["stations"]
        for t, level in zip(at_s, walk(spec, steps, random.Random(f"{spec['seed']} {s['name']}")))
    ]
