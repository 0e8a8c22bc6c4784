"""Means over seeds with 95 % intervals of Student's t.

The seed fixes what the air draws; threads and clocks of the guest differ a little from run to run, so that equal seeds
are alike and not equal. Two methods are compared seed by seed: what the seeds differ by is not counted as chance."""
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats


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


def _around(value: float, deviations: np.ndarray) -> Figure:
    """A value, and the interval of the mean of deviations, one a seed, whose mean is 0."""
    n = len(deviations)
    if n < 2:
        return Figure(value, math.nan, math.nan, n)
    half = float(stats.t.ppf(0.975, n - 1) * np.std(deviations, ddof=1) / math.sqrt(n))
    return Figure(value, value - half, value + half, n)


def below_by_chance(change: Figure, limit: float) -> float:
    """Probability that a change which is none is seen below `limit` (< 0), by the spread that its seeds show; 0 where
    they show none, or there is one seed alone.
    """
    if not change.half > 0:
        return 0.0
    freedom = change.runs - 1
    return float(stats.t.cdf(limit * stats.t.ppf(0.975, freedom) / change.half, freedom))


def mean(values: list[float]) -> Figure | None:
    """Of values, one a seed; None of none."""
    known = np.array([v for v in values if v is not None], float)
    return _around(float(known.mean()), known - known.mean()) if len(known) else None


def _paired(new: dict[int, float], old: dict[int, float]) -> tuple[float, dict[int, float]] | None:
    """new/old − 1 of the means over the seeds that both have, and each seed's deviation from it; None where there is
    none, or nothing to divide by.
    """
    seeds = [s for s in new if s in old and new[s] is not None and old[s] is not None]
    a, b = np.array([new[s] for s in seeds], float), np.array([old[s] for s in seeds], float)
    if not len(seeds) or b.mean() <= 0:
        return None
    ratio = a.mean() / b.mean()
    return float(ratio - 1), dict(zip(seeds, (a - ratio * b) / b.mean()))


def change(new: dict[int, float], old: dict[int, float]) -> Figure | None:
    """new/old − 1 of the means over the seeds that both have, paired by seed; None where there is none, or nothing to
    divide by. The interval is of the ratio of two means (Cochran, Sampling Techniques, 3rd ed., 6.3), which zeros in
    single seeds do not spoil.
    """
    found = _paired(new, old)
    return _around(found[0], np.array(list(found[1].values()))) if found else None


def mean_difference(pairs: list[tuple[dict[int, float], dict[int, float]]]) -> Figure | None:
    """Mean over scenarios of new − old, paired by seed; of the seeds that every scenario has."""
    of = [{s: new[s] - old[s] for s in new if s in old and new[s] is not None and old[s] is not None}
          for new, old in pairs]
    of = [one for one in of if one]
    if not of:
        return None
    return mean([float(np.mean([one[s] for one in of])) for s in sorted(set.intersection(*map(set, of)))])


def mean_change(pairs: list[tuple[dict[int, float], dict[int, float]]]) -> Figure | None:
    """Mean over scenarios of their changes. Scenarios of one seed count as one draw; seeds that a scenario lacks are
    left out of the interval.
    """
    found = [f for new, old in pairs if (f := _paired(new, old))]
    if not found:
        return None
    seeds = sorted(set.intersection(*(set(deviations) for _, deviations in found)))
    together = np.array([np.mean([deviations[s] for _, deviations in found]) for s in seeds])
    return _around(float(np.mean([value for value, _ in found])), together)
