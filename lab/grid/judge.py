"""What choices bring, in percent, with intervals: means over paths of held-out conditions, conditions drawn anew.

A gain is that of the next session: the choice is made by a session of one repetition, and judged by sessions of the
other. Gains are logarithms of ratios; `percent` is that of the geometric mean, `ratio` the mean of the ratios
themselves, which few paths with a large ratio rule.
"""
from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from oal_training.cc_select.statistics import ALL, MORE, PAPER

from . import held_out
from .table import Table

DRAWS = 2000
LEVEL = (2.5, 97.5)
SEEDS = range(10)
FEW_SEEDS = range(3)  # of rivals, which take longer to fit
START = "cubic"  # what a host has by default
#: name → kind of model, what it sees, seeds of folds
MODELS = {
    "gains": ("gains", ALL, SEEDS), "gains-paper": ("gains", PAPER, FEW_SEEDS),
    "gains-more": ("gains", (*PAPER, *MORE), FEW_SEEDS),
    "anchored": ("anchored", ALL, FEW_SEEDS), "best": ("best", ALL, FEW_SEEDS),
    "quality": ("quality", ALL, FEW_SEEDS)
}


@dataclass(frozen=True)
class Bootstrap:
    """Draws of conditions with replacement; the same draws for every figure, so that differences are paired."""

    of_path: np.ndarray  # number of each path's condition
    weights: np.ndarray  # draw × condition

    @staticmethod
    def of(conditions: np.ndarray, seed: int = 0) -> Bootstrap:
        known, where = np.unique(conditions, return_inverse=True)
        drawn = np.random.default_rng(seed).integers(len(known), size=(DRAWS, len(known)))
        return Bootstrap(where, np.stack([np.bincount(row, minlength=len(known)) for row in drawn]))

    def means(self, values: np.ndarray) -> np.ndarray:
        """Of a value a path: that of all paths first, then that of each draw. NaN: not of these paths."""
        known = np.isfinite(values)
        sums = np.bincount(self.of_path, np.where(known, values, 0), self.weights.shape[1])
        counts = np.bincount(self.of_path, known, self.weights.shape[1])
        each = np.vstack([np.ones(len(sums)), self.weights])
        with np.errstate(invalid="ignore"):  # a draw may have none of a small group's conditions
            return (each @ sums) / (each @ counts)


def figure(values: np.ndarray) -> list[float]:
    """[value, low, high] of what `Bootstrap.means` gives."""
    return [round(float(v), 4) for v in (values[0], *np.nanpercentile(values[1:], LEVEL))]


def percent(boot: Bootstrap, gains: np.ndarray) -> list[float]:
    return figure(100 * np.expm1(boot.means(gains)))


def ratio(boot: Bootstrap, gains: np.ndarray) -> list[float]:
    return figure(100 * boot.means(np.expm1(gains)))


def share(boot: Bootstrap, real: np.ndarray, possible: np.ndarray, of_ratios: bool = False) -> list[float]:
    """Percent of what is possible."""
    by = (lambda g: boot.means(np.expm1(g))) if of_ratios else (lambda g: np.expm1(boot.means(g)))
    return figure(100 * by(real) / by(possible))


def swapped(worth: np.ndarray) -> np.ndarray:
    """Of each repetition, what a session of the other one was worth."""
    if worth.shape[2] != 2:
        raise ValueError("two repetitions: one to choose by, one to judge by")
    return worth[:, :, ::-1]


def of_choice(of: Table, chosen: np.ndarray) -> np.ndarray:
    """path × start × repetition → what the chosen algorithm's next session is worth."""
    return np.take_along_axis(swapped(of.worth), chosen, axis=1)


def hindsight(of: Table) -> np.ndarray:
    """path × repetition: the best of the sessions that judge. Nobody can know it: it has the luck of six sessions."""
    return swapped(of.worth).max(axis=1)


def tried(of: Table) -> np.ndarray:
    """path × repetition: the algorithm that was best when each was tried once before. The grid's oracle without luck.
    """
    best = of.worth.argmax(axis=1)[:, None]
    return np.take_along_axis(swapped(of.worth), best, axis=1)[:, 0]


