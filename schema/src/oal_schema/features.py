"""Reference interpreter of feature programs (README, "Feature programs"). Integer arithmetic that saturates; bit for
bit what C and Java do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .codec import Batch, contract
from .program_compile import AT, INT64_MAX, INT64_MIN, MISSING

LAST, DELTA, RATE, MAX, MIN, MEAN, SUM, COUNT, RATIO, EWMA, LAG = 1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18
DIFF, ADD, CHANGE = 19, 20, 21
LIMIT = 1 << 53
#: a row further than this from its batch's t0_us does not enter features
FARTHEST_US = 10_000_000


def sat(v: int) -> int:
    """Saturate at 64 bits."""
    return INT64_MIN if v < INT64_MIN else INT64_MAX if v > INT64_MAX else v


def tdiv(a: int, b: int) -> int:
    """Divide truncating toward zero."""
    q = abs(a) // abs(b)
    return sat(q if (a < 0) == (b < 0) else -q)


def increment(old: int, new: int, counter_bits: int) -> int:
    """Growth from one row to the next. `counter_bits` 0: a gauge, may be negative. Wraps at 32 bits; otherwise a fall
    is a restart.
    """
    d = sat(new - old)
    if counter_bits and d < 0:
        return d + (1 << 32) if counter_bits == 32 and -d > 1 << 31 else new
    return d


def _identity(batch: Batch, table, row: dict) -> tuple:
    """What names the row's entity across batches: its keys, with names and flows looked up in the batch's dictionaries.
    """
    if table.event:
        return ()
    look_up = {"NAME": lambda v: batch.header["names"][v], "FLOW": lambda v: batch.flows[v]["flow_id"]}
    return tuple(look_up.get(c.type, int)(row[c.name]) for c in table.columns if c.kind == "KEY")


def _grouped(group: int, values: dict[tuple, int], chosen: dict[int, set]) -> int | None:
    """The group of these entities' values; `chosen`: the entities that earlier features with group max or min chose.
    None: there is no value.
    """
    if group >= AT:
        return max((v for key, v in values.items() if key in chosen[group - AT]), default=None)
    if group == 5 and values:
        return sum(v > 0 for v in values.values())
    if group in (2, 3) and values:
        return max(values.values()) if group == 2 else min(values.values())
    total = 0
    for v in values.values():
        total = sat(total + v)
    if group == 4 and values:
        return tdiv(total, len(values))
    return total if group == 1 or group == 6 and values else None


class _Cell:
    """One feature at one entity: the open bucket and the closed ones of the window."""

    __slots__ = ("value", "since", "acc", "held", "ring")

    def __init__(self, window: int):
        self.value: int | None = None  # value held
        self.since = 0  # µs, from when it counts towards the integral
        self.acc: int | None = None  # open bucket
        self.held = 0  # µs held in the open bucket
        self.ring: deque = deque(maxlen=window)


class Interpreter:
    """Evaluate one program over the batches of one AP, both topics.

    `feed(batch)` yields (instant_us, values) for each decision instant that is complete; values are ints, MISSING where
    there is none.
    Batches come in pairs or alone, in order of t0_us: all batches with one t0_us before any with a later one.
    """

    def __init__(self, words: list[tuple[int, ...]], schema=None):
        """`schema`: the contract, or what of it there is at run time (settings.interpreted), where no protoc is."""
        s = schema or contract()
        self.words = words
        self.interval = s.settings["decision_interval_us"]
        self.gap = s.settings["feature_gap_us"]
        self.tables = s.tables
        self.boot_id = None
        self._restart()

    def _restart(self) -> None:
        self.next: int | None = None
        self.cells: list[dict[tuple, _Cell]] = [{} for _ in self.words]
        self.seen: dict[int, set] = {t.id: set() for t in self.tables}
        self.open: dict[int, bool] = {0: False, 1: False, 2: False}
        self.ewma: list[int | None] = [None] * len(self.words)
        self.history: list[deque] = [deque(maxlen=64) for _ in self.words]

    def feed(self, *batches: Batch) -> Iterator[tuple[int, list[int]]]:
        """Process the batches that share one t0_us (one or two topics)."""
        t0 = batches[0].header["t0_us"]
        assert all(b.header["t0_us"] == t0 for b in batches)
        boot = batches[0].header["boot_id"]
        if boot != self.boot_id or self.next is None or abs(t0 - (self.next - self.interval)) > self.gap:
            self._restart()
            self.boot_id = boot
            self.next = -(-t0 // self.interval) * self.interval
        while self.next < t0:
            yield self._evaluate()
        for b in batches:
            if self.open[b.topic]:
                self._sweep(b.topic)
            self.open[b.topic] = True
        rows = sorted(
            (
                (b.time_us(row), t.id, i, _identity(b, t, row), row)
                for b in batches
                for t in self.tables
                if t.topic == b.topic
                for i, row in enumerate(b.tables.get(t.name, []))
                if b.time_us(row) - t0 <= FARTHEST_US
            ),
            key=lambda r: r[:3],
        )
        for ts, table, _, key, row in rows:
            while self.next < ts:
                yield self._evaluate()
            self._row(table, ts, key, row)

    def _sweep(self, topic: int) -> None:
        for t in self.tables:
            if t.topic == topic and not t.event:
                for f, cells in enumerate(self.cells):
                    if self.words[f][1] == t.id:
                        self.cells[f] = {k: c for k, c in cells.items() if k in self.seen[t.id]}
                self.seen[t.id] = set()

    def _row(self, table_id: int, ts: int, key: tuple, row: dict) -> None:
        table = self.tables[table_id]
        self.seen[table_id].add(key)
        for f, (op, t, column, fcol, fval, _, window, *_rest) in enumerate(self.words):
            if t != table_id or op >= RATIO or (fcol >= 0 and row[table.columns[fcol].name] != fval):
                continue
            c = table.columns[column]
            if c.optional >= 0 and row["absent"] >> c.optional & 1:
                continue
            cell = self.cells[f].setdefault(key, _Cell(window))
            v = row[c.name]
            if op in (DELTA, RATE):
                if cell.value is not None:
                    cell.acc = sat(
                        (cell.acc or 0) + increment(cell.value, v, c.counter_bits if c.kind == "COUNTER" else 0)
                    )
            elif op == MAX:
                cell.acc = v if cell.acc is None else max(cell.acc, v)
            elif op == MIN:
                cell.acc = v if cell.acc is None else min(cell.acc, v)
            elif op == MEAN:
                if cell.value is not None:
                    cell.acc = sat((cell.acc or 0) + sat(cell.value * (ts - cell.since)))
                    cell.held += ts - cell.since
                cell.since = ts
            elif op == SUM:
                cell.acc = sat((cell.acc or 0) + v)
            elif op == COUNT:
                cell.acc = (cell.acc or 0) + 1
            cell.value = v

    def _entity(self, op: int, window: int, cell: _Cell, instant: int) -> int | None:
        """Close the bucket that ends at `instant` and fold the window; None while the entity has no value."""
        if op == LAST:
            return cell.value
        if op == MEAN:
            cell.acc = sat((cell.acc or 0) + sat(cell.value * (instant - cell.since)))
            cell.held += instant - cell.since
            cell.since = instant
        cell.ring.append((cell.acc if cell.acc is not None else 0, cell.held))
        if op in (MAX, MIN):
            cell.acc = cell.value  # the next bucket starts with the value held
            return (max if op == MAX else min)(a for a, _ in cell.ring)
        cell.acc, cell.held = 0, 0
        total = 0
        for a, _ in cell.ring:
            total = sat(total + a)
        if op == MEAN:
            held = sum(h for _, h in cell.ring)
            return tdiv(total, held) if held else cell.value
        if op == RATE:
            return tdiv(sat(total * 1_000_000), window * self.interval)
        return total

    def _evaluate(self) -> tuple[int, list[int]]:
        instant = self.next
        self.next += self.interval
        x: list[int] = []
        chosen: dict[int, set] = {}  # of features whose group is max or min: the entities that have it
        for f, (op, _t, _c, _fc, _fv, group, window, a, b, lo, hi, default) in enumerate(self.words):
            value: int | None = None
            if op < RATIO:
                values: dict[tuple, int] = {}
                for key, cell in self.cells[f].items():
                    v = self._entity(op, window, cell, instant)
                    if v is not None:
                        values[key] = min(max(tdiv(sat(v * a), b), -LIMIT), LIMIT)
                value = _grouped(group, values, chosen)
                if group in (2, 3):
                    chosen[f] = {key for key, v in values.items() if v == value}
            elif op == RATIO:
                if x[a] != MISSING and x[b] != MISSING and x[b] != 0:
                    value = tdiv(sat(x[a] * window), x[b])
            elif op == EWMA:
                if x[a] != MISSING:
                    scaled = sat(x[a] * 256)
                    e = self.ewma[f]
                    self.ewma[f] = scaled if e is None else sat(e + (sat(scaled - e) >> window))
                    value = tdiv(self.ewma[f], 256)
            elif op in (LAG, CHANGE):
                h = self.history[a]
                if len(h) >= window and h[-window] != MISSING and (op == LAG or x[a] != MISSING):
                    value = h[-window] if op == LAG else sat(x[a] - h[-window])
            elif x[a] != MISSING and x[b] != MISSING:
                value = sat(x[a] - x[b]) if op == DIFF else sat(x[a] + x[b])
            if value is None:
                x.append(default)
            else:
                x.append(min(max(value, lo), hi))
        for f, v in enumerate(x):
            self.history[f].append(v)
        return instant, x

    def row(self, table_name: str, row: dict) -> list[int]:
        """Values for one row alone, as a policy about destinations has them: all state restarts, the row enters, and
        the next instant is evaluated. `table_name` is an event table; `row` has its columns and `absent`.
        """
        table = next(t for t in self.tables if t.name == table_name)
        self._restart()
        self.next = self.interval
        self._row(table.id, self.interval, (), row)
        return self._evaluate()[1]
