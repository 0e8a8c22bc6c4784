"""Play one cell, a scenario with a method and a seed, and keep its result under a hash of everything that it depends
on.
"""
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from host import guest, scenario
from oal_schema.bundle_law import RWND_FAIR

from . import bundle, cell, chosen, diagnosis, follows, forecast, learned, oracle, over_quic, scenarios, tap
from .methods import FORECASTS, ONLINE, ORACLES, Method

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXPORTER = ROOT / "ap-exporter/build/ap-exporter"
BUILD = ROOT / "build/evaluate"
#: A guest that hangs is ended. A cell takes 15 s of CPU at most, and minutes on a machine that is busy otherwise.
TIMEOUT_S = 1800


@dataclass(frozen=True)
class Settings:
    """What methods are made of, beside the scenario: the policy and models of OAL, the bounds' constants."""

    exporter: pathlib.Path = EXPORTER
    policy: pathlib.Path | None = None
    overrides: tuple[tuple[str, int], ...] = ()
    tree: pathlib.Path = bundle.TREE
    window: pathlib.Path | None = None
    online: pathlib.Path = learned.KEPT
    clamp_bytes: int = 54_000
    oracle_target_us: int = 45_000
    keep: pathlib.Path | None = None  # folder for captures and logs
    build: pathlib.Path = field(default=BUILD)


@dataclass(frozen=True)
class Cell:
    set: str
    scenario: str
    method: Method
    seed: int

    @property
    def name(self) -> str:
        return f"{self.set}/{self.scenario}/{self.method.name}/{self.seed}"


@functools.cache
def kernel() -> str:
    return str(guest.kernel())


