"""Turns a classifier's scores into probabilities that come true, learned on items that it was not fitted on."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

METHODS = ("none", "sigmoid", "isotonic")


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return np.log(p / (1 - p))


class Calibrator:
    """One map a class (against the rest), then scaled to sum to 1.

    A class with fewer than `least` items of either kind keeps its probability.
    """

    def __init__(self, method: str, least: int = 5):
        self.method, self.least = method, least
        self.maps: list = []

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Calibrator:
        """Learn from float[n, k] and the true classes."""
        for k in range(proba.shape[1]):
            hit = y == k
            if min(hit.sum(), (~hit).sum()) < self.least:
                self.maps.append(None)
            elif self.method == "isotonic":
                self.maps.append(IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(proba[:, k], hit))
            else:
                self.maps.append(LogisticRegression(C=100).fit(_logit(proba[:, k])[:, None], hit))
        return self

    def __call__(self, proba: np.ndarray) -> np.ndarray:
        """Calibrated float[n, k]."""
        out = proba.astype(float).copy()
        for k, m in enumerate(self.maps):
            if m is not None:
                out[:, k] = (
                    m.predict(proba[:, k])
                    if self.method == "isotonic"
                    else m.predict_proba(_logit(proba[:, k])[:, None])[:, 1]
                )
        total = out.sum(axis=1, keepdims=True)
        return np.where(total > 1e-9, out / np.maximum(total, 1e-9), proba)
