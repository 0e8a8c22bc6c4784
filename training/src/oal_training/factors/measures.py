"""Every metric of items beside the loss ratio of the same second, and of the second to come."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oal_training.factors import association, paper
from oal_training.factors.association import Association
from oal_training.stored.items import UNKNOWN, Items

BLOCK_S = 30.0
SENT = "sent_pkts_1s"  # of a second in which nothing was sent there is no loss ratio
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class Row:
    """A metric: its column, or None where the items have none; now, ahead: its association with the loss ratio of the
    second that ends now and of the one that the label is about; within: median over access points of tau now; paper:
    what Table 2 says of it, or None.
    """

    column: str | None
    now: Association
    ahead: Association
    within: float
    paper: paper.Factor | None


@dataclass(frozen=True)
class Loss:
    """Of seconds in which something was sent: sorted ratios, mean and percentiles with 95 % intervals."""

    ratios: np.ndarray
    mean: float
    mean_span: tuple[float, float]
    percentiles: dict[int, tuple[float, tuple[float, float]]]


def loss_ahead(items: Items) -> np.ndarray:
    """Loss ratio of the second that the label is about, float64[m]; NaN where no item is as much later."""
    found = np.full(len(items), np.nan)
    for name in items.groups:
        rows = np.flatnonzero(items.group == name)
        times = items.ts_us[rows]
        at = np.searchsorted(times, times + items.embargo_us)
        known = at < len(rows)
        known[known] = times[at[known]] - times[known] <= 2 * items.embargo_us
        found[rows[known]] = items.loss_now[rows[at[known]]]
    return found


def measured(items: Items) -> Items:
    """The items whose loss now is known, in seconds in which something was sent."""
    keep = np.isfinite(items.loss_now) & (items.now != UNKNOWN)
    if SENT in items.names:
        keep &= items.x[:, items.names.index(SENT)] > 0
    return items[keep]


def varying(items: Items) -> tuple[str, ...]:
    """Names of the features that have more than one value."""
    finite = [column[np.isfinite(column)] for column in items.x.T]
    return tuple(name for name, values in zip(items.names, finite) if len(values) and np.ptp(values) > 0)


def apart(every: list[tuple[str, Items]]) -> list[Items]:
    """Items of several files with groups that tell the files apart: access points of two runs are two."""
    if len(every) == 1:
        return [every[0][1]]
    return [
        replace(items, group=np.array([f"{name}: {g}" for g in items.group.tolist()], dtype=object).astype(str))
        for name, items in every
    ]


def blocks(items: Items) -> np.ndarray:
    """Number of the block of time of each item, int64[m]; an access point's blocks are its own."""
    _, ap = np.unique(items.group, return_inverse=True)
    start = items.ts_us // int(BLOCK_S * 1e6)
    return ap * (start.max() - start.min() + 1) + start - start.min()


def loss(items: Items, rounds: int = association.ROUNDS, seed: int = 0) -> Loss:
    """Distribution of the loss ratio now (Fig. 4). items: of `measured`."""
    values, number = items.loss_now, np.unique(blocks(items), return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    parts = np.split(values[order], np.flatnonzero(np.diff(number[order])) + 1)
    rng = np.random.default_rng(seed)
    drawn = []
    if len(parts) >= association.MIN_BLOCKS:
        for _ in range(rounds):
            some = np.concatenate([parts[i] for i in rng.integers(len(parts), size=len(parts))])
            drawn.append([some.mean(), *np.percentile(some, PERCENTILES)])
    spans = np.quantile(drawn, (0.025, 0.975), axis=0).T if drawn else np.full((1 + len(PERCENTILES), 2), np.nan)
    spans = [tuple(float(v) for v in span) for span in spans]
    exact = np.percentile(values, PERCENTILES)
    return Loss(
        np.sort(values),
        float(values.mean()),
        spans[0],
        {p: (float(v), span) for p, v, span in zip(PERCENTILES, exact, spans[1:])},
    )


def rows(items: Items, rounds: int = association.ROUNDS, log=lambda _: None) -> list[Row]:
    """The paper's metrics in its order, then our other columns that vary by falling |tau|. items: of `measured`."""
    block, ahead = blocks(items), loss_ahead(items)
    known = np.isfinite(ahead)
    made: dict[str, Row] = {}
    columns = varying(items)
    for i, name in enumerate(columns, 1):
        log(f"{i} of {len(columns)}: {name}")
        x = items.x[:, items.names.index(name)]
        made[name] = Row(
            name,
            association.associate(x, items.loss_now, items.now, block, rounds),
            association.associate(x[known], ahead[known], items.y[known], block[known], rounds),
            association.per_group(x, items.loss_now, items.group),
            None,
        )
    none = Row(None, association.NONE, association.NONE, float("nan"), None)
    found = []
    for metric in paper.TABLE_2:
        column = paper.column(metric.columns, varying(items))
        found.append(replace(made.get(column, none), paper=metric))
    used = {row.column for row in found}
    others = [row for name, row in made.items() if name not in used and np.isfinite(row.now.tau)]
    return found + sorted(others, key=lambda row: -abs(row.now.tau))


def curve(metric: np.ndarray, loss_now: np.ndarray, bins: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle (median) of equally full bins of a metric, mean loss ratio there and its items; float64[k] each. A metric
    that is missing is left out.
    """
    some = np.isfinite(metric)
    number = association.quantile_bins(metric[some], bins)
    used = np.unique(number)
    middle = np.array([np.median(metric[some][number == b]) for b in used])
    mean = np.array([loss_now[some][number == b].mean() for b in used])
    return middle, mean, np.array([(number == b).sum() for b in used])
