"""Rules that anybody could write down: one column, or two thresholds. What is learned must beat them, online and in
batch. Nothing is fitted but which column, which way round, and the thresholds; all of it on training items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PAIRED = 10  # columns that thresholds are sought for: the best alone
LEVELS = np.append(np.linspace(0.3, 0.9, 7), [0.95, 0.98])  # quantiles at which they are tried
SMOOTHING = 5.0  # items' worth of the overall share in the share of a cell


def average_precisions(x: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Average precision of each column as a score, float64[2, f]: the greater the likelier, and the other way round.
    x float64[n, f] without NaN; positive bool[n]. Equal values are one step. NaN unless both kinds are there.
    """
    found = np.full((2, x.shape[1]), np.nan)
    if not positive.any() or positive.all():
        return found
    for f in range(x.shape[1]):
        order = np.argsort(x[:, f], kind="stable")
        values, hits = x[order, f], positive[order]
        last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
        total, true = np.diff(last, prepend=-1), np.diff(np.cumsum(hits)[last], prepend=0)
        for way, (n, k) in enumerate(((total[::-1], true[::-1]), (total, true))):
            found[way, f] = np.sum(k * np.cumsum(k) / np.cumsum(n)) / positive.sum()
    return found


def known(x: np.ndarray) -> np.ndarray:
    """The same without NaN: a missing value is less than every other of its column."""
    least = np.nan_to_num(np.nanmin(np.where(np.isnan(x), np.inf, x), axis=0, initial=np.inf), posinf=0.0)
    return np.where(np.isnan(x), least - 1, x)


@dataclass(frozen=True)
class Column:
    """One column as it is: `sign` 1, the greater the likelier; −1, the other way round."""

    at: int
    sign: int

    def score(self, x: np.ndarray) -> np.ndarray:
        """float64[n] of float64[n, f]; a missing value is the least likely."""
        value = self.sign * x[:, self.at].astype(np.float64)
        return np.where(np.isnan(value), -np.inf, value)


@dataclass(frozen=True)
class Thresholds:
    """Two conditions `column above (below) a value`; `share` float[2, 2]: of the items for which the first and the
    second hold (1) or not (0), how many had what was to be foreseen.
    """

    columns: tuple[Column, Column]
    above: tuple[float, float]
    share: np.ndarray

    def cell(self, x: np.ndarray) -> np.ndarray:
        """0…3: both conditions of each item as two bits."""
        first, second = (c.score(x) > t for c, t in zip(self.columns, self.above))
        return 2 * first + second

    def score(self, x: np.ndarray) -> np.ndarray:
        """float64[n], the share of the item's cell."""
        return self.share.reshape(4)[self.cell(x)]


def best_columns(x: np.ndarray, positive: np.ndarray, most: int = 1) -> list[Column]:
    """The columns with the greatest average precision, best first; none when nothing or everything is positive."""
    quality = average_precisions(known(x), positive)
    if np.isnan(quality).all():
        return []
    order = np.argsort(-quality.max(axis=0), kind="stable")[:most]
    return [Column(int(f), 1 if quality[0, f] >= quality[1, f] else -1) for f in order]


def best_thresholds(x: np.ndarray, positive: np.ndarray, columns: list[Column]) -> Thresholds | None:
    """The pair of conditions on two of these columns, or twice on one, whose four cells have the greatest average
    precision; None when nothing can be told apart.
    """
    tried, masks = [], []
    for column in columns:
        value = column.score(x)
        some = value[np.isfinite(value)]
        for t in np.unique(np.quantile(some, LEVELS, method="higher")) if len(some) else ():
            mask = value > t
            if mask.any():
                tried.append((column, float(t)))
                masks.append(mask)
    if not tried or not positive.any() or positive.all():
        return None
    m = np.array(masks, np.float32)
    cells = [_cells(m @ m.T, len(positive)), _cells(m[:, positive] @ m[:, positive].T, int(positive.sum()))]
    n, k = cells  # [pairs, pairs, 4]
    rate = np.where(n > 0, k / np.maximum(n, 1), -1.0)
    order = np.argsort(-rate, axis=2, kind="stable")
    n, k = (np.take_along_axis(c, order, 2) for c in (n, k))
    quality = np.sum(k * np.cumsum(k, 2) / np.maximum(np.cumsum(n, 2), 1), axis=2) / positive.sum()
    i, j = np.unravel_index(int(np.argmax(quality)), quality.shape)
    overall = float(positive.mean())
    share = (cells[1][i, j] + SMOOTHING * overall) / (cells[0][i, j] + SMOOTHING)
    return Thresholds((tried[i][0], tried[j][0]), (tried[i][1], tried[j][1]), share.reshape(2, 2))


def _cells(both: np.ndarray, n: int) -> np.ndarray:
    """Numbers of the cells neither, second, first, both of all pairs, float64[p, p, 4]."""
    both = both.astype(np.float64)
    alone = np.diagonal(both)
    first, second = alone[:, None] - both, alone[None, :] - both
    return np.stack([n - first - second - both, second, first, both], axis=2)
