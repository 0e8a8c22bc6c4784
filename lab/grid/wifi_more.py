"""BBR for all over CUBIC for all in the scenarios of `judge` that were not played for cc-select: of the cells of an
earlier run, which kept no sessions. So a worth is that of flows by the tap: log of a long download's goodput, less the
utility's price on its p95 of queueing and its share sent again. Two scenarios that were played for cc-select say how
far that is from the worth of sessions, and how far the earlier run is from the later one.
"""
from __future__ import annotations

import math
import pathlib

import numpy as np
from evaluate import results, sessions, spread, verdict
from evaluate.methods import method
from evaluate.results import Results
from oal_training.cc_select.utility import LEAST_MBPS, Utility

from . import report
from .wifi import QUEUE_NAMES, QUEUES, SAID

PAGE = "more.md"
EARLIER = pathlib.Path(results.__file__).with_name("results")
SCENARIOS = ("churn", "constant", "stepped", "variable", "web")
BOTH = ("foreign", "lossy")  # in either run
NEW, OLD = "bbr", "cubic"


def of_flow(flow: dict, u: Utility) -> float:
    return (math.log(max(flow["goodput_mbps"], LEAST_MBPS)) - u.per_s * flow["queueing_p95_ms"] / 1e3
            - u.per_ratio * flow["retransmission_ratio"])


def worth(r: Results, scenario: str, control: str, queue: str, u: Utility) -> dict[int, float]:
    """By seed, the mean over long downloads."""
    which = method(f"{control}-{queue}")
    return {cell.seed: float(np.mean([of_flow(f, u) for f in one["flows"] if f["kind"] == "long"]))
            for cell, one in r.found.items() if cell.scenario == scenario and cell.method == which}


def by_session(r: Results, scenario: str, control: str, queue: str, utility: str) -> dict[int, float]:
    return r.values(scenario, method(f"{control}-{queue}"), f"worth_{utility}")


def percent(f: spread.Figure) -> list[float]:
    return [100 * math.expm1(v) for v in (f.value, f.low, f.high)]


def over(r: Results, scenarios: tuple[str, ...], queues: tuple[str, ...], by=None) -> list[list[float]]:
    """NEW over OLD by each utility: mean over scenarios and queues, paired by seed; `by`: another worth of a cell."""
    out = []
    for name, u in sessions.utilities().items():
        of = [[(by(r, s, c, q, name) if by else worth(r, s, c, q, u)) for c in (NEW, OLD)]
              for s in scenarios for q in queues]
        out.append(percent(spread.mean_difference(of)))
    return out


def harmed(r: Results, scenarios: tuple[str, ...], queue: str) -> list[str]:
    found = [s for s in verdict.stations(r, method(f"{NEW}-{queue}"), method(f"{OLD}-{queue}"))
             if s.scenario in scenarios]
    return [f"{sum(s.harmed for s in found)} of {len(found)}", f"{sum(s.by_chance for s in found):.1f}",
            str(sum(s.sure for s in found))]


def tables(earlier: Results, later: Results) -> dict[str, list[list[str]]]:
    """By heading."""
    head = [*(SAID[name] for name in sessions.utilities())]
    rows = [["scenario", "queue", *head, "stations that lose more than 10 %", "by chance alone", "beyond chance"]]
    for some, said in (*(((s,), s) for s in SCENARIOS), (SCENARIOS, "all five")):
        rows += [[said, QUEUE_NAMES[q], *map(report.signed, over(earlier, some, (q,))), *harmed(earlier, some, q)]
                 for q in QUEUES]
    rows.append(["all five", "both", *map(report.signed, over(earlier, SCENARIOS, QUEUES)), "", "", ""])
    check = [["of lossy and foreign", "seeds", "queue", *head]]
    for said, r, by in (("earlier run, by the tap", earlier, None), ("this run, by the tap", later, None),
                        ("this run, by sessions", later, by_session)):
        seeds = len(worth(r, BOTH[0], NEW, QUEUES[0], next(iter(sessions.utilities().values()))))
        check += [[said, str(seeds), QUEUE_NAMES[q], *map(report.signed, over(r, BOTH, (q,), by))] for q in QUEUES]
    return {"BBR for all over CUBIC for all in other scenarios": rows,
            "How far that measure is from sessions": check}


def page(found: dict[str, list[list[str]]]) -> str:
    return "\n".join(f"## {heading}\n\n{report.markdown(rows)}" for heading, rows in found.items())