@functools.cache
def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def code() -> str:
    """Of what plays and measures: the guest's program, this one's measuring half, the tap."""
    files = [
        *sorted((HERE.parent / "guest").glob("*.py")), *(HERE.parent / "host" / f for f in ("scenario.py", "guest.py")),
        *(HERE / f for f in ("cell.py", "conversation.py", "metrics.py", "over_quic.py", "scenarios.py",
                             "sessions.py", "tap.c", "tap.py", "oracle.py"))
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def snapshot(exporter: pathlib.Path, build: pathlib.Path = BUILD) -> pathlib.Path:
    """A copy of the exporter under its hash: one that is built anew meanwhile does not slip into a run. ValueError
    where it does not run.
    """
    folder = build / "exporters"
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"partial-{os.getpid()}"
    shutil.copy2(exporter, partial)
    try:
        subprocess.run([partial, "options"], stdout=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        partial.unlink()
        raise ValueError(f"{exporter} does not run ({error}); is it being built at this moment?") from None
    copy = folder / hashlib.sha256(partial.read_bytes()).hexdigest()[:20] / "ap-exporter"
    copy.parent.mkdir(exist_ok=True)
    os.replace(partial, copy)
    return copy


def overrides(c: Cell, settings: Settings) -> tuple[tuple[str, int], ...]:
    """Numbers of the policy that the cell has: the method's own over the command line's."""
    return tuple(sorted((dict(settings.overrides) | c.method.policy).items()))


def own_trees(c: Cell, settings: Settings) -> dict[str, str]:
    """Of the method that learned online: a tree by access point; the committed one where nothing was shipped to it."""
    if c.method.act != ONLINE:
        return {}
    return learned.trees(settings.online, c.set, c.scenario, c.method, settings.tree.read_text())


def made_of(c: Cell, settings: Settings) -> dict[str, str | None]:
    """Short hashes of what a cell was played with; None where it takes no part."""
    acts = c.method.policy is not None
    return {
        "exporter": digest(settings.exporter)[:12] if c.method.act else None,
        "policy": bundle.inputs(settings.policy, overrides(c, settings), settings.tree, settings.window,
                                tuple(own_trees(c, settings).values()))[:12] if acts else None,
        "tree": digest(settings.online if c.method.act == ONLINE else settings.tree)[:12] if acts else None,
        "window": digest(settings.window)[:12] if acts and settings.window else None
    }


def oracle_target_us(c: Cell, settings: Settings) -> int:
    """The wait that the oracle of this cell leaves: the method's own, or the command line's."""
    return ORACLES.get(c.method.act, settings.oracle_target_us)


def key(c: Cell, settings: Settings) -> str:
    """Hash of all inputs of a cell."""
    plan = scenarios.plan(scenarios.load(c.set, c.scenario), c.scenario, c.method, c.seed)
    inputs: list = [plan, c.method.name, pathlib.Path(kernel()).parent.name, code()]
    if has_quic(plan):
        inputs += [digest(file) for file in over_quic.sources()]
    if c.method.act:
        inputs.append(digest(settings.exporter))
    if c.method.looks_on:
        inputs += [digest(file) for file in diagnosis.sources()]
    elif plan["sniff_hz"]:
        inputs.append(digest(HERE / "follows.py"))
    if c.method.policy is not None:
        inputs += [
            bundle.inputs(settings.policy, overrides(c, settings), settings.tree, settings.window,
                          tuple(own_trees(c, settings).values())),
            digest(HERE / "bundle.py")
        ]
    if c.method.before:
        inputs += [key(cell_before(c), settings), *(digest(file) for file in chosen.sources())]
    if c.method.act == "clamp":
        inputs.append(settings.clamp_bytes)
    if c.method.oracle:
        inputs += [oracle_target_us(c, settings), key(Cell(c.set, c.scenario, c.method.baseline, c.seed), settings)]
    if c.method.act in FORECASTS:
        inputs += [FORECASTS[c.method.act], digest(HERE / "forecast.py")]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()[:20]


def cell_before(c: Cell) -> Cell:
    """The cell by whose sessions the senders of this one choose."""
    return Cell(c.set, c.scenario, c.method.before, chosen.seed_before(c.seed))


def has_quic(plan: dict) -> bool:
    return any(flow["cc"] == scenario.QUIC for flow in plan["flows"])


def stored(c: Cell, settings: Settings) -> pathlib.Path:
    return settings.build / "cells" / c.set / c.scenario / c.method.name / f"{c.seed}-{key(c, settings)}.json"


def result(c: Cell, settings: Settings) -> dict | None:
    """The cell's result if it was played before with the same inputs."""
    path = stored(c, settings)
    return json.loads(path.read_text()) if path.exists() else None


def prepare(c: Cell, settings: Settings, folder: pathlib.Path) -> dict:
    """The guest's plan of the cell; what it names is made in a folder."""
    plan = scenarios.plan(scenarios.load(c.set, c.scenario), c.scenario, c.method, c.seed)
    plan["tap"] = str(tap.program())
    if c.method.before:
        earlier = cell_before(c)
        chosen.apply(plan, c.method.control, (result(earlier, settings) or play(earlier, settings))["sessions"])
    if has_quic(plan):
        plan["quic"] = str(over_quic.program())
    if c.method.act:
        plan["exporter"] = str(settings.exporter)
    if c.method.looks_on:
        plan.update(sniff_hz=diagnosis.SNIFF_HZ, python=sys.executable)
    if c.method.policy is not None:
        own = {plan["name"] if ap == "0" else f"{plan['name']}-{ap}": text
               for ap, text in own_trees(c, settings).items()}
        if c.method.of_policy == RWND_FAIR:
            made = bundle.make(folder, settings.policy, overrides(c, settings), settings.tree, settings.window, own)
        else:
            made = bundle.make_other(folder, c.method.of_policy, settings.policy, overrides(c, settings))
        plan.update(bundle=made["bundle"], sections=made["sections"], of_policy=c.method.of_policy)
    if c.method.act == "clamp":
        plan["clamp"] = {"window_bytes": settings.clamp_bytes}
    if c.method.oracle:
        before = Cell(c.set, c.scenario, c.method.baseline, c.seed)
        found, target_us = result(before, settings) or play(before, settings), oracle_target_us(c, settings)
        if c.method.act in FORECASTS:
            plan["clamp"] = forecast.schedule(plan, found, target_us, FORECASTS[c.method.act] / 1000)
        else:
            plan["clamp"] = oracle.schedule(plan, found, target_us)
    return plan


def play(c: Cell, settings: Settings) -> dict:
    """Play the cell and store its result. RuntimeError with the guest's log where it failed."""
    started, used = time.monotonic(), os.times()
    settings.build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cell-", dir=settings.build) as name:
        folder = pathlib.Path(name)
        plan = prepare(c, settings, folder)
        guest.play(plan, folder / "run", timeout_s=TIMEOUT_S)
        found = cell.analyse(plan, folder / "run")
        if c.method.looks_on:
            told = diagnosis.analyse(plan, folder / "run")
            found["cell"] |= told["figures"]
            found["losses"] = told["lines"]
        elif plan["sniff_hz"]:
            found["cell"] |= follows.figures(plan, folder / "run")
        if settings.keep:
            target = settings.keep / c.name.replace("/", "_")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder / "run", target)
    now = os.times()
    found["cost"] = {"wall_s": round(time.monotonic() - started, 2),
                     "cpu_s": round(sum(now[:4]) - sum(used[:4]), 2)}
    out = stored(c, settings)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_suffix(f".{os.getpid()}")
    partial.write_text(
        json.dumps({"set": c.set, "scenario": c.scenario, "method": c.method.name, "seed": c.seed, **found}))
    os.replace(partial, out)
    return found
