"""Choices on conditions that a model has not seen."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oal_training.cc_select import trees
from oal_training.cc_select.statistics import ALL

from .table import Table

FOLDS = 5


def folds(conditions: np.ndarray, seed: int) -> np.ndarray:
    """A fold of each row, the same for all rows of a condition."""
    known, where = np.unique(conditions, return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(known)) % FOLDS)[where]


def choices(of: Table, kind: str, fold: np.ndarray, columns: tuple[str, ...] = ALL,
            starts: Sequence[int] | None = None) -> np.ndarray:
    """path × algorithm that the session had × its repetition → column of the algorithm that is chosen. `fold`: of each
    path; a model chooses for the paths of a fold, and learned from the others. `starts`: after which algorithms (None:
    all); after others the same one is kept.
    """
    out = np.broadcast_to(np.arange(len(of.algorithms))[:, None], of.worth.shape).copy()
    every = np.tile(fold, of.repetitions)
    for start in range(len(of.algorithms)) if starts is None else starts:
        lesson = of.lesson(start, columns)
        chosen = np.empty(len(every), int)
        for n in np.unique(fold):
            model = trees.fitted(kind, lesson.part(np.flatnonzero(every != n)))
            chosen[every == n] = model.choose(lesson.statistics[every == n])
        out[:, start] = chosen.reshape(of.repetitions, -1).T
    return out


def best_fixed(of: Table, fold: np.ndarray) -> np.ndarray:
    """Of each path the algorithm that was best, on the mean, on the paths of the other folds."""
    out = np.empty(len(fold), int)
    for n in np.unique(fold):
        out[fold == n] = of.worth[fold != n].mean(axis=(0, 2)).argmax()
    return out
