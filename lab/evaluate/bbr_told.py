"""What being told could bring a sender with BBR: goodput at the edge of a cell with the losses of its air, and where
the radio tries so often that none is left. Told of every loss at once, a sender would hardly have more than the second.
"""
from __future__ import annotations

import copy
import json
import pathlib
import tempfile

from host import guest

from . import cell, methods, play, pool, scenarios, spread, tap

RESULT = pathlib.Path(__file__).with_name("results") / "loss-cause" / "bbr-told.json"
SET, SCENARIO = "sender", "edge"
SEEDS = range(1, 11)
CONTROLS = ("bbr", "cubic")
#: Tries of a frame beyond the first: the scenario's, and so many that one packet in 65,536 is given up.
RETRIES = (3, 15)


def one(work: tuple[str, int, int]) -> dict[str, float]:
    """A run: goodput, Mbit/s, and the share of packets that never came."""
    control, retries, seed = work
    given = copy.deepcopy(scenarios.load(SET, SCENARIO))
    given["medium"]["retries"] = retries
    plan = scenarios.plan(given, SCENARIO, methods.method(f"{control}-fq"), seed)
    plan["tap"] = str(tap.program())
    play.BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=play.BUILD) as run:
        folder = pathlib.Path(run)
        guest.play(plan, folder, timeout_s=play.TIMEOUT_S)
        (flow,) = cell.analyse(plan, folder)["flows"]
    return {"mbps": flow["goodput_mbps"], "lost": flow["loss_ratio"]}


def measure(jobs: int) -> list[dict]:
    play.kernel()
    todo, out = [(c, r, s) for s in SEEDS for c in CONTROLS for r in RETRIES], []
    for work, found, error in pool.each(one, todo, jobs):
        if error:
            raise SystemExit(f"evaluate: {work} failed: {error}")
        out.append(dict(zip(("control", "retries", "seed"), work)) | found)
    out.sort(key=lambda row: (row["control"], row["retries"], row["seed"]))
    RESULT.write_text(json.dumps(out, indent=1) + "\n")
    return out


def kept() -> list[dict]:
    return json.loads(RESULT.read_text())


def of(rows: list[dict], control: str, retries: int, what: str = "mbps") -> dict[int, float]:
    """By seed."""
    return {row["seed"]: row[what] for row in rows if (row["control"], row["retries"]) == (control, retries)}


def most(rows: list[dict], control: str) -> spread.Figure:
    """Goodput where nothing is lost to that with the losses of the air, paired by seed."""
    change = spread.change(of(rows, control, RETRIES[1]), of(rows, control, RETRIES[0]))
    return spread.Figure(1 + change.value, 1 + change.low, 1 + change.high, change.runs)


def text(rows: list[dict]) -> str:
    """A line a sender."""
    mean = lambda control, retries, what="mbps": spread.mean(list(of(rows, control, retries, what).values())).value
    return "\n".join(
        f"{control}: {mean(control, RETRIES[0]):.2f} Mbit/s with {100 * mean(control, RETRIES[0], 'lost'):.1f} % lost,"
        f" {mean(control, RETRIES[1]):.2f} with {100 * mean(control, RETRIES[1], 'lost'):.2f} %:"
        f" {m.value:.3f} [{m.low:.3f}, {m.high:.3f}] times" for control in CONTROLS for m in [most(rows, control)])
