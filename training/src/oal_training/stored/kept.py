"""Items kept beside a run of MLflow, by the hash of their file: just what a model was fitted on, or is judged on.

The table `item` forgets after its TTL and a file may be moved; a kept file holds the arrays themselves, so a version
can be fitted again and be compared long after. Its name says its SHA-256, and whoever reads it checks.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oal_training.errors import TrainingError
from oal_training.stored.items import Items

FOLDER = "data"  # of the run's artifacts
METADATA = b"oal.kept"
FORMAT = 1
MAX_BYTES = 256 << 20  # of a file: some twenty times what 200,000 items take
SAID = ("names", "classes", "congested_from", "horizon_us", "label_window_us", "feature_hash", "source")
EXACT = 1 << 53  # beyond it a float64 does not say every integer


def name(role: str, sha256: str) -> str:
    """Path of a kept file among the artifacts of its run; role: training or evaluation."""
    return f"{FOLDER}/{role}-{sha256}.parquet"


def write(path: Path, items: Items) -> str:
    """Write the items; the file's SHA-256, hex. The same items give the same bytes with the same pyarrow."""
    columns = {
        "group": pa.array(items.group.tolist(), pa.string()).dictionary_encode(),
        "ts_us": pa.array(items.ts_us),
        "y": pa.array(items.y.astype(np.int8)),
        "now": pa.array(items.now.astype(np.int8)),
        "loss_now": pa.array(items.loss_now.astype(np.float64)),
    }
    columns |= {f"x{i}": _feature(items.x[:, i]) for i in range(items.x.shape[1])}
    said = {field: getattr(items, field) for field in SAID} | {"format": FORMAT}
    table = pa.table(columns).replace_schema_metadata({METADATA: json.dumps(said, sort_keys=True).encode()})
    pq.write_table(table, path, compression="zstd", compression_level=9)
    return sha256(path)


def _feature(values: np.ndarray) -> pa.Array:
    """A column of features; whole numbers as int64, a quarter of the bytes. NaN is a missing value."""
    missing = np.isnan(values)
    whole = np.where(missing, 0, values)
    if np.isfinite(whole).all() and (np.abs(whole) < EXACT).all() and (whole == np.trunc(whole)).all():
        return pa.array(whole.astype(np.int64), mask=missing)
    return pa.array(values.astype(np.float64), mask=missing)


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path, expected: str) -> Items:
    """The items of a file that `write` made. TrainingError unless it has the hash `expected` and can be read."""
    if path.stat().st_size > MAX_BYTES:
        raise TrainingError(f"{path.name}: {path.stat().st_size} bytes of items; at most {MAX_BYTES}")
    if (found := sha256(path)) != expected:
        raise TrainingError(f"{path.name} is not what was kept: its SHA-256 is {found}, that of the run's {expected}")
    try:
        table = pq.read_table(path)
        said = json.loads(table.schema.metadata[METADATA])
        if said["format"] != FORMAT:
            raise ValueError(f"format {said['format']}; {FORMAT} is read here")
        column = lambda field: table[field].to_numpy()
        x = [table[f"x{i}"].cast(pa.float64()).fill_null(float("nan")).to_numpy() for i in range(len(said["names"]))]
        return Items(
            x=np.column_stack(x),
            names=tuple(said["names"]),
            group=np.asarray(table["group"].to_pylist(), dtype=object).astype(str),
            ts_us=column("ts_us").astype(np.int64),
            y=column("y").astype(np.int64),
            now=column("now").astype(np.int64),
            loss_now=column("loss_now").astype(np.float64),
            classes=tuple(said["classes"]),
            **{field: said[field] for field in SAID[2:]},
        )
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path.name} holds no kept items: {type(error).__name__}: {error}") from None
