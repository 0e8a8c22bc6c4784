"""One tree from a session's features, its congestion control among them, to that of the next one; and its judge.

What is judged is never what was learned from: networks are left out in turn, or where there is one network alone, its
later sessions. Rivals cost nothing: staying with what each session had, and the best candidate for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeClassifier

from oal_training.cc_select.lessons import Lessons
from oal_training.cc_select.trees import INNER_FOLDS, LEAST_SESSIONS, LEAVES

FOLDS = 5
ROUNDS = 2000  # draws of networks
LEAST_NETWORKS = 8  # fewer are too few to draw from
Folds = list[tuple[Lessons, Lessons]]  # learned from, judged by


class Choice:
    """A small classifier of the best candidate. `confidence`: share that a leaf's class must have, or nothing is chosen
    and the session's own one stays, as on a host.
    """

    def __init__(self, leaves: int, confidence: float):
        self.leaves, self.confidence = leaves, confidence

    def fit(self, of: Lessons) -> Choice:
        """Lessons count by what a wrong choice costs."""
        self.tree = DecisionTreeClassifier(max_leaf_nodes=self.leaves, min_samples_leaf=LEAST_SESSIONS, random_state=0)
        self.tree.fit(of.x.astype(np.float32), of.right, sample_weight=of.cost)
        return self

    def choose(self, of: Lessons) -> np.ndarray:
        """int64[m]: place among the candidates."""
        share = self.tree.predict_proba(of.x.astype(np.float32))
        said = np.asarray(self.tree.classes_)[share.argmax(axis=1)]
        return np.where(share.max(axis=1) >= self.confidence, said, of.own)


def fitted(of: Lessons, confidence: float) -> Choice:
    """With as many leaves as did best on networks that were left out; fewer where equal, or where there is one."""
    leaves = LEAVES[0]
    networks = len(np.unique(of.network))
    if networks >= INNER_FOLDS:
        folds = by_network(of, INNER_FOLDS)
        scores = [
            np.mean([brings(Choice(n, confidence).fit(early).choose(late), late).mean() for early, late in folds])
            for n in LEAVES
        ]
        leaves = LEAVES[int(np.argmax(scores))]
    return Choice(leaves, confidence).fit(of)


def brings(chosen: np.ndarray, of: Lessons) -> np.ndarray:
    """What a choice is worth more than staying, of each."""
    return of.of(chosen) - of.of(of.own)


def by_network(of: Lessons, folds: int = FOLDS) -> Folds:
    """Each network once among those that are judged by."""
    many = min(folds, len(np.unique(of.network)))
    return [(of.part(a), of.part(b)) for a, b in GroupKFold(many).split(of.x, groups=of.network)]


@dataclass(frozen=True)
class Gain:
    """Percent of the geometric mean, with its 95 % interval, None where networks are too few to say; sessions,
    networks: on which.
    """

    percent: float
    low: float | None
    high: float | None
    sessions: int
    networks: int


@dataclass(frozen=True)
class Judged:
    """over_same, over_best_fixed: what the tree's choices bring over those of a rival; possible: what the best
    candidate that is known would have brought over staying; fixed: place of the best one for all; changed: share of
    sessions that get another one; said, right, had: sessions by candidate, of the tree, in truth and as they were.
    """

    over_same: Gain
    over_best_fixed: Gain
    possible: Gain
    fixed: int
    changed: float
    said: tuple[int, ...]
    right: tuple[int, ...]
    had: tuple[int, ...]


def judge(folds: Folds, confidence: float) -> Judged:
    """Of trees that did not see what they are judged by. The best one for all is chosen on what is judged, which
    favours it; where nobody knows it, nothing is compared with it.
    """
    tests = [late for _, late in folds]
    chosen = np.concatenate([fitted(early, confidence).choose(late) for early, late in folds])
    every = Lessons(
        *(np.concatenate([getattr(t, name) for t in tests]) for name in ("x", "own", "worth", "network", "ts_us"))
    )
    k = every.worth.shape[1]
    staying = every.of(every.own)
    fixed = best_for_all(every)
    alone = every.worth[:, fixed]
    count = lambda places: tuple(int(n) for n in np.bincount(places, minlength=k))
    return Judged(
        gain(every.of(chosen) - staying, every.network),
        gain(every.of(chosen) - alone, every.network),
        gain(np.nanmax(every.worth, axis=1) - staying, every.network),
        fixed,
        float(np.mean(chosen != every.own)),
        count(chosen),
        count(every.right),
        count(every.own),
    )


def best_for_all(of: Lessons) -> int:
    """The candidate with the greatest mean gain over staying, of the sessions where it is known; one that is known of
    fewer than half as many sessions as the best known one says too little.
    """
    known = np.isfinite(of.worth).sum(axis=0)
    gains = np.nan_to_num(of.worth - of.of(of.own)[:, None]).sum(axis=0) / np.maximum(known, 1)
    return int(np.where(known * 2 >= known.max(), gains, -np.inf).argmax())


def gain(logarithms: np.ndarray, network: np.ndarray, rounds: int = ROUNDS) -> Gain:
    """Of differences of worth, NaN where there is none; networks are drawn with replacement."""
    there = np.isfinite(logarithms)
    values, of = logarithms[there], np.unique(network[there], return_inverse=True)[1]
    networks = int(of.max()) + 1 if len(of) else 0
    mean = float(values.mean()) if len(values) else float("nan")
    low = high = None
    if networks >= LEAST_NETWORKS:
        sums, counts = np.bincount(of, values), np.bincount(of)
        drawn = np.random.default_rng(0).multinomial(networks, np.full(networks, 1 / networks), rounds)
        low, high = (percent(v) for v in np.percentile((drawn @ sums) / (drawn @ counts), (2.5, 97.5)))
    return Gain(percent(mean), low, high, int(there.sum()), networks)


def percent(logarithm: float) -> float:
    """Of a ratio's logarithm."""
    return 100 * float(np.expm1(logarithm))
