"""Flow rows of a capture (format: ap-exporter/src/wire/capture_file.h)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
from oal_schema.settings import generated, settings, tables
from oal_schema.wire import Refused, fields, get_varint, unzigzag, varints

from oal_training.errors import TrainingError

FILE_MAGIC, RECORD_MAGIC = b"OALCAP\x01\x00", b"OALr"
RECORD = struct.Struct("<4sB3xIQI")  # magic, topic, length, t0_us, CRC-32 over topic … t0_us and the batch
PACKETS = 1
HEADER_FIELD, FLOWS_FIELD = 1, 2  # of PacketBatch
RUN_ROWS, RUN_ABSENT = 1, 2
DOWN = 0
FLOW = next(t for t in tables() if t["name"] == "flow")
COLUMNS = [c["name"] for c in FLOW["columns"]]  # position = index of a column in the table's row
OPTIONAL = {c["name"]: c["optional"] for c in FLOW["columns"] if c["optional"] >= 0}


def batches(path: Path, topic: int) -> Iterator[bytes]:
    """Batches of one topic in a capture, damaged ones left out."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path}: {error.strerror}") from None
    if not data.startswith(FILE_MAGIC):
        raise TrainingError(f"{path} is no capture of ap-exporter (.oalcap)")
    at = len(FILE_MAGIC)
    while (at := data.find(RECORD_MAGIC, at)) >= 0 and at + RECORD.size <= len(data):
        _, found, length, _, crc = RECORD.unpack_from(data, at)
        body = data[at + RECORD.size : at + RECORD.size + length]
        if len(body) < length or zlib.crc32(body, zlib.crc32(data[at + 4 : at + 20])) != crc:
            at += 1
            continue
        if found == topic:
            yield body
        at += RECORD.size + length


def spans(body: bytes, start: int = 0, end: int | None = None) -> dict[int, tuple[int, int, int]]:
    """Field number → (wire type, start, end); the last of a number."""
    return {number: (kind, a, b) for number, kind, a, b in fields(body, start, len(body) if end is None else end)}


def header(body: bytes, span: tuple[int, int, int]) -> dict:
    """ap_id, site, t0_us, tick_us and schema_revision of a batch."""
    found = spans(body, *span[1:])
    out = {}
    for name in ("ap_id", "site", "t0_us", "tick_us", "schema_revision"):
        kind, a, b = found.get(generated()["header"][name], (None, 0, 0))
        text = name in ("ap_id", "site")
        out[name] = body[a:b].decode() if text else get_varint(body, a, b)[0] if kind == 0 else 0
    if not 1 <= out["schema_revision"] <= settings()["schema_revision"]:
        raise Refused("unknown_revision", f"schema_revision {out['schema_revision']}")
    return out


def column(body: bytes, span: tuple[int, int, int] | None, run_rows: list[int]) -> np.ndarray:
    """Values of one column that is no key: schema/README.md, "A batch", rule 3."""
    n = sum(run_rows)
    deltas = np.zeros(n, np.int64)
    if span is None:
        return deltas
    stream, at = varints(body, *span[1:]), 0
    for raw in stream:
        delta = unzigzag(raw)
        if delta:
            if at >= n:
                raise Refused("malformed", f"more than {n} values")
            deltas[at] = delta
            at += 1
        else:
            more = unzigzag(next(stream))
            if more < 0:
                raise Refused("malformed", "negative count of zeros")
            at += more + 1
    if at != n:
        raise Refused("malformed", f"{at} values for {n} rows")
    total = np.cumsum(deltas)
    starts = np.array([0, *accumulate(run_rows)][:-1])
    return total - np.repeat(total[starts] - deltas[starts], run_rows)


def keys(body: bytes, span: tuple[int, int, int] | None, run_rows: list[int], signed: bool = True) -> np.ndarray:
    """Values of a column that has one value a run."""
    values = [unzigzag(v) if signed else v for v in varints(body, *span[1:])] if span else [0] * len(run_rows)
    if len(values) != len(run_rows):
        raise Refused("malformed", f"{len(values)} keys for {len(run_rows)} runs")
    return np.repeat(np.array(values, np.int64), run_rows)


def flows_of(body: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Header of a PacketBatch and the rows of its table `flow`, with `flow_id` and `ts_us`."""
    parts = spans(body)
    head = header(body, parts[HEADER_FIELD])
    _, a, b = (
        spans(body, *parts[FLOWS_FIELD][1:])[generated()["flow_dictionary"]["flow_id"]]
        if FLOWS_FIELD in parts
        else (2, 0, 0)
    )
    flow_ids = np.frombuffer(body[a:b], "<u8")
    if FLOW["field"] not in parts:
        return head, {}
    found = spans(body, *parts[FLOW["field"]][1:])
    run_rows = list(varints(body, *found[RUN_ROWS][1:]))
    if sum(run_rows) > FLOW["max_rows"] or 0 in run_rows:
        raise Refused("malformed", "flow: run lengths")
    rows = {
        c["name"]: (keys if c["kind"] == "KEY" else column)(body, found.get(c["field"]), run_rows)
        for c in FLOW["columns"]
    }
    if len(rows["flow"]) and rows["flow"].max() >= len(flow_ids):
        raise Refused("malformed", "flow outside the dictionary")
    return head, rows | {
        "absent": keys(body, found.get(RUN_ABSENT), run_rows, signed=False),
        "flow_id": flow_ids[rows["flow"]],
        "ts_us": head["t0_us"] + rows["tick"] * head["tick_us"],
    }


def flow_rows(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Rows of data going down: `flow_id` uint64[n], `ts_us` int64[n], `absent` int64[n] and every column of the table
    `flow`, in the capture's order; and {"ap_id", "site", "schema_revision", "refused"}.
    """
    parts: list[dict[str, np.ndarray]] = []
    about = {"ap_id": "", "site": "", "schema_revision": 0, "refused": 0}
    for body in batches(path, PACKETS):
        try:
            head, rows = flows_of(body)
        except (Refused, KeyError, StopIteration, UnicodeDecodeError):
            about["refused"] += 1
            continue
        about |= {key: head[key] for key in ("ap_id", "site", "schema_revision")}
        if rows:
            down = rows["direction"] == DOWN
            parts.append({name: values[down] for name, values in rows.items()})
    if not sum(len(part["ts_us"]) for part in parts):
        raise TrainingError(f"{path} holds no flow with data to a station")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, about
