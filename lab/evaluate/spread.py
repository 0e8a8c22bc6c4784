"""Means over seeds with 95 % intervals: Student's t for a mean; for the ratio of two methods a bootstrap over seeds,
the same seeds of both.

The seed fixes what the air draws; threads and clocks of the guest differ a little from run to run, so that equal seeds
are alike and not equal."""
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

ROUNDS = 2000


@dataclass(frozen=True)
class Figure:
    """A value with its interval; low and high are NaN where one run says nothing of the spread."""

    value: float
    low: float
    high: float
    runs: int

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


def mean(values: list[float]) -> Figure | None:
    values = [v for v in values if v is not None]
    if not values:
        return None
    n, middle = len(values), float(np.mean(values))
    if n == 1:
        return Figure(middle, math.nan, math.nan, 1)
    half = float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
    return Figure(middle, middle - half, middle + half, n)


def change(new: dict[int, float], old: dict[int, float]) -> Figure | None:
    """new/old − 1 of the means over the seeds that both have; None where there is none, or nothing to divide by."""
    seeds = [s for s in new if s in old and new[s] is not None and old[s] is not None]
    a, b = np.array([new[s] for s in seeds], float), np.array([old[s] for s in seeds], float)
    if not len(seeds) or b.mean() <= 0:
        return None
    value = float(a.mean() / b.mean() - 1)
    if len(seeds) == 1:
        return Figure(value, math.nan, math.nan, 1)
    rows = np.random.default_rng(1).integers(0, len(seeds), (ROUNDS, len(seeds)))
    below = b[rows].mean(axis=1)
    drawn = np.divide(a[rows].mean(axis=1), below, out=np.ones(ROUNDS), where=below > 0) - 1
    return Figure(value, *(float(v) for v in np.percentile(drawn, [2.5, 97.5])), len(seeds))
