"""Rows of any table of a capture, by entity: `column` and `keys` of the window model's reader, for tables whose keys
are integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from oal_schema.settings import generated, tables
from oal_schema.wire import Refused, varints

from oal_training.window import capture

TABLES = {table["name"]: table for table in tables()}
INTEGER_KEYS = ("mac", "ac", "flow", "direction", "handle", "parent", "frequency_mhz")


def table_rows(path: Path, name: str, columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    """`ts_us` and these columns of a table, int64[n] each, in the capture's order; batches that no reader takes are
    left out. Columns of length 0 where the capture has no such row.
    """
    table = TABLES[name]
    of = {c["name"]: c for c in table["columns"]}
    parts: dict[str, list[np.ndarray]] = {column: [] for column in (*columns, "ts_us")}
    for body in capture.batches(path, table["topic"]):
        try:
            found = capture.spans(body)
            head = capture.header(body, found[capture.HEADER_FIELD])
            if table["field"] not in found:
                continue
            inside = capture.spans(body, *found[table["field"]][1:])
            runs = list(varints(body, *inside[capture.RUN_ROWS][1:]))
            if sum(runs) > table["max_rows"] or 0 in runs:
                raise Refused("malformed", f"{name}: run lengths")
            rows = {
                c: (capture.keys if c in INTEGER_KEYS else capture.column)(body, inside.get(of[c]["field"]), runs)
                for c in (*columns, "tick")
            }
        except (Refused, KeyError, StopIteration, UnicodeDecodeError):
            continue
        rows["ts_us"] = head["t0_us"] + rows.pop("tick") * head["tick_us"]
        for column, values in rows.items():
            parts[column].append(values)
    return {column: np.concatenate(v) if v else np.zeros(0, np.int64) for column, v in parts.items()}


def flow_stations(path: Path) -> dict[int, int]:
    """Station's MAC address of each flow, as the capture's dictionaries say it last."""
    field, of = generated()["flow_dictionary"], {}
    for body in capture.batches(path, capture.PACKETS):
        found = capture.spans(body)
        if capture.FLOWS_FIELD not in found:
            continue
        inside = capture.spans(body, *found[capture.FLOWS_FIELD][1:])
        _, a, b = inside[field["flow_id"]]
        ids = np.frombuffer(body[a:b], "<u8")
        macs = varints(body, *inside[field["station_mac"]][1:]) if field["station_mac"] in inside else ()
        of |= {int(flow): int(mac) for flow, mac in zip(ids, macs, strict=False) if mac}
    return of
