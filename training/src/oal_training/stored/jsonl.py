"""Items as lines of JSON (what `stream-jobs/items` prints and Kafka's `training.items.v1` holds) → Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from oal_training.errors import TrainingError
from oal_training.lineage import git_revision
from oal_training.stored import parquet

FIELDS = (*parquet.FIXED, "features")
# numpy's kind of a field; int64 where none is named
KINDS = {
    "ap_id": object,
    "site": object,
    "boot_id": np.uint64,
    "feature_hash": np.uint64,
    "complete": bool,
    "loss_ratio": np.float32,
}


def read(path: Path) -> dict[str, np.ndarray]:
    """Columns of the items in a file, in its order. TrainingError names the line that is wrong."""
    columns: dict[str, list] = {name: [] for name in FIELDS}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                item = json.loads(line)
                values = [item[name] for name in FIELDS]
            except ValueError as error:
                raise TrainingError(f"{path}, line {number}: not JSON ({error})") from None
            except (KeyError, TypeError) as error:
                raise TrainingError(f"{path}, line {number}: not a training item, {error} is missing") from None
            for name, value in zip(FIELDS, values):
                columns[name].append(value)
    if not columns["ts_us"]:
        raise TrainingError(f"{path} holds no items")
    hashes = set(columns["feature_hash"])
    if len(hashes) > 1 or len({len(features) for features in columns["features"]}) > 1:
        raise TrainingError(
            f"{path} holds items of {len(hashes)} feature programs; a Parquet file holds one: split it by feature_hash"
        )
    return {name: np.array(values, dtype=KINDS.get(name, np.int64)) for name, values in columns.items()}


def convert(source: Path, target: Path, capture: Path | None) -> tuple[int, int]:
    """Write the items of `source` to `target`; the file remembers what it was made from. Number of items and bytes."""
    columns = read(source)
    provenance = {"items_sha256": parquet.sha256(source), "git_revision": git_revision()}
    if capture:
        provenance |= {"capture": capture.name, "capture_sha256": parquet.sha256(capture)}
    parquet.write(target, columns, provenance)
    return len(columns["ts_us"]), target.stat().st_size
