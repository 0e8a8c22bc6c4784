"""A training item: a record of `training.items.v1`, or a line of what `stream-jobs/items` prints.

The one reader of both. What a record holds says `messages.yaml` (training_item); other fields are skipped.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .settings import generated, settings

#: a feature that has no value
MISSING = -(1 << 63)
MIN, MAX = -(1 << 63), (1 << 63) - 1
#: An item's class must be that of its loss ratio; a ratio this close to a bound may have either, for it travels as a
#: decimal.
BOUND_SLACK = 1e-5
WHOLE = frozenset(("int32", "int64", "uint32", "uint64"))
#: field of the message → attribute, where Python has the field's name for itself
ATTRIBUTES = {"class": "truth"}


class BadItem(ValueError):
    """The record is no training item; the message says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """Features at `ts_us` with the class (`truth`) of the label window that starts at ts_us + horizon_us.

    Times in µs since 1970, classes as indices into settings.class_names, a missing feature as `MISSING`; boot_id and
    feature_hash are unsigned.
    """

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
    policy: str = "rwnd-fair"
    lacked_input: bool = False
    under_control: bool = False
    loss_permille_resent: int = -1  #: -1: of a job that stamped losses when they were sent again
    loss_permille_now_resent: int = -1
    since_drop_us: int = -1  #: -1: none in the window before
    until_drop_us: int = -1  #: -1: none before the end of the label window


def names() -> list[str]:
    """The message's fields, in order."""
    return [name for name, *_ in _fields()]


@lru_cache(maxsize=1)
def topic() -> str:
    """Kafka's name of the topic that holds items."""
    return generated()["messages"]["training_item"]["topic"]


def parse(value: bytes | str) -> Item:
    """An item from a record's value; BadItem when it is none."""
    try:
        record = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadItem(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadItem("not a JSON object")
    return from_dict(record)


def from_dict(record: dict) -> Item:
    """An item from the parsed JSON.

    BadItem names the field that is missing, of another type or out of range, or says that class and loss ratio
    disagree.
    """
    values = []
    for name, kind, least, most, default in _fields():
        value = record.get(name)
        if kind not in WHOLE or type(value) is not int or not least <= value <= most:
            value = _value(record, name, kind, least, most, default)
        values.append(value)
    item = Item(*values)
    if not _class_agrees(item):
        raise BadItem(f"class {item.truth} is not that of loss_ratio {item.loss_ratio}")
    return item


def lines(path: Path) -> Iterator[Item]:
    """The items of a file, one a line. BadItem names the line that holds none."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield parse(line)
            except BadItem as error:
                raise BadItem(f"line {number}: {error}") from None


def as_record(item: Item) -> dict:
    """The item as its JSON object, in the contract's order of fields, without those that are left out."""
    record = {name: getattr(item, ATTRIBUTES.get(name, name)) for name in names()}
    return {name: value for name, value in record.items() if name not in _left_out() or value != _left_out()[name]}


def dumps(item: Item) -> str:
    """The item as a record's value, without blanks: what the job writes."""
    return json.dumps(as_record(item), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=1)
def _fields() -> list[tuple]:
    """(name, type, min, max, default) of each field."""
    found = generated()["messages"]["training_item"]["fields"]
    return [(f["name"], f["type"], f["min"], f["max"], f["default"]) for f in found]


@lru_cache(maxsize=1)
def _left_out() -> dict[str, str | bool]:
    """Field → the value at which a writer leaves it out."""
    found = generated()["messages"]["training_item"]["fields"]
    return {f["name"]: f["default"] for f in found if f.get("left_out")}


def _value(record: dict, name: str, kind: str, least, most, default):
    """A field's value, checked."""
    value = record.get(name)
    if value is None:
        if name in record or default is None:
            raise BadItem(f"{name} is {'null' if name in record else 'missing'}")
        return default
    if kind == "string":
        if type(value) is not str or len(value) < least:
            raise BadItem(f"{name}: {value!r} is not a string of at least {least} characters")
    elif kind == "int64[]":
        if type(value) is not list or not _whole_numbers(value):
            raise BadItem(f"{name}: not a list of 64-bit integers")
    elif kind == "bool":
        if type(value) is not bool:
            raise BadItem(f"{name}: {value!r} is neither true nor false")
    elif kind == "float32":
        if type(value) not in (int, float) or not least <= value <= most:
            raise BadItem(f"{name}: {value!r} is not a number from {least} to {most}")
        return float(value)
    elif type(value) is not int or not least <= value <= most:
        raise BadItem(f"{name}: {value!r} is not a whole number from {least} to {most}")
    return value


def _whole_numbers(values: list) -> bool:
    """Are all of them integers of 64 bits?"""
    return not values or (set(map(type, values)) == {int} and MIN <= min(values) and max(values) <= MAX)


def _class_agrees(item: Item) -> bool:
    low, high = (bisect_right(_bounds(), item.loss_ratio + slack) for slack in (-BOUND_SLACK, BOUND_SLACK))
    return low <= item.truth <= high


@lru_cache(maxsize=1)
def _bounds() -> list[float]:
    """Loss ratios at which the next class begins."""
    return [bound / 1000 for bound in settings()["class_bounds_permille"]]