def chosen(of: Table, jobs: int = 1) -> dict[str, list[np.ndarray]]:
    """Of each model its choices, an array a seed; `jobs` processes."""
    conditions = of.paths.condition.to_numpy()
    with ProcessPoolExecutor(jobs) as pool:
        made = {name: [pool.submit(held_out.choices, of, kind, held_out.folds(conditions, seed), columns)
                       for seed in seeds] for name, (kind, columns, seeds) in MODELS.items()}
        return {name: [one.result() for one in every] for name, every in made.items()}


def fixed(of: Table) -> np.ndarray:
    """path × repetition: what the algorithm that is best on the mean elsewhere is worth, over all seeds of folds."""
    conditions, rows = of.paths.condition.to_numpy(), np.arange(len(of.paths))
    return np.mean([swapped(of.worth)[rows, held_out.best_fixed(of, held_out.folds(conditions, seed))]
                    for seed in SEEDS], axis=0)


def starts(of: Table, choices: dict[str, list[np.ndarray]], boot: Bootstrap) -> dict:
    """Of each algorithm that a session had: what was possible, and what each model's choice brought."""
    now, out = swapped(of.worth), {}
    after = {name: np.mean([of_choice(of, c) for c in every], axis=0) for name, every in choices.items()}
    for s, start in enumerate(of.algorithms):
        gain = lambda worth, s=s: (worth - now[:, s]).mean(axis=1)
        possible, again = gain(hindsight(of)), gain(tried(of))
        said = {"possible": percent(boot, possible), "possible_ratio": ratio(boot, possible),
                "tried": percent(boot, again), "fixed": percent(boot, gain(fixed(of)))}
        for name, worth in after.items():
            real = gain(worth[:, s])
            stays = np.mean([(c[:, s] == s).mean() for c in choices[name]])
            said[name] = {
                "real": percent(boot, real), "ratio": ratio(boot, real), "share": share(boot, real, possible),
                "share_ratio": share(boot, real, possible, True), "share_tried": share(boot, real, again),
                "against_fixed": percent(boot, gain(worth[:, s]) - gain(fixed(of))), "stays": round(float(stays), 3)
            }
        out[start] = said
    return out


def rivals(of: Table, choices: list[np.ndarray], boot: Bootstrap) -> dict:
    """By all paths and by part of them, what the choice after a session with the default brings over each algorithm for
    all, the best one of them, and what is possible.
    """
    mine = np.mean([of_choice(of, c) for c in choices], axis=0)[:, of.algorithms.index(START)]
    others = {name: swapped(of.worth)[:, n] for n, name in enumerate(of.algorithms)}
    others |= {"best fixed": fixed(of), "tried": tried(of), "hindsight": hindsight(of)}
    groups = {"all": np.ones(len(of.paths), bool)}
    for column in ("queue", "rate_mbps", "loss", "delay_ms", "jitter_ratio"):
        groups |= {f"{column} {value}": (of.paths[column] == value).to_numpy()
                   for value in sorted(of.paths[column].unique())}
    return {group: {name: percent(boot, np.where(where, (mine - worth).mean(axis=1), np.nan))
                    for name, worth in others.items()} for group, where in groups.items()}


def by_seed(of: Table, choices: list[np.ndarray]) -> list[float]:
    """Of each seed of the folds, the mean gain after a default session, in percent."""
    s = of.algorithms.index(START)
    return [round(float(100 * np.expm1((of_choice(of, c) - swapped(of.worth))[:, s].mean())), 3) for c in choices]


def losers(of: Table, choices: list[np.ndarray], limit: float = np.log(0.98)) -> np.ndarray:
    """Paths on which the choice after a default session is worth less than the default by more than the limit, over
    both repetitions and all seeds; chance is among the reasons.
    """
    s = of.algorithms.index(START)
    real = np.mean([(of_choice(of, c)[:, s] - swapped(of.worth)[:, s]).mean(axis=1) for c in choices], axis=0)
    return np.flatnonzero(real < limit)


def winners(of: Table) -> dict[str, float]:
    """Share of paths on which an algorithm is best, by the mean of both repetitions."""
    best = of.worth.mean(axis=2).argmax(axis=1)
    return {name: round(float((best == n).mean()), 3) for n, name in enumerate(of.algorithms)}
