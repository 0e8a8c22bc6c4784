"""Does a window follow its link? Samples of a sender's congestion window (oal-sniffer) beside what the scenario says
that the link carries at that time. Of scenarios with one download."""
import json
import pathlib

import numpy as np
from sniffer import sinks

from . import oracle

STEP_S = 0.05


def figures(plan: dict, folder: pathlib.Path) -> dict:
    """`cwnd_capacity`: correlation (Pearson) of the window, in segments, with the link's rate after the warm-up, and
    `mark_ratio`: the share of packets that counted as marked; None where there is none.
    """
    truth = json.loads((folder / f"{plan['name']}.truth.json").read_text())
    rows = list(sinks.read(folder / f"{plan['name']}.sender.jsonl.gz"))
    (rates,) = oracle.link_rates(plan, STEP_S, round(plan["duration_s"] / STEP_S)).values()
    at_s = np.array([row["ts"] * 1e-6 - truth["begin_ns"] * 1e-9 for row in rows])
    window = np.array([row["cwnd_bytes"] / row["mss_bytes"] for row in rows])
    first = round(plan["evaluate"]["warmup_s"] / STEP_S)
    last = np.searchsorted(at_s, np.arange(first, len(rates)) * STEP_S, side="right") - 1  # unchanged ones are no rows
    return {"cwnd_capacity": correlation(window[np.maximum(last, 0)], rates[first:]),
            "mark_ratio": share_marked(truth["oal_ecn"])}


def correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """None where one of both does not vary."""
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else None


def share_marked(counts: dict[str, int]) -> float | None:
    return counts["marked"] / sum(counts.values()) if sum(counts.values()) else None
