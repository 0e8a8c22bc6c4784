"""Items as lines of JSON (what `stream-jobs/items` prints and Kafka's `training.items.v1` holds) → Parquet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from oal_schema import item

from oal_training.errors import TrainingError
from oal_training.lineage import git_revision
from oal_training.stored import parquet

#: types of columns; those that are not named are int64
KINDS = {
    "ap_id": object,
    "site": object,
    "boot_id": np.uint64,
    "feature_hash": np.uint64,
    "complete": bool,
    "loss_ratio": np.float32,
}


def read(path: Path) -> dict[str, np.ndarray]:
    """Columns of the items in a file, in its order, named as in `training.items.v1`.

    One value an item, `features` int64[items, features]. TrainingError names the line that is wrong.
    """
    try:
        found = list(item.lines(path))
    except item.BadItem as error:
        raise TrainingError(f"{path}, {error}") from None
    if not found:
        raise TrainingError(f"{path} holds no items")
    programs = {(one.feature_hash, len(one.features)) for one in found}
    if len(programs) > 1:
        raise TrainingError(
            f"{path} holds items of {len(programs)} feature programs; a Parquet file holds one: "
            "split it by feature_hash"
        )
    if len({one.policy for one in found}) > 1:
        raise TrainingError(f"{path} holds items of several policies; a Parquet file holds one: split it by policy")
    # All are of one policy; what lacked input or was under control counts as incomplete.
    left = ("policy", "lacked_input", "under_control")
    attributes = {name: item.ATTRIBUTES.get(name, name) for name in item.names() if name not in left}
    found = [replace(one, complete=one.complete and not (one.lacked_input or one.under_control)) for one in found]
    return {
        name: np.array([getattr(one, attribute) for one in found], dtype=KINDS.get(name, np.int64))
        for name, attribute in attributes.items()
    }


def convert(source: Path, target: Path, capture: Path | None) -> tuple[int, int]:
    """Write the items of `source` to `target`; the file remembers what it was made from. Number of items and bytes."""
    columns = read(source)
    provenance = {"items_sha256": parquet.sha256(source), "git_revision": git_revision()}
    if capture:
        provenance |= {"capture": capture.name, "capture_sha256": parquet.sha256(capture)}
    parquet.write(target, columns, provenance)
    return len(columns["ts_us"]), target.stat().st_size
