"""Classes in an order, as one regression that is cut: Poor taken for Bad costs less than Poor taken for Good."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from oal_training.batch.scores import confusion
from oal_training.macro_f1 import macro_f1

STEPS = 40


class Ordinal:
    """XGBoost regression of the class index.

    Cuts (best macro F1) and probabilities (a logistic curve P(class ≥ c | value) a cut) are learned on the latest
    quarter of the training items, which that regression has not seen; then the regression is fitted on all of them.
    """

    def __init__(self, params: dict, seed: int):
        self.params = {
            "n_estimators": 150,
            "max_depth": 4,
            "learning_rate": 0.08,
            "subsample": 0.8,
            "colsample_bytree": 0.7,
            "min_child_weight": 5,
            "tree_method": "hist",
            "n_jobs": 1,
            "random_state": seed,
            "verbosity": 0,
        } | params

    def _regression(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray | None):
        from xgboost import XGBRegressor

        return XGBRegressor(**self.params).fit(x, y.astype(float), sample_weight=weight)

    def fit(
        self, x: np.ndarray, y: np.ndarray, ts_us: np.ndarray, embargo_us: int, sample_weight: np.ndarray | None = None
    ) -> Ordinal:
        """Classes are 0…k−1."""
        self.k = int(y.max()) + 1
        at = np.quantile(ts_us, 0.75)
        early, late = ts_us + embargo_us <= at, ts_us >= at
        if early.sum() < 50 or late.sum() < 50 or len(np.unique(y[early])) < 2:
            early = late = np.ones(len(y), bool)
        value = self._regression(x[early], y[early], None if sample_weight is None else sample_weight[early]).predict(
            x[late]
        )
        self.cuts = _best_cuts(value, y[late], self.k)
        self.curves = [
            (
                LogisticRegression(C=100).fit(value[:, None], y[late] >= c)
                if 0 < np.sum(y[late] >= c) < late.sum()
                else None
            )
            for c in range(1, self.k)
        ]
        self.model = self._regression(x, y, sample_weight)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Class index by the cuts."""
        return np.searchsorted(self.cuts, self.model.predict(x), side="right")

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        """float[n, k]; a class that the latest quarter did not have is told from its neighbour by a step halfway."""
        value = self.model.predict(x)
        at_least = [np.ones(len(value))]
        for c, curve in enumerate(self.curves, 1):
            p = curve.predict_proba(value[:, None])[:, 1] if curve is not None else (value >= c - 0.5).astype(float)
            at_least.append(np.minimum(p, at_least[-1]))
        at_least.append(np.zeros(len(value)))
        return -np.diff(np.column_stack(at_least), axis=1)


def _best_cuts(value: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Rising cuts between classes, moved one at a time, twice over, to where macro F1 is best."""
    cuts = np.arange(k - 1) + 0.5
    for _ in range(2):
        for c in range(k - 1):
            lowest = cuts[c - 1] if c else -np.inf
            highest = cuts[c + 1] if c + 1 < k - 1 else np.inf
            tried = [
                t
                for t in (*np.linspace(max(c - 0.2, lowest), min(c + 1.2, highest), STEPS), cuts[c])
                if lowest <= t <= highest
            ]
            cut = [np.searchsorted(np.where(np.arange(k - 1) == c, t, cuts), value, side="right") for t in tried]
            quality = [macro_f1(confusion(y, predicted, k)) for predicted in cut]
            best = max(quality)
            near = [t for t, q in zip(tried, quality) if q >= best - 1e-9]
            cuts[c] = near[int(np.argmin(np.abs(np.array(near) - (c + 0.5))))]
    return cuts
