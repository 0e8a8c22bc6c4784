"""Whether a choice costs anything: paths on which it seemed to, played again, ten sessions of either algorithm."""
from __future__ import annotations

import json
import pathlib

import numpy as np
import pandas as pd
from oal_training.cc_select.statistics import speed_mbps

from . import judge, paths, play
from .table import Table

REPETITIONS = range(10, 20)  # none that anything was chosen by
LIMIT = -2.0  # percent
#: Of a t distribution with 9 degrees of freedom, both sides at 95 %.
T_9 = 2.262


def doubtful(of: Table, choices: list[np.ndarray]) -> dict[str, list[str]]:
    """Path → algorithms that were chosen after a default session, in any seed, where the choice lost."""
    s = of.algorithms.index(judge.START)
    out = {}
    for p in judge.losers(of, choices):
        other = {of.algorithms[c] for every in choices for c in every[p, s]} - {judge.START}
        if other:
            out[str(of.paths.index[p])] = sorted(other)
    return out


def again(grid: dict, wanted: dict[str, list[str]], jobs: int) -> list[dict]:
    """Sessions of these paths with the default and with what was chosen."""
    folder = play.BUILD / f"harm-{play.depends_on(grid)}"
    folder.mkdir(parents=True, exist_ok=True)
    of = {path["name"]: path for path in paths.paths(grid)}
    todo = []
    for chosen in sorted({tuple(c) for c in wanted.values()}):
        some = [of[name] for name, c in sorted(wanted.items()) if tuple(c) == chosen]
        mine = {**grid, "congestion_controls": [judge.START, *chosen]}
        for repetition in REPETITIONS:
            for at in range(0, len(some), play.PATHS_A_GUEST):
                part = some[at:at + play.PATHS_A_GUEST]
                todo.append((folder / play.file_name(repetition, part, mine), part, mine, repetition))
    play.all_of([item for item in todo if not item[0].exists()], jobs)
    return [json.loads(line) for item in todo for line in pathlib.Path(item[0]).read_text().splitlines()]


def judged(rows: pd.DataFrame, wanted: dict[str, list[str]]) -> list[dict]:
    """Of each path and choice: the change of speed against the default in percent, with its interval."""
    logs = np.log(rows.assign(speed=speed_mbps(rows)).set_index(["path", "cc", "repetition"]).speed).sort_index()
    out = []
    for path, chosen in sorted(wanted.items()):
        for cc in chosen:
            gain = (logs[path, cc] - logs[path, judge.START]).dropna()
            if len(gain) != len(REPETITIONS):
                raise ValueError(f"{path}: {len(gain)} pairs of {len(REPETITIONS)}")
            half = T_9 * gain.std(ddof=1) / np.sqrt(len(gain))
            value, low, high = (round(float(100 * np.expm1(v)), 2)
                                for v in (gain.mean(), gain.mean() - half, gain.mean() + half))
            out.append({"path": path, "cc": cc, "change": [value, low, high], "harmed": high < LIMIT})
    return out
