"""A training item (record of `training.items.v1`), checked."""

from __future__ import annotations

import json
from dataclasses import dataclass

from oal_schema.settings import settings

MIN, MAX = -(1 << 63), (1 << 63) - 1
_INTEGERS = ("ts_us", "boot_id", "feature_hash", "horizon_us", "class_now", "class", "offered_pkts", "complete")


class BadItem(ValueError):
    """The record is no training item; the message says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """Features at `ts_us` with the class of the label window that starts at ts + horizon. Missing feature: −2^63."""

    ap_id: str
    site: str
    ts_us: int
    boot_id: int
    feature_hash: int
    features: list[int]
    horizon_us: int
    class_now: int
    truth: int
    loss_ratio: float
    offered_pkts: int
    complete: bool


# An item's class must be that of its loss ratio; a ratio this close to a bound may have either, for it travels as a
# decimal.
_BOUND_SLACK = 1e-5


def _class_agrees(record: dict) -> bool:
    bounds = settings()["class_bounds_permille"]
    low, high = (
        sum(record["loss_ratio"] + slack >= bound / 1000 for bound in bounds) for slack in (-_BOUND_SLACK, _BOUND_SLACK)
    )
    return low <= record["class"] <= high


def from_dict(record: dict) -> Item:
    """An item from the parsed JSON.

    BadItem names the field that is missing or out of range, or says that class and loss ratio disagree.
    """
    try:
        for name in _INTEGERS:
            if not isinstance(record[name], int):
                raise BadItem(f"{name}: {record[name]!r} is not an integer")
        ap_id, features, loss = record["ap_id"], record["features"], record["loss_ratio"]
    except (KeyError, TypeError) as error:
        raise BadItem(f"no {error}") from None
    if not isinstance(ap_id, str) or not ap_id:
        raise BadItem("ap_id is empty")
    if not isinstance(features, list) or not all(type(v) is int and MIN <= v <= MAX for v in features):
        raise BadItem("features: not a list of 64-bit integers")
    if not (0 <= record["class"] <= 3 and 0 <= record["class_now"] <= 3):
        raise BadItem(f"class {record['class']}, class_now {record['class_now']}: not 0 to 3")
    if not (type(loss) in (int, float) and 0 <= loss <= 1):
        raise BadItem(f"loss_ratio {loss!r} is not between 0 and 1")
    if not _class_agrees(record):
        raise BadItem(f"class {record['class']} is not that of loss_ratio {loss}")
    if not 0 < record["ts_us"] < 1 << 53 or not 0 <= record["horizon_us"] <= 60_000_000:
        raise BadItem(f"ts_us {record['ts_us']} or horizon_us {record['horizon_us']} out of range")
    return Item(
        ap_id,
        str(record.get("site", "")),
        record["ts_us"],
        record["boot_id"],
        record["feature_hash"],
        features,
        record["horizon_us"],
        record["class_now"],
        record["class"],
        float(loss),
        record["offered_pkts"],
        bool(record["complete"]),
    )


def parse(value: bytes) -> Item:
    """An item from a record's value; BadItem when it is none."""
    try:
        record = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadItem(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadItem("not a JSON object")
    return from_dict(record)
