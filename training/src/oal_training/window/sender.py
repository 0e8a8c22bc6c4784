"""What oal-sniffer wrote: TCP state at the sender (file format: lab/README.md, table sender_tcp)."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import numpy as np

from oal_training.errors import TrainingError

WANTED = (
    "flow_id",
    "cwnd_bytes",
    "ssthresh_bytes",
    "mss_bytes",
    "unacked_pkts",
    "rtt_us",
    "clock_offset_us",
    "clock_offset_error_us",
    "state",
)


def rows(path: Path, more: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Columns of the rows, by name; `ts_us` (sender's clock) for `ts`, `congestion_control` as str. `more`: whole
    numbers beside WANTED.

    A file that was cut short gives what is whole.
    """
    found: dict[str, list] = {name: [] for name in ("ts", "congestion_control", *WANTED, *more)}
    try:
        with gzip.open(path, "rt") as file:
            columns = json.loads(file.readline())["columns"]
            at = {name: columns.index(name) for name in found}
            ts = 0
            for line in lines(file):
                values = json.loads(line)
                ts += values[at["ts"]]
                for name, i in at.items():
                    found[name].append(values[i] if name != "ts" else ts)
    except FileNotFoundError:
        raise TrainingError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise TrainingError(f"{path} was not written by oal-sniffer: {error}") from None
    if not found["ts"]:
        raise TrainingError(f"{path} holds no connection")
    out = {
        name: np.array(values, np.uint64 if name == "flow_id" else np.int64)
        for name, values in found.items()
        if name != "congestion_control"
    }
    return out | {"ts_us": out.pop("ts"), "congestion_control": np.array(found["congestion_control"], dtype=str)}


def lines(file):
    """Whole lines, as far as the file goes."""
    while True:
        try:
            line = file.readline()
        except (EOFError, zlib.error):
            return
        if not line.endswith("\n"):
            return
        yield line
