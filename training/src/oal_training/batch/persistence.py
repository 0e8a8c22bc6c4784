"""The baseline: it stays as it is. Congestion lasts, so this is hard to beat, and it is shown beside every model.

Predicted class: the class of the window that ends now. Probabilities: how often each class followed that class in the
training items. Score for onset: among items without congestion now it is either that probability or the loss ratio now
(finer: 4 % is nearer to Poor than 1 %); the report takes whichever has the greater average precision on the very items
judged, which favours the baseline.
"""

from __future__ import annotations

import numpy as np

from oal_training.batch.scores import average_precision
from oal_training.stored.items import UNKNOWN, Items


class Persistence:
    """Learns how often a class follows a class."""

    def __init__(self, k: int):
        self.k = k

    def fit(self, items: Items) -> Persistence:
        """Counts with 1/k item added to each, so that nothing is impossible."""
        counts = np.full((self.k + 1, self.k), 1.0 / self.k)
        np.add.at(counts, (items.now, items.y), 1)  # row −1, the last one: nothing known
        counts[-1] = counts.sum(axis=0)
        self.table = counts / counts.sum(axis=1, keepdims=True)
        self.commonest = int(np.argmax(counts[-1]))
        return self

    def proba(self, items: Items) -> np.ndarray:
        """float[n, k]."""
        return self.table[items.now]

    def predict(self, items: Items) -> np.ndarray:
        """The class now; the commonest where nobody knows it."""
        return np.where(items.now == UNKNOWN, self.commonest, items.now)


def onset_score(items: Items, proba: np.ndarray) -> tuple[np.ndarray, str]:
    """The better of both scores on these items, and its name."""
    by_class = proba[:, items.congested_from :].sum(axis=1)
    c = items.candidates
    known = np.isfinite(items.loss_now)
    if not known[c].any():
        return by_class, "class now"
    # where the ratio is unknown: the middle of those of the same class
    middle = {k: np.median(items.loss_now[known & (items.now == k)]) for k in set(items.now[known].tolist())}
    by_loss = np.where(known, items.loss_now, [middle.get(k, 0.0) for k in items.now.tolist()])
    onset = items.congested[c]
    better = average_precision(onset, by_loss[c]) > average_precision(onset, by_class[c])
    return (by_loss, "loss ratio now") if better else (by_class, "class now")
