"""What makes a compiled feature program valid: the rules of `feature_program_check()` in C and its Java twin."""

from __future__ import annotations

from .program_compile import AT, NUMBERS, chooses
from .settings import tables

MAX_FEATURES, MAX_WINDOW, MAX_EWMA_SHIFT = 128, 64, 16
EVENTS = 2
LAST, SUM, COUNT, RATIO, EWMA, LAG, DIFF, ADD, CHANGE = 1, 7, 8, 16, 17, 18, 19, 20, 21
GROUPS = 6


def what_is_wrong(words: list[tuple[int, ...]], decision_interval_us: int) -> str | None:
    """What is wrong with a program, or None."""
    if len(words) > MAX_FEATURES:
        return f"{len(words)} features; at most {MAX_FEATURES}"
    if not 1000 <= decision_interval_us <= 3_600_000_000:
        return f"decision interval of {decision_interval_us} us"
    for i, w in enumerate(words):
        if wrong := _feature(i, w, words):
            return f"feature {i}: {wrong}"
    return None


def _feature(index: int, w: tuple[int, ...], words: list[tuple[int, ...]]) -> str | None:
    op, _, _, _, _, _, window, a, b = w[:9]
    if 1 <= op <= COUNT:
        if wrong := _base(index, w, words):
            return wrong
    elif op in (DIFF, ADD, RATIO, EWMA, LAG, CHANGE):
        if not 0 <= a < index or op in (DIFF, ADD, RATIO) and not 0 <= b < index:
            return "operand is not an earlier feature"
    else:
        return f"operator {op}"
    if op != RATIO and not 1 <= window <= (MAX_EWMA_SHIFT if op == EWMA else MAX_WINDOW):
        return f"window {window}"
    return None


def _base(index: int, w: tuple[int, ...], words: list[tuple[int, ...]]) -> str | None:
    op, table, column, filter_column, _, group, _, a, b = w[:9]
    if not 0 <= table < len(tables()):
        return f"table {table}"
    t = tables()[table]
    if (
        not 0 <= column < len(t["columns"])
        or t["topic"] == EVENTS
        or t["columns"][column]["kind"] in ("TICK", "TIME_US")
        or t["columns"][column]["kind"] == "KEY" and (op != LAST or t["columns"][column]["type"] not in NUMBERS)
    ):
        return f"column {column} of table {t['name']}"
    if t["event"] != (op in (SUM, COUNT)):
        return f"operator {op} on table {t['name']}"
    if not -1 <= filter_column < sum(c["kind"] == "KEY" for c in t["columns"]):
        return f"filter on column {filter_column}"
    if not 1 <= group <= GROUPS and not (AT <= group < AT + index and chooses(words[group - AT], w[1:5])):
        return f"group {group}"
    if a < 1 or b < 1:
        return "factor or divisor below 1"
    return None
