"""The rules of `oal_training.rules` on an AP's window, as rivals of each fresh tree.

Column and thresholds are chosen on training items alone, anew only once in a while and on a sample: what they are
changes slowly, and a choice costs more than a fit. Each decision scores them on the very items that it scores trees on.
Their classes are those of persistence.
"""

from __future__ import annotations

import numpy as np
from oal_schema.tree import MISSING

from oal_training import rules
from oal_training.online.score import FINE, POOR, average_precision

SAMPLE = 2000  # calm items that are looked at


class Rivals:
    """`choose` now and then, then `best_onset_ap` of any items: (column, two thresholds)."""

    def __init__(self, every_us: int):
        self._every_us, self._chosen_us = every_us, None
        self.column: rules.Column | None = None
        self.thresholds: rules.Thresholds | None = None

    def choose(self, now_us: int, values: np.ndarray, train: np.ndarray, class_now: np.ndarray, truth: np.ndarray):
        """Look again when it is time: values int64[n, f] of the window, `train` positions of its training items."""
        if self._chosen_us is not None and 0 <= now_us - self._chosen_us < self._every_us:
            return
        calm = train[class_now[train] < POOR]
        calm = calm[:: max(1, -(-len(calm) // SAMPLE))]
        x, onset = _floats(values[calm]), truth[calm] >= POOR
        columns = rules.best_columns(x, onset, rules.PAIRED) if len(calm) else []
        if not columns and self.column is not None:
            return
        self._chosen_us = now_us
        self.column = columns[0] if columns else None
        self.thresholds = rules.best_thresholds(x, onset, columns) if columns else None

    def onset_ap(self, values: np.ndarray, test: np.ndarray, class_now: np.ndarray, truth: np.ndarray):
        """Onset average precision of the column and of the two thresholds on the items at `test`; NaN for none."""
        calm = test[class_now[test] < POOR]
        onset = truth[calm] >= POOR
        found = []
        for rule in (self.column, self.thresholds):
            if rule is None or not len(calm):
                found.append(float("nan"))
                continue
            _, rank = np.unique(_score(rule, values, calm), return_inverse=True)
            top = max(int(rank.max()), 1)
            found.append(average_precision(rank if top <= FINE else rank * FINE // top, onset))
        return tuple(found)


def _floats(values: np.ndarray) -> np.ndarray:
    return np.where(values == MISSING, np.nan, values.astype(np.float64))


def _score(rule: rules.Column | rules.Thresholds, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Score of the items at `rows`, of the columns that the rule reads alone."""
    columns = (rule,) if isinstance(rule, rules.Column) else rule.columns
    x = _floats(values[rows][:, [c.at for c in columns]])
    if isinstance(rule, rules.Column):
        return rules.Column(0, rule.sign).score(x)
    here = tuple(rules.Column(i, c.sign) for i, c in enumerate(columns))
    return rules.Thresholds(here, rule.above, rule.share).score(x)
