"""All figures of the policy, as one JSON object: what pages and tests are made of."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from oal_training.cc_select import plain
from oal_training.cc_select import trees as models
from oal_training.cc_select.statistics import ALL
from oal_training.cc_select.utility import Utility

from . import held_out, judge, life, table

SPLITS = table.PLACES


def of_utility(of: table.Table, choices: dict[str, list[np.ndarray]]) -> dict:
    boot = judge.Bootstrap.of(of.paths.condition.to_numpy())
    start = of.algorithms.index(judge.START)
    return {
        "winners": judge.winners(of), "by_seed": judge.by_seed(of, choices["gains"]),
        "starts": judge.starts(of, choices, boot),
        "rivals": judge.rivals(of, choices["gains"], boot),
        "lives": life.lives(of, choices["gains"], start, judge.fixed(of), lambda g: judge.percent(boot, g))
    }


def splits(of: table.Table) -> dict:
    """After a default session, on paths with a value that no lesson had."""
    boot, start = judge.Bootstrap.of(of.paths.condition.to_numpy()), of.algorithms.index(judge.START)
    now, out = judge.swapped(of.worth), {}
    for name in SPLITS:
        fold = np.unique(of.paths[name], return_inverse=True)[1]
        mine = judge.of_choice(of, held_out.choices(of, "gains", fold, starts=[start]))[:, start]
        best = now[np.arange(len(fold)), held_out.best_fixed(of, fold)]
        real, possible = ((worth - now[:, start]).mean(axis=1) for worth in (mine, judge.hindsight(of)))
        out[name] = {"over cubic": judge.percent(boot, real), "share": judge.share(boot, real, possible),
                     "over best fixed": judge.percent(boot, (mine - best).mean(axis=1))}
    return out


def trees(grid: dict, sessions: pd.DataFrame) -> dict:
    """Of each utility, the trees of all sessions: what a host would be given."""
    out = {}
    for name, weights in grid["utilities"].items():
        of = table.table(sessions, grid["congestion_controls"], Utility(**weights))
        fitted = {cc: models.fitted("gains", of.lesson(start)) for start, cc in enumerate(of.algorithms)}
        out[name] = {"algorithms": list(of.algorithms), "least_gain": round(float(models.LEAST_GAIN), 5),
                     "trees": {cc: plain.nodes(model, ALL) for cc, model in fitted.items()}}
    return out


def whole(grid: dict, sessions: pd.DataFrame, harm: Callable, jobs: int = 1) -> dict:
    """`harm(table, choices)`: what playing doubtful paths again gave, and how many there were."""
    out = {}
    for name, weights in grid["utilities"].items():
        of = table.table(sessions, grid["congestion_controls"], Utility(**weights))
        choices = judge.chosen(of, jobs)
        out[name] = of_utility(of, choices)
        if name == "speed":
            out |= {"sessions": int(of.worth.size), "paths": len(of.paths),
                    "conditions": int(of.paths.condition.nunique()), "splits": splits(of),
                    "harm": harm(of, choices["gains"])}
    return out
