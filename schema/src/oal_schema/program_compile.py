"""Compiles feature programs (README, "Feature programs") from YAML to words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .tables import SchemaError, Table

OPERATORS = {
    "last": 1,
    "delta": 2,
    "rate": 3,
    "max": 4,
    "min": 5,
    "mean": 6,
    "sum": 7,
    "count": 8,
    "ratio": 16,
    "ewma": 17,
    "lag": 18,
    "diff": 19,
    "add": 20,
    "change": 21,
}
GROUPS = {"sum": 1, "max": 2, "min": 3, "mean": 4, "count": 5, "total": 6}
#: a group from here on is "at" the feature of the number that is over
AT = 16
#: types of KEY columns that are numbers, which `last` may read
NUMBERS = ("U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64")
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
MISSING = INT64_MIN
MAX_WINDOW = 64
MAX_FEATURES = 128
DERIVED = 16  # operators from here on take earlier features
MAX_EWMA_SHIFT = 16
#: what a feature's YAML may say
KEYS = "name op input where group window mul div a b scale shift unit lo hi default".split()


@dataclass(frozen=True)
class Feature:
    name: str
    op: str
    unit: str
    words: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    name: str
    features: tuple[Feature, ...]
    decision_interval_us: int

    @property
    def words(self) -> list[tuple[int, ...]]:
        return [f.words for f in self.features]


def compile_program(
    source: dict, table: Callable[[str], Table], decision_interval_us: int, where: str = "program"
) -> Program:
    """A program of the parsed YAML `source`; `table` looks up a table by name. SchemaError names the feature."""
    if len(source["features"]) > MAX_FEATURES:
        raise SchemaError(f"{where}: {len(source['features'])} features; at most {MAX_FEATURES}")
    features: list[Feature] = []
    for spec in source["features"]:
        at = f"{where}: feature {spec.get('name', '?')}"
        try:
            features.append(_feature(spec, features, table))
        except SchemaError as e:
            raise SchemaError(f"{at}: {e}") from None
        except KeyError as e:
            raise SchemaError(f"{at}: {e.args[0]} is missing") from None
        except (TypeError, ValueError, AttributeError) as e:
            raise SchemaError(f"{at}: {e}") from None
    return Program(source["name"], tuple(features), decision_interval_us)


def _feature(spec: dict, earlier: list[Feature], find: Callable[[str], Table]) -> Feature:
    """One feature, after those that are `earlier` in the vector."""
    index = {f.name: i for i, f in enumerate(earlier)}
    name, op = spec.get("name", "?"), spec.get("op")
    if unknown := sorted(set(spec) - set(KEYS)):
        raise SchemaError(f"unknown key {unknown[0]}")
    if op not in OPERATORS:
        raise SchemaError(f"unknown operator {op!r}; known are {', '.join(OPERATORS)}")
    if name in index or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise SchemaError("names are unique, lower case")
    table = column = filter_column = -1
    filter_value, group, window, a, b = 0, 0, int(spec.get("window", 1)), 0, 0
    if OPERATORS[op] < DERIVED:
        table, column, filter_column, filter_value, group = _input(spec, op, earlier, find)
        a, b = int(spec.get("mul", 1)), int(spec.get("div", 1))
        if a < 1 or b < 1:
            raise SchemaError("mul and div are at least 1")
    elif op == "ratio":
        a, b, window = _operand(spec, "a", index), _operand(spec, "b", index), int(spec["scale"])
    elif op == "ewma":
        a, window = _operand(spec, "a", index), int(spec["shift"])
    elif op in ("lag", "change"):
        a = _operand(spec, "a", index)
    else:
        a, b = _operand(spec, "a", index), _operand(spec, "b", index)
    if op != "ratio" and not 1 <= window <= (MAX_EWMA_SHIFT if op == "ewma" else MAX_WINDOW):
        raise SchemaError("window (or shift) out of range")
    lo, hi, default = (int(spec.get(k, v)) for k, v in (("lo", INT64_MIN + 1), ("hi", INT64_MAX), ("default", MISSING)))
    words = (OPERATORS[op], table, column, filter_column, filter_value, group, window, a, b, lo, hi, default)
    return Feature(name, op, spec.get("unit", "1"), words)


def _operand(spec: dict, key: str, index: dict[str, int]) -> int:
    if spec.get(key) not in index:
        raise SchemaError(f"{key} must name an earlier feature, not {spec.get(key)!r}")
    return index[spec[key]]


def _input(
    spec: dict, op: str, earlier: list[Feature], find: Callable[[str], Table]
) -> tuple[int, int, int, int, int]:
    """(table, column, filter's column, filter's value, group) of a feature over rows."""
    filter_column, filter_value = -1, 0
    name, _, column = spec.get("input", "").partition(".")
    t = find(name)
    c = t.column(column)
    if c.kind in ("TICK", "TIME_US") or c.kind == "KEY" and (op != "last" or c.type not in NUMBERS):
        raise SchemaError(f"{spec['input']} is a {c.kind} column")
    if (op in ("sum", "count")) != t.event:
        raise SchemaError("sum and count are for event tables, the others for state tables")
    for k, v in spec.get("where", {}).items():
        filter_column, filter_value = t.column(k).index, int(v)
        if t.column(k).kind != "KEY" or len(spec["where"]) != 1:
            raise SchemaError("where takes one KEY column")
    read = (t.id, c.index, filter_column, filter_value)
    return *read, _group(spec.get("group"), read, earlier)


def _group(said, read: tuple[int, int, int, int], earlier: list[Feature]) -> int:
    """The word of a group: its number, or which earlier feature chooses the entity."""
    if isinstance(said, str) and said in GROUPS:
        return GROUPS[said]
    if not isinstance(said, dict) or set(said) != {"at"}:
        raise SchemaError(f"group must be one of {', '.join(GROUPS)}, or at: an earlier feature")
    index = {f.name: i for i, f in enumerate(earlier)}
    chooser = _operand(said, "at", index)
    if not chooses(earlier[chooser].words, read):
        raise SchemaError("at names a feature of the same table and filter whose group is max or min")
    return AT + chooser


def chooses(words: tuple[int, ...], read: tuple[int, int, int, int]) -> bool:
    """May this feature choose the entity for one that reads (table, column, filter's column, filter's value)?"""
    op, table, _, filter_column, filter_value, group = words[:6]
    return (
        op < DERIVED
        and op not in (OPERATORS["sum"], OPERATORS["count"])
        and group in (GROUPS["max"], GROUPS["min"])
        and (table, filter_column, filter_value) == (read[0], *read[2:])
    )
