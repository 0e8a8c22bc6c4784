"""Reference codec of batches (README, "A batch"): plain, slow, and what C and Java are compared with.

A batch is a `Batch`: header fields by name, flows as dicts, and per table its rows in wire order. A row is a dict with
every column of its table and `absent` (bit i = the i-th optional column is absent). Times stay relative (`tick` or
`t_us`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from .model import BATCHES, Schema, load
from .tables import Table
from .wire import Refused, fields, get_varint, put_bytes, put_fixed64, put_uint, put_varint, unzigzag, varints, zigzag

MAX_OFFSET_US = 1 << 40
HEADER_STRINGS = {"ap_id", "site"}
HEADER_FIXED = {"boot_id", "feature_hash"}
HEADER_REPEATED = {"missed_start", "missed_ticks"}
_U32 = {
    "tick_us",
    "ticks",
    "schema_revision",
    "ring_drops",
    "rows_dropped",
    "dumps_interrupted",
    "tick_late_max_us",
    "clock_state",
    "clock_error_us",
}


@lru_cache(maxsize=1)
def contract() -> Schema:
    return load()


@dataclass
class Batch:
    topic: int  #: 0 samples, 1 packets, 2 events
    header: dict
    tables: dict[str, list[dict]] = field(default_factory=dict)
    flows: list[dict] = field(default_factory=list)

    def rows(self) -> int:
        return sum(map(len, self.tables.values()))

    def time_us(self, row: dict) -> int:
        """Time of a row, µs since 1970."""
        return self.header["t0_us"] + (row["tick"] * self.header["tick_us"] if "tick" in row else row["t_us"])


def _packed(values, sign: bool) -> bytes:
    out = bytearray()
    for v in values:
        put_varint(out, zigzag(v) if sign else v)
    return bytes(out)


def _runs(table: Table, rows: list[dict]) -> list[list[dict]]:
    """Rows of one entity that follow each other and lack the same columns."""
    keys = [c.name for c in table.columns if c.kind == "KEY"]
    runs: list[list[dict]] = []
    last = None
    for row in rows:
        identity = (tuple(row[k] for k in keys), row["absent"])
        if identity != last:
            runs.append([])
            last = identity
        runs[-1].append(row)
    return runs


def _encode_table(table: Table, rows: list[dict]) -> bytes:
    runs = _runs(table, rows)
    out = bytearray()
    put_bytes(out, 1, _packed([len(r) for r in runs], False))
    if any(r[0]["absent"] for r in runs):
        put_bytes(out, 2, _packed([r[0]["absent"] for r in runs], False))
    for c in table.columns:
        if c.kind == "KEY":
            stream = [r[0][c.name] for r in runs]
            if any(stream):
                put_bytes(out, c.field, _packed(stream, True))
            continue
        stream, zeros = [], 0

        def flush():
            nonlocal zeros
            if zeros:
                stream.extend((0, zeros - 1))
                zeros = 0

        for run in runs:
            before = 0
            for row in run:
                delta, before = row[c.name] - before, row[c.name]
                if delta:
                    flush()
                    stream.append(delta)
                else:
                    zeros += 1
        if stream:
            flush()
            put_bytes(out, c.field, _packed(stream, True))
    return bytes(out)


def encode(batch: Batch) -> bytes:
    """Bytes of a batch. Rows of an entity must be in time order; entities are kept in the order given."""
    schema = contract()
    head = bytearray()
    for name, number, _ in schema.header:
        value = batch.header.get(name)
        if name in HEADER_STRINGS:
            if value:
                put_bytes(head, number, value.encode())
        elif name in HEADER_FIXED:
            put_fixed64(head, number, value or 0)
        elif name in HEADER_REPEATED:
            if value:
                put_bytes(head, number, _packed(value, False))
        elif name == "names":
            for s in value or []:
                put_bytes(head, number, s.encode())
        else:
            put_uint(head, number, value or 0)
    out = bytearray()
    put_bytes(out, 1, bytes(head))
    if batch.topic == 1 and batch.flows:
        flows = bytearray()
        number = dict(schema.flow_dictionary)
        put_bytes(flows, number["flow_id"], b"".join(f["flow_id"].to_bytes(8, "little") for f in batch.flows))
        for name in ("client_addr", "server_addr"):
            for f in batch.flows:
                put_bytes(flows, number[name], f[name])
        for name in ("client_port", "server_port", "protocol", "station_mac"):
            put_bytes(flows, number[name], _packed([f[name] for f in batch.flows], False))
        put_bytes(out, 2, bytes(flows))
    for table in schema.tables:
        if batch.tables.get(table.name):
            put_bytes(out, table.field, _encode_table(table, batch.tables[table.name]))
    return bytes(out)


def _decode_header(data: bytes, start: int, end: int) -> dict:
    by_number = {number: name for name, number, _ in contract().header}
    header: dict = {
        name: "" if name in HEADER_STRINGS else [] if name in HEADER_REPEATED or name == "names" else 0
        for name in by_number.values()
    }
    for number, kind, a, b in fields(data, start, end):
        name = by_number.get(number)
        if name is None:
            continue
        want = 2 if name in HEADER_STRINGS | HEADER_REPEATED | {"names"} else 1 if name in HEADER_FIXED else 0
        if kind != want:
            raise Refused("malformed", f"header.{name} has wire type {kind}")
        if name in HEADER_STRINGS or name == "names":
            try:
                text = data[a:b].decode()
            except UnicodeDecodeError:
                raise Refused("malformed", f"header.{name} is not UTF-8") from None
            if name == "names":
                header["names"].append(text)
            else:
                header[name] = text
        elif name in HEADER_REPEATED:
            header[name] += varints(data, a, b)
        elif name in HEADER_FIXED:
            header[name] = int.from_bytes(data[a:b], "little")
        else:
            header[name] = get_varint(data, a, b)[0]
    for name in _U32:
        if header[name] > 0xFFFFFFFF:
            raise Refused("value_range", f"header.{name} is {header[name]}")
    if header["t0_us"] >= 1 << 62 or header["seq"] >= 1 << 63:
        raise Refused("value_range", "header.t0_us or header.seq")
    if not header["tick_us"] or not header["ticks"]:
        raise Refused("malformed", "header without tick_us or ticks")
    if header["ticks"] * header["tick_us"] >= MAX_OFFSET_US:
        raise Refused("value_range", "header.ticks")
    if len(header["missed_start"]) != len(header["missed_ticks"]):
        raise Refused("malformed", "missed_start and missed_ticks differ in length")
    if not header["ap_id"]:
        raise Refused("malformed", "header without ap_id")
    if not 1 <= header["schema_revision"] <= contract().settings["schema_revision"]:
        raise Refused(
            "unknown_revision",
            f"schema_revision {header['schema_revision']}; this reader knows up to "
            f"{contract().settings['schema_revision']}",
        )
    return header


def _decode_flows(data: bytes, start: int, end: int) -> list[dict]:
    by_number = {number: name for name, number in contract().flow_dictionary}
    columns: dict[str, list] = {name: [] for name in by_number.values()}
    for number, kind, a, b in fields(data, start, end):
        name = by_number.get(number)
        if name is None:
            continue
        if kind != 2:
            raise Refused("malformed", f"flows.{name} has wire type {kind}")
        if name == "flow_id":
            if (b - a) % 8:
                raise Refused("malformed", "flows.flow_id is not a multiple of eight bytes")
            columns[name] += [int.from_bytes(data[i : i + 8], "little") for i in range(a, b, 8)]
        elif name in ("client_addr", "server_addr"):
            if b - a not in (4, 16):
                raise Refused("malformed", f"flows.{name} of {b - a} bytes")
            columns[name].append(data[a:b])
        else:
            columns[name] += varints(data, a, b)
    if len({len(v) for v in columns.values()}) != 1:
        raise Refused("malformed", "flow dictionary's columns differ in length")
    flows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    for f in flows:
        if f["client_port"] > 65535 or f["server_port"] > 65535 or f["protocol"] > 255 or f["station_mac"] >= 1 << 48:
            raise Refused("value_range", "flow dictionary")
        if len(f["client_addr"]) != len(f["server_addr"]):
            raise Refused("malformed", "flow with addresses of different families")
    return flows


def _decode_table(table: Table, data: bytes, start: int, end: int, header: dict, n_flows: int) -> list[dict]:
    spans: dict[int, tuple[int, int]] = {}
    known = {1, 2} | {c.field for c in table.columns}
    for number, kind, a, b in fields(data, start, end):
        if number not in known:
            continue
        if kind != 2 or number in spans:
            raise Refused("malformed", f"{table.name}: field {number} repeated or of wire type {kind}")
        spans[number] = (a, b)
    run_rows = list(varints(data, *spans.get(1, (0, 0))))
    if len(run_rows) > table.max_runs or sum(run_rows) > table.max_rows or 0 in run_rows:
        raise Refused("malformed", f"{table.name}: run lengths")
    n = sum(run_rows)
    absent = list(varints(data, *spans[2])) if 2 in spans else [0] * len(run_rows)
    n_optional = sum(c.optional >= 0 for c in table.columns)
    if len(absent) != len(run_rows) or any(a >> n_optional for a in absent):
        raise Refused("malformed", f"{table.name}: run_absent")
    first = set()
    at = 0
    for r in run_rows:
        first.add(at)
        at += r
    columns: dict[str, list[int]] = {}
    for c in table.columns:
        if c.field not in spans:
            columns[c.name] = [0] * n
            values = [0] if n else []
        elif c.kind == "KEY":
            values = [unzigzag(v) for v in varints(data, *spans[c.field])]
            if len(values) != len(run_rows):
                raise Refused("malformed", f"{table.name}.{c.name}: {len(values)} keys for {len(run_rows)} runs")
            columns[c.name] = [v for v, r in zip(values, run_rows) for _ in range(r)]
        else:
            values, current = [], 0
            stream = varints(data, *spans[c.field])
            for raw in stream:
                delta = unzigzag(raw)
                repeat = 1
                if delta == 0:
                    more = next(stream, None)
                    if more is None:
                        raise Refused("malformed", f"{table.name}.{c.name}: zero without a count")
                    repeat = unzigzag(more) + 1
                    if repeat < 1:
                        raise Refused("malformed", f"{table.name}.{c.name}: negative count of zeros")
                if len(values) + repeat > n:
                    raise Refused("malformed", f"{table.name}.{c.name}: more than {n} values")
                for _ in range(repeat):
                    current = delta if len(values) in first else current + delta
                    if not -(1 << 63) <= current < 1 << 63:
                        raise Refused("value_range", f"{table.name}.{c.name}")
                    values.append(current)
            if len(values) != n:
                raise Refused("malformed", f"{table.name}.{c.name}: {len(values)} values for {n} rows")
            columns[c.name] = values
        lo, hi = c.range
        for v in columns[c.name]:
            if not lo <= v <= hi:
                raise Refused("value_range", f"{table.name}.{c.name}: {v}")
        if c.type == "NAME" and any(v >= len(header["names"]) for v in columns[c.name]):
            raise Refused("malformed", f"{table.name}.{c.name}: name outside the dictionary")
        if c.type == "FLOW" and any(v >= n_flows for v in columns[c.name]):
            raise Refused("malformed", f"{table.name}.{c.name}: flow outside the dictionary")
        if c.kind in ("TICK", "TIME_US"):
            unit = header["tick_us"] if c.kind == "TICK" else 1
            if any(not 0 <= v * unit < MAX_OFFSET_US for v in columns[c.name]):
                raise Refused("value_range", f"{table.name}.{c.name}: time outside the batch")
    columns["absent"] = [a for a, r in zip(absent, run_rows) for _ in range(r)]
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def decode(topic: int, data: bytes, key: str | None = None, now_us: int | None = None) -> Batch:
    """Decode one record of topic 0, 1 or 2. Raises Refused. `key` and `now_us` add the checks that need them."""
    settings = contract().settings
    if len(data) > settings["max_batch_bytes"]:
        raise Refused("oversized", f"{len(data)} bytes; at most {settings['max_batch_bytes']}")
    by_field = {t.field: t for t in contract().tables if t.topic == topic}
    spans: dict[int, tuple[int, int]] = {}
    for number, kind, a, b in fields(data, 0, len(data)):
        if number == 1 or number in by_field or (number == 2 and topic == 1):
            if kind != 2 or number in spans:
                raise Refused("malformed", f"{BATCHES[topic][0]}: field {number} repeated or of wire type {kind}")
            spans[number] = (a, b)
    if 1 not in spans:
        raise Refused("malformed", "no header")
    header = _decode_header(data, *spans[1])
    flows = _decode_flows(data, *spans[2]) if topic == 1 and 2 in spans else []
    batch = Batch(topic, header, {}, flows)
    for number, table in by_field.items():
        if number in spans:
            batch.tables[table.name] = _decode_table(table, data, *spans[number], header, len(flows))
    if key is not None and key != header["ap_id"]:
        raise Refused("key_mismatch", f"key {key!r}, ap_id {header['ap_id']!r}")
    if now_us is not None:
        ahead = header["t0_us"] - now_us
        if ahead > settings["max_future_us"] or -ahead > settings["max_past_us"]:
            raise Refused("time_range", f"t0_us is {ahead / 1e6:+.1f} s from now")
    return batch
