"""Items of many files, each of one run: the corpus of `lab/corpus`, or any folder of `import-items` files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from oal_training.errors import TrainingError
from oal_training.stored import parquet
from oal_training.stored.items import Items, from_columns

SUFFIX = ".items.parquet"


def files(given: list[Path]) -> list[Path]:
    """The files meant: of a folder, all of its *.items.parquet at any depth. TrainingError when there are none."""
    found = []
    for path in given:
        found += sorted(path.rglob("*" + SUFFIX)) if path.is_dir() else [path]
    if not found:
        raise TrainingError(f"there is no *{SUFFIX} in {', '.join(map(str, given))}")
    return found


def read(given: list[Path], log=print) -> tuple[dict[str, np.ndarray], dict, Items]:
    """Columns, metadata of the first file, and items. Of several files an access point's name is that of its file, so
    that runs which named theirs alike stay apart.
    """
    paths = files(given)
    every, metadata, hashes = [], [], []
    for path in paths:
        columns, said = parquet.read_columns(path)
        if len(paths) > 1:
            stem = path.name.removesuffix(SUFFIX)
            names = np.unique(columns["ap_id"].astype(str))
            columns["ap_id"] = np.array([stem if len(names) == 1 else f"{stem}/{ap}" for ap in columns["ap_id"]])
        every.append(columns)
        metadata.append(said)
        hashes.append(parquet.sha256(path))
    widths = [c["features"].shape[1] for c in every]
    if len(set(widths)) > 1:
        newest = max(range(len(every)), key=lambda i: int(every[i]["ts_us"].max(initial=0)))
        keep = [i for i, width in enumerate(widths) if width == widths[newest]]
        log(f"left out: {len(every) - len(keep)} files with other features")
        every, metadata, hashes = ([a[i] for i in keep] for a in (every, metadata, hashes))
    joined = {name: np.concatenate([c[name] for c in every]) for name in every[0]}
    one = len(every) == 1
    source = {
        "kind": "file",
        "file": paths[0].name if one else f"{len(every)} files of {', '.join(path.name for path in given)}",
        "file_sha256": hashes[0] if one else hashlib.sha256("".join(hashes).encode()).hexdigest(),
        "provenance": {k: v for k, v in metadata[0].items() if k != "features"},
        "schema_revision": metadata[0].get("schema_revision"),
    }
    return joined, metadata[0], from_columns(joined, source, log)
