"""Trees from the statistics of one algorithm's sessions to the algorithm of the next one.

`Gains`: a regression tree whose leaves say what each algorithm brings over the one that the session had. `Anchored`:
the same tree, but what has to be beaten is the algorithm that is best on the mean. `Best`: a classifier of the best
one. `Quality`: as published, classifiers of the path (rate, loss, delay, jitter: four of them)
and a table from there to the best algorithm; a path that the table lacks is judged by those nearest to it.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

LEAST_GAIN = np.log(1.05)  # what is predicted has to be more, else the algorithm stays
LEAVES = (8, 32)  # chosen among them within the sessions that are learned from
LEAST_SESSIONS = 6  # a leaf has so many
INNER_FOLDS = 2


@dataclass(frozen=True)
class Lesson:
    """Sessions of one algorithm. Rows are sessions; `worth` has a column an algorithm: what the next session on that
    path is worth with it. `condition` says which belong together, `quality` has the path's places in the grid.
    """

    start: int  # column of the algorithm that these sessions had
    statistics: np.ndarray
    worth: np.ndarray
    condition: np.ndarray
    quality: np.ndarray

    def part(self, rows: np.ndarray) -> Lesson:
        return Lesson(self.start, self.statistics[rows], self.worth[rows], self.condition[rows], self.quality[rows])

    @property
    def gains(self) -> np.ndarray:
        return self.worth - self.worth[:, [self.start]]


def kept(predicted: np.ndarray, start: int, least_gain: float = LEAST_GAIN) -> np.ndarray:
    """Of predicted worths, a column an algorithm: the best one, or `start` where it gains too little."""
    best = predicted.argmax(axis=1)
    gain = predicted[np.arange(len(predicted)), best] - predicted[:, start]
    return np.where(gain >= least_gain, best, start)


class Gains:
    """One tree an algorithm, with a leaf's mean gains: what a `grid` of the bundle would hold."""

    def __init__(self, leaves: int, least_gain: float = LEAST_GAIN):
        self.leaves, self.least_gain = leaves, least_gain

    def fit(self, of: Lesson) -> Gains:
        self.start = of.start
        self.tree = DecisionTreeRegressor(max_leaf_nodes=self.leaves, min_samples_leaf=LEAST_SESSIONS, random_state=0)
        self.tree.fit(of.statistics, of.gains)
        return self

    def choose(self, statistics: np.ndarray) -> np.ndarray:
        return kept(self.tree.predict(statistics), self.start, self.least_gain)


class Anchored(Gains):
    """The best algorithm for all, unless another one is predicted to gain enough over *that*; what the session had does
    not count. Right where most paths have the same best one, and a change costs nothing but a wrong guess.
    """

    def fit(self, of: Lesson) -> Anchored:
        super().fit(of)
        self.anchor = int(of.gains.mean(axis=0).argmax())
        return self

    def choose(self, statistics: np.ndarray) -> np.ndarray:
        return kept(self.tree.predict(statistics), self.anchor, self.least_gain)


class Best:
    """A classifier of the best algorithm; a session counts by what a wrong choice costs. No prediction of a gain: there
    is nothing to hold a change against.
    """

    def __init__(self, leaves: int):
        self.leaves = leaves

    def fit(self, of: Lesson) -> Best:
        best = of.worth.argmax(axis=1)
        cost = of.worth.max(axis=1) - of.worth.mean(axis=1)
        self.tree = DecisionTreeClassifier(max_leaf_nodes=self.leaves, min_samples_leaf=LEAST_SESSIONS, random_state=0)
        self.tree.fit(of.statistics, best, sample_weight=cost + 1e-6)
        return self

    def choose(self, statistics: np.ndarray) -> np.ndarray:
        return self.tree.predict(statistics)


class Quality:
    """Statistics → the path's places in the grid → the algorithm that was best there."""

    def __init__(self, leaves: int, least_gain: float = LEAST_GAIN):
        self.leaves, self.least_gain = leaves, least_gain

    def fit(self, of: Lesson) -> Quality:
        self.start = of.start
        make = lambda: DecisionTreeClassifier(max_leaf_nodes=self.leaves, min_samples_leaf=LEAST_SESSIONS,
                                              random_state=0)
        self.trees = [make().fit(of.statistics, column) for column in of.quality.T]
        self.known, where = np.unique(of.quality, axis=0, return_inverse=True)
        where = where.ravel()
        self.gains = np.stack([of.gains[where == n].mean(axis=0) for n in range(len(self.known))])
        return self

    def choose(self, statistics: np.ndarray) -> np.ndarray:
        asked = np.stack([tree.predict(statistics) for tree in self.trees], axis=1)
        away = np.abs(asked[:, None, :] - self.known[None]).sum(axis=2)
        nearest = away == away.min(axis=1, keepdims=True)
        return kept((nearest @ self.gains) / nearest.sum(axis=1, keepdims=True), self.start, self.least_gain)


KINDS = {"gains": Gains, "anchored": Anchored, "best": Best, "quality": Quality}


def brings(chosen: np.ndarray, of: Lesson) -> np.ndarray:
    """What a choice is worth more than staying, of each session."""
    return of.gains[np.arange(len(chosen)), chosen]


def fitted(kind: str, of: Lesson):
    """A model with as many leaves as did best on conditions of the lesson that were left out; fewer where equal."""
    folds = list(GroupKFold(INNER_FOLDS).split(of.statistics, groups=of.condition))
    scores = [np.mean([brings(KINDS[kind](leaves).fit(of.part(train)).choose(of.statistics[test]),
                              of.part(test)).mean() for train, test in folds]) for leaves in LEAVES]
    return KINDS[kind](LEAVES[int(np.argmax(scores))]).fit(of)
