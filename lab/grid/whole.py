"""All figures of the policy, as one JSON object: what pages and tests are made of."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from oal_training.cc_select.utility import Utility

from . import held_out, judge, life, table

SPLITS = table.PLACES


def of_utility(of: table.Table, choices: dict[str, list[np.ndarray]]) -> dict:
    boot = judge.Bootstrap.of(of.paths.condition.to_numpy())
    start = of.algorithms.index(judge.START)
    return {
        "winners": judge.winners(of), "starts": judge.starts(of, choices, boot),
        "rivals": judge.rivals(of, choices["gains"], boot),
        "lives": life.lives(of, choices["gains"], start, judge.fixed(of), lambda g: judge.percent(boot, g))
    }


def splits(of: table.Table) -> dict:
    """After a default session, on paths with a value that no lesson had."""
    boot, start = judge.Bootstrap.of(of.paths.condition.to_numpy()), of.algorithms.index(judge.START)
    now, out = judge.swapped(of.worth), {}
    for name in SPLITS:
        fold = np.unique(of.paths[name], return_inverse=True)[1]
        mine = judge.of_choice(of, held_out.choices(of, "gains", fold))[:, start]
        best = now[np.arange(len(fold)), held_out.best_fixed(of, fold)]
        real, possible = ((worth - now[:, start]).mean(axis=1) for worth in (mine, judge.hindsight(of)))
        out[name] = {"over cubic": judge.percent(boot, real), "share": judge.share(boot, real, possible),
                     "over best fixed": judge.percent(boot, (mine - best).mean(axis=1))}
    return out


def whole(grid: dict, sessions: pd.DataFrame, harm: Callable) -> dict:
    """`harm(table, choices)`: what playing doubtful paths again gave, and how many there were."""
    out = {}
    for name, weights in grid["utilities"].items():
        of = table.table(sessions, grid["congestion_controls"], Utility(**weights))
        choices = judge.chosen(of)
        out[name] = of_utility(of, choices)
        if name == "speed":
            out |= {"sessions": int(of.worth.size), "paths": len(of.paths),
                    "conditions": int(of.paths.condition.nunique()), "splits": splits(of),
                    "harm": harm(of, choices["gains"])}
    return out
