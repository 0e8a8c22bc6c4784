"""Rows of a capture (.oalcap of ap-exporter) as TSV files, one per table, for run.py. Needs schema's environment:

    PYTHONPATH=schema/src PYTHON bench/capture.py CAPTURE FOLDER

Decodes with the reference codec of schema/. Columns are those of the ClickHouse tables, in their order; times start at
START_S, so that run.py can lay the capture into any range (ClickHouse reads no shorter number as a time). Prints one
JSON line: rows per table, length in µs.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from pathlib import Path

from oal_schema import codec

START_S = 1_000_000_000
MAGIC = b"OALCAP\x01\x00"
HEADER = struct.Struct("<4sB3xIQI")  # "OALr", topic, length, t0_us, CRC-32 (ap-exporter/src/wire/capture_file.h)
FLOW_COLUMNS = ("flow_id", "client_addr", "server_addr", "client_port", "server_port", "station_mac")


def records(data: bytes):
    """(topic, batch bytes) of each record. Raises ValueError at the first that is broken: these captures are ours."""
    if not data.startswith(MAGIC):
        raise ValueError("not a capture: it does not begin with OALCAP")
    at = len(MAGIC)
    while at < len(data):
        mark, topic, length, _, crc = HEADER.unpack_from(data, at)
        body = data[at + HEADER.size : at + HEADER.size + length]
        if mark != b"OALr" or len(body) != length or zlib.crc32(data[at + 4 : at + HEADER.size - 4] + body) != crc:
            raise ValueError(f"broken record at byte {at}")
        yield topic, body
        at += HEADER.size + length


def address(raw: bytes) -> str:
    """As ClickHouse reads an IPv6."""
    if len(raw) == 4:
        return "::ffff:" + ".".join(map(str, raw))
    return ":".join(f"{raw[i] << 8 | raw[i + 1]:x}" for i in range(0, 16, 2))


def text(column, row: dict, batch) -> list[str]:
    """A column's cells: six for a flow, one otherwise."""
    if column.type == "FLOW":
        flow = batch.flows[row[column.name]]
        return [str(address(flow[n]) if n.endswith("addr") else flow[n]) for n in FLOW_COLUMNS]
    if column.optional >= 0 and row["absent"] >> column.optional & 1:
        return ["\\N"]
    return [batch.header["names"][row[column.name]] if column.type == "NAME" else str(row[column.name])]


def main() -> None:
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    tables = {t.name: t for t in codec.contract().tables}
    files = {name: open(folder / f"{name}.tsv", "w") for name in tables}
    counts, start, end = dict.fromkeys(tables, 0), None, 0
    for topic, body in records(source.read_bytes()):
        batch = codec.decode(topic, body)
        header = batch.header
        start = header["t0_us"] if start is None else start
        end = max(end, header["t0_us"] + header["ticks"] * header["tick_us"])
        for name, rows in batch.tables.items():
            columns = [c for c in tables[name].columns if c.kind not in ("TICK", "TIME_US")]
            for row in rows:
                us = batch.time_us(row) - start
                cells = [
                    header["ap_id"], f"{START_S + us // 1_000_000}.{us % 1_000_000:06d}",
                    str(header["boot_id"]),
                    str(header["seq"])
                ]
                for c in columns:
                    cells += text(c, row, batch)
                files[name].write("\t".join(cells) + "\n")
            counts[name] += len(rows)
    for f in files.values():
        f.close()
    print(json.dumps({"rows": counts, "us": end - start}))


if __name__ == "__main__":
    main()
