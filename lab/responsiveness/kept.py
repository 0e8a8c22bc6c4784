"""Results as they are committed: figures of every cell, every probe of the responsiveness test, and data files in
flent's format.
"""
import json
import pathlib
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
from evaluate import methods
from evaluate import play as evaluation

from . import catalogue, play

#: Whose data files are committed, of the first seed.
DATA_FILES = ("cubic-fq", "cubic-fq+oal")
PROBES = pa.schema([("test", pa.dictionary(pa.int8(), pa.string())), ("method", pa.dictionary(pa.int8(), pa.string())),
                    ("seed", pa.int16()), ("kind", pa.dictionary(pa.int8(), pa.string())), ("begin_s", pa.float64()),
                    ("end_s", pa.float64()), ("tcp_ms", pa.float64()), ("tls_ms", pa.float64()),
                    ("http_ms", pa.float64()), ("connection", pa.int8())])
INTERVALS = pa.schema([("test", pa.dictionary(pa.int8(), pa.string())),
                       ("method", pa.dictionary(pa.int8(), pa.string())), ("seed", pa.int16()), ("t_s", pa.float64()),
                       ("down_bytes", pa.int64()), ("up_bytes", pa.int64()), ("connections", pa.int8())])


def cells(found: dict[play.Cell, dict]) -> list[dict]:
    return [{"test": c.test, "method": c.method.name, "seed": c.seed, **figures} for c, figures in found.items()]


def write(found: dict[play.Cell, dict], how: evaluation.Settings, to: pathlib.Path) -> None:
    """cells.json, probes.parquet, intervals.parquet, and data files of flent's tests."""
    to.mkdir(parents=True, exist_ok=True)
    rows = sorted(cells(found), key=lambda row: (catalogue.NAMES.index(row["test"]), row["method"], row["seed"]))
    (to / "cells.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    probes, intervals = [], []
    first = min(cell.seed for cell in found)
    for cell in sorted(found, key=lambda c: c.name):
        head, there = {"test": cell.test, "method": cell.method.name, "seed": cell.seed}, play.folder(cell, how)
        if cell.test.startswith("rpm"):
            seen = json.loads((there / "probes.json").read_text())
            probes += [head | row for row in seen["probes"]]
            intervals += [head | row for row in seen["intervals"]]
        elif cell.seed == first and cell.method.name in DATA_FILES:
            shutil.copy(there / f"{cell.test}.flent.gz", to / f"{cell.test}.{cell.method.name}.flent.gz")
    for name, rows, schema in (("probes", probes, PROBES), ("intervals", intervals, INTERVALS)):
        pq.write_table(pa.Table.from_pylist(rows, schema), to / f"{name}.parquet", compression="zstd")


def read(folder: pathlib.Path) -> dict[play.Cell, dict]:
    """Figures of every cell that `write` left."""
    rows = json.loads((folder / "cells.json").read_text())
    return {play.Cell(row["test"], methods.method(row["method"]), row["seed"]): row for row in rows}


def seen(folder: pathlib.Path) -> dict[tuple[str, str, int], dict]:
    """What each responsiveness test saw, by (test, method, seed), as `rpm.judge` takes it."""
    out: dict = {}
    for name in ("probes", "intervals"):
        for row in pq.read_table(folder / f"{name}.parquet").to_pylist():
            key = row.pop("test"), row.pop("method"), row.pop("seed")
            out.setdefault(key, {"probes": [], "intervals": []})[name].append(row)
    return out
