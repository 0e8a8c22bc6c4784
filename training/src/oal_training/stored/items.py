"""Training items as arrays, whatever they were read from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np
from oal_schema.item import MISSING
from oal_schema.settings import settings

from oal_training.errors import TrainingError
from oal_training.stored.programs import feature_names

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Items:
    """m items, ordered by time, then group.

    x          float64[m, f], NaN where a value is missing; names: f feature names
    group      str[m], the access point; ts_us int64[m], decision instant, µs since 1970
    y          int64[m], class that came true; now int64[m], class of the label window that ends at ts_us, UNKNOWN where
               nobody knew
    loss_now   float64[m], loss ratio of that window, NaN where unknown
    classes    names, mildest first; those from index `congested_from` on are congestion
    horizon_us, label_window_us: the label of an item is about [ts + horizon, ts + horizon + label_window)
    source     where they came from: what lineage needs (see lineage.py)
    """

    x: np.ndarray
    names: tuple[str, ...]
    group: np.ndarray
    ts_us: np.ndarray
    y: np.ndarray
    now: np.ndarray
    loss_now: np.ndarray
    classes: tuple[str, ...]
    congested_from: int
    horizon_us: int
    label_window_us: int
    feature_hash: int = 0
    source: dict = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows) -> Items:
        """The items at these indices or under this mask."""
        return replace(self, **{k: getattr(self, k)[rows] for k in ("x", "group", "ts_us", "y", "now", "loss_now")})

    @property
    def embargo_us(self) -> int:
        """How long after its instant the label of an item is settled."""
        return self.horizon_us + self.label_window_us

    @property
    def groups(self) -> list[str]:
        """Names of the access points, in order."""
        return sorted(set(self.group.tolist()))

    @property
    def candidates(self) -> np.ndarray:
        """Mask of the items at which an onset can occur: no congestion now."""
        return (self.now != UNKNOWN) & (self.now < self.congested_from)

    @property
    def congested(self) -> np.ndarray:
        """Mask of the items whose label is congestion."""
        return self.y >= self.congested_from

    def describe(self) -> str:
        """Number, length of time, classes and onsets in one line."""
        shares = ", ".join(f"{name} {np.mean(self.y == k):.1%}" for k, name in enumerate(self.classes))
        onsets = int(np.sum(self.candidates & self.congested))
        return (
            f"{len(self)} items of {len(self.groups)} APs over {(self.ts_us[-1] - self.ts_us[0]) / 1e6:.0f} s,"
            f" {len(self.names)} features; {shares}; {onsets} items before an onset of {int(self.candidates.sum())}"
            " without congestion now"
        )


def ordered(items: Items) -> Items:
    """The same items in order of time, then group."""
    return items[np.lexsort((items.group, items.ts_us))]


def concatenated(every: list[Items]) -> Items:
    """Items of several sources as one; TrainingError when their features, classes or labels differ."""
    first = every[0]
    for other in every[1:]:
        if (other.names, other.classes, other.congested_from, other.embargo_us, other.feature_hash) != (
            first.names,
            first.classes,
            first.congested_from,
            first.embargo_us,
            first.feature_hash,
        ):
            raise TrainingError(
                f"{other.source.get('file')} and {first.source.get('file')} hold items of different features, classes"
                " or label windows; they cannot be put together"
            )
    if len(every) == 1:
        return first
    joined = {
        k: np.concatenate([getattr(i, k) for i in every]) for k in ("x", "group", "ts_us", "y", "now", "loss_now")
    }
    files = [i.source for i in every]
    source = files[0] | {
        "file": " + ".join(str(f.get("file")) for f in files),
        "provenance": [f.get("provenance") for f in files],
        "file_sha256": hashlib.sha256("".join(f.get("file_sha256", "") for f in files).encode()).hexdigest(),
    }
    return with_range(ordered(replace(first, **joined, source=source)))


def label_known_before(group: np.ndarray, ts_us: np.ndarray, values: np.ndarray, age_us: int, unknown) -> np.ndarray:
    """For each item the value of the latest item of its group that is at least `age_us` older; `unknown` where there is
    none, or where it is more than one further `age_us` older.
    """
    found = np.full(len(values), unknown, dtype=np.asarray(values).dtype)
    for name in set(group.tolist()):
        rows = np.flatnonzero(group == name)
        rows = rows[np.argsort(ts_us[rows], kind="stable")]
        times = ts_us[rows]
        at = np.searchsorted(times, times - age_us, side="right") - 1
        known = at >= 0
        known[known] = times[known] - times[at[known]] <= 2 * age_us
        found[rows[known]] = values[rows[at[known]]]
    return found


def from_columns(columns: dict[str, np.ndarray], source: dict, log=print) -> Items:
    """Items from columns named as in ClickHouse's table `item` (`features` int64[m, f], `ts_us` for ts, classes as
    numbers).

    Items with a gap in them (`complete` 0) are left out, and so are those of all feature programs but the newest; both
    are counted.
    """
    s = settings()
    complete = np.asarray(columns["complete"]).astype(bool)
    if not complete.any():
        raise TrainingError(f"{len(complete)} items, none of them complete; choose another time range or AP")
    newest = columns["feature_hash"][complete][np.argmax(columns["ts_us"][complete])]
    same = columns["feature_hash"] == newest
    keep = complete & same
    if not keep.all():
        log(
            f"left out: {np.sum(~complete)} items with gaps, {np.sum(complete & ~same)} of other feature programs than"
            f" {int(newest):016x}"
        )
    loss = np.asarray(columns["loss_ratio"], np.float64)
    group = np.asarray(columns["ap_id"], dtype=object).astype(str)
    ts_us = np.asarray(columns["ts_us"], np.int64)
    horizon_us = int(columns["horizon_us"][keep][-1])
    loss_now = label_known_before(
        group, ts_us, np.where(complete, loss, np.nan), horizon_us + s["label_window_us"], np.nan
    )
    raw = np.asarray(columns["features"], np.int64)
    x = np.where(raw == MISSING, np.nan, raw.astype(np.float64))
    every = Items(
        x=x,
        names=feature_names(int(newest), raw.shape[1]),
        group=group,
        ts_us=ts_us,
        y=np.asarray(columns["class"], np.int64),
        now=np.asarray(columns["class_now"], np.int64),
        loss_now=loss_now,
        classes=tuple(s["class_names"]),
        congested_from=2,
        horizon_us=horizon_us,
        label_window_us=s["label_window_us"],
        feature_hash=int(newest),
        source=source
        | {
            "schema_revision": source.get("schema_revision", s["schema_revision"]),
            "feature_hash": f"{int(newest):016x}",
            "left_out_incomplete": int(np.sum(~complete)),
            "left_out_other_program": int(np.sum(complete & ~same)),
        },
    )
    return with_range(ordered(every[keep]))


def with_range(items: Items) -> Items:
    """The items with their number and range in time in `source`."""
    if not len(items):
        raise TrainingError("no items are left; choose another time range or AP")
    return replace(
        items,
        source=items.source
        | {"rows": len(items), "from_us": int(items.ts_us[0]), "to_us": int(items.ts_us[-1]), "aps": len(items.groups)},
    )
