"""Kendall's tau-b and information gain of a metric with the congestion loss ratio, with intervals.

Neighbouring items share most of their windows, so intervals draw whole blocks of time. Both figures are made from one
table of counts a block (bins of the metric by bins of the loss), which can be added up for any draw. tau-b itself is
exact (scipy, all items); its interval is that of the binned one, moved by what the two differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDS = 500
TAU_BINS = 40  # of metric and of loss, equally full; tau-b of the bins is within .01 of the exact one
GAIN_BINS = 10  # of the metric, equally full, and one more for "missing"
MIN_ITEMS = 200
MIN_BLOCKS = 8  # fewer are no sample to draw from: no interval


@dataclass(frozen=True)
class Association:
    """tau: Kendall's tau-b of metric and loss ratio; gain: H(class) - H(class | bin of the metric), bits; spans:
    95 % intervals; chance: gain that the metric would have without any relation (95th percentile over its blocks dealt
    out anew); n: items. NaN where the metric or the loss does not vary.
    """

    tau: float
    tau_span: tuple[float, float]
    gain: float
    gain_span: tuple[float, float]
    chance: float
    n: int


NONE = Association(float("nan"), (float("nan"),) * 2, float("nan"), (float("nan"),) * 2, float("nan"), 0)


def quantile_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """Number of the bin of each value, int64[n]: edges at quantiles, equal values together, fewer where ties fill
    several.
    """
    edges = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    return np.searchsorted(edges, values, side="right")


def tables(x: np.ndarray, y: np.ndarray, block: np.ndarray, blocks: int) -> np.ndarray:
    """Counts float64[blocks, bins of x, bins of y]."""
    nx, ny = int(x.max()) + 1, int(y.max()) + 1
    flat = (block * nx + x) * ny + y
    return np.bincount(flat, minlength=blocks * nx * ny).reshape(blocks, nx, ny).astype(float)


def tau_b(counts: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of tables of counts [..., nx, ny], [...]; NaN where either does not vary."""
    below = np.cumsum(np.cumsum(counts, -2), -1)
    total = below[..., -1, -1]
    padded = np.zeros(counts.shape[:-2] + (counts.shape[-2] + 1, counts.shape[-1] + 1))
    padded[..., 1:, 1:] = below
    rows_before = padded[..., :-1, -1:]  # items with a smaller x
    both_less = padded[..., :-1, :-1]
    y_up_to = padded[..., :-1, 1:]  # smaller x, y at most this
    concordant = (counts * both_less).sum((-2, -1))
    discordant = (counts * (rows_before - y_up_to)).sum((-2, -1))
    pairs = total * total / 2
    same_x = (counts.sum(-1) ** 2).sum(-1) / 2
    same_y = (counts.sum(-2) ** 2).sum(-1) / 2
    scale = np.sqrt((pairs - same_x) * (pairs - same_y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, (concordant - discordant) / scale, np.nan)


def entropy(counts: np.ndarray) -> np.ndarray:
    """Bits of the last axis of counts [..., k], each [...] of sum > 0 (0 where the sum is 0)."""
    total = counts.sum(-1, keepdims=True)
    p = counts / np.where(total > 0, total, 1)
    return -(p * np.log2(np.where(p > 0, p, 1))).sum(-1)


def information_gain(counts: np.ndarray) -> np.ndarray:
    """H(class) - H(class | bin) in bits of tables [..., bins, classes]."""
    weight = counts.sum(-1)
    total = weight.sum(-1)
    inside = (weight * entropy(counts)).sum(-1) / np.where(total > 0, total, 1)
    return entropy(counts.sum(-2)) - inside


def _span(values: np.ndarray) -> tuple[float, float]:
    some = values[np.isfinite(values)]
    if len(some) * 2 < len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(some, (0.025, 0.975))
    return float(low), float(high)


def _draws(counts: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Tables [rounds, nx, ny] of `drawn` [rounds, blocks], how often each block was drawn."""
    blocks, nx, ny = counts.shape
    return (drawn @ counts.reshape(blocks, -1)).reshape(len(drawn), nx, ny)


def _chance(bins: np.ndarray, classes: np.ndarray, block: np.ndarray, rounds: int, rng) -> float:
    """95th percentile of the gain when the metric's blocks are dealt to other blocks, each in its own order of time."""
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(block[order]) != 0])
    parts = np.split(order, starts[1:])
    k, c = int(bins.max()) + 1, int(classes.max()) + 1
    found = np.empty(rounds)
    truth = classes[np.concatenate(parts)]
    for i in range(rounds):
        dealt = np.concatenate([bins[parts[j]] for j in rng.permutation(len(parts))])
        dealt = np.roll(dealt, int(rng.integers(len(dealt))))
        found[i] = information_gain(np.bincount(dealt * c + truth, minlength=k * c).reshape(k, c).astype(float))
    return float(np.quantile(found, 0.95))


def associate(
    metric: np.ndarray, loss: np.ndarray, classes: np.ndarray, block: np.ndarray, rounds: int = ROUNDS, seed: int = 0
) -> Association:
    """Both figures of one metric.

    metric float64[n], NaN where missing; loss float64[n], ratio; classes int64[n], of the loss; block int64[n], what is
    drawn as one. The same seed gives every metric the same draws.
    """
    from scipy.stats import kendalltau

    some = np.isfinite(metric)
    if some.sum() < MIN_ITEMS or len(np.unique(metric[some])) < 2 or len(np.unique(loss[some])) < 2:
        return NONE
    names, number = np.unique(block, return_inverse=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=rounds).astype(float)
    ranked = tables(
        quantile_bins(metric[some], TAU_BINS), quantile_bins(loss[some], TAU_BINS), number[some], len(names)
    )
    bins = np.zeros(len(metric), np.int64)
    bins[some] = 1 + quantile_bins(metric[some], GAIN_BINS)
    gains = tables(bins, classes, number, len(names))
    exact = float(kendalltau(metric[some], loss[some]).statistic)
    tau_span = gain_span = (float("nan"),) * 2
    chance = float("nan")
    if len(names) >= MIN_BLOCKS:
        moved = exact - float(tau_b(ranked.sum(0)))
        low, high = _span(tau_b(_draws(ranked, drawn)))
        tau_span = max(-1.0, low + moved), min(1.0, high + moved)
        gain = float(information_gain(gains.sum(0)))
        every = information_gain(_draws(gains, drawn))  # fewer blocks look as if they gained more: moved back
        low, high = _span(every + gain - np.median(every))
        gain_span = max(0.0, low), high
        chance = _chance(bins, classes, number, min(rounds, 200), rng)
    return Association(exact, tau_span, float(information_gain(gains.sum(0))), gain_span, chance, int(some.sum()))


def per_group(metric: np.ndarray, loss: np.ndarray, group: np.ndarray) -> float:
    """Median over groups (access points of a run) of tau-b; NaN below three groups that have one. What differs between
    access points is no part of it.
    """
    from scipy.stats import kendalltau

    found = []
    for name in np.unique(group):
        mine = (group == name) & np.isfinite(metric)
        if mine.sum() >= MIN_ITEMS and np.ptp(metric[mine]) > 0 and np.ptp(loss[mine]) > 0:
            found.append(float(kendalltau(metric[mine], loss[mine]).statistic))
    return float(np.median(found)) if len(found) >= 3 else float("nan")
