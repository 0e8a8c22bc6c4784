"""What a model must beat beside persistence: rules of `oal_training.rules`, chosen on the training items alone.

Each column and each pair of thresholds is chosen twice: for all onsets, and for those before the first drop, so that
no figure is won against a rule that was meant for another. Classes of a column are those of persistence; of two
thresholds, persistence's or the commonest of the cell and the class now, whichever has the better macro F1 there.
"""

from __future__ import annotations

import numpy as np

from oal_training import rules
from oal_training.batch.before import not_yet_dropped
from oal_training.batch.persistence import Persistence
from oal_training.batch.scores import confusion
from oal_training.macro_f1 import macro_f1
from oal_training.stored.items import Items

COLUMN, THRESHOLDS = "best column", "two thresholds"
BEFORE = ", before the drop"
CHEAP = (COLUMN, COLUMN + BEFORE, THRESHOLDS, THRESHOLDS + BEFORE)
PRIOR = 10.0  # items' worth of persistence in the frequencies of a cell


class Rule:
    """One of CHEAP. `said` tells what was chosen."""

    def __init__(self, name: str, k: int):
        self.name, self.k, self.said = name, k, "nothing"
        self.rule: rules.Column | rules.Thresholds | None = None
        self._table = None

    def fit(self, items: Items) -> Rule:
        """Choose on all of these items."""
        self.base = Persistence(self.k).fit(items)
        rows = items.candidates & (not_yet_dropped(items) if self.name.endswith(BEFORE) else True)
        x, onset = items.x[rows], items.congested[rows]
        paired = self.name.startswith(THRESHOLDS)
        columns = rules.best_columns(x, onset, rules.PAIRED if paired else 1)
        if not columns:
            return self
        sign = {1: "", -1: "−"}
        if not paired:
            self.rule = columns[0]
            self.said = sign[self.rule.sign] + items.names[self.rule.at]
            ranked = self.rule.score(x)
            self._scale = np.sort(ranked[np.isfinite(ranked)])
            return self
        self.rule = rules.best_thresholds(x, onset, columns)
        if self.rule is None:
            return self
        self.said = ", ".join(
            f"{sign[c.sign]}{items.names[c.at]} > {t:g}" for c, t in zip(self.rule.columns, self.rule.above)
        )
        cell = self.rule.cell(items.x)
        counts = np.zeros((4, self.k + 1, self.k))
        np.add.at(counts, (cell, items.now, items.y), 1)
        self._table = (counts + PRIOR * self.base.table) / (counts.sum(axis=2, keepdims=True) + PRIOR)
        of_table = macro_f1(confusion(items.y, np.argmax(self._table[cell, items.now], axis=1), self.k))
        self._by_table = of_table > macro_f1(confusion(items.y, self.base.predict(items), self.k))
        return self

    def proba(self, items: Items) -> np.ndarray:
        """float[n, k]."""
        return self.base.proba(items) if self._table is None else self._table[self.rule.cell(items.x), items.now]

    def predict(self, items: Items) -> np.ndarray:
        """Class of each item, int64[n]."""
        if self._table is None or not self._by_table:
            return self.base.predict(items)
        return np.argmax(self.proba(items), axis=1)

    def score(self, items: Items) -> np.ndarray:
        """float[n], the greater the likelier congestion. Of a column: its rank among the training items, and beyond
        them as it rises, so that folds with different columns can be put together and no order is lost.
        """
        if self.rule is None:
            return np.zeros(len(items))
        if isinstance(self.rule, rules.Thresholds):
            return self.rule.score(items.x)
        value = self.rule.score(items.x)
        rank = np.searchsorted(self._scale, value, side="right") / max(len(self._scale), 1)
        finite = np.where(np.isfinite(value), value, 0.0)
        return np.where(np.isfinite(value), rank + 1e-6 * finite / (1 + np.abs(finite)), -1.0)
