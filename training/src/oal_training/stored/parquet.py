"""Items in Parquet: OAL's own files (one column a feature, written by `import-items`) and any other table with numeric
columns.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from oal_schema.settings import settings

from oal_training.errors import TrainingError
from oal_training.stored.items import (
    MISSING,
    UNKNOWN,
    Items,
    feature_names,
    from_columns,
    label_known_before,
    ordered,
    with_range,
)

METADATA = b"oal"
FIXED = {
    "ap_id": pa.dictionary(pa.int32(), pa.string()),
    "site": pa.dictionary(pa.int32(), pa.string()),
    "ts_us": pa.int64(),
    "boot_id": pa.uint64(),
    "feature_hash": pa.uint64(),
    "horizon_us": pa.int32(),
    "class_now": pa.int8(),
    "class": pa.int8(),
    "loss_ratio": pa.float32(),
    "offered_pkts": pa.int32(),
    "complete": pa.bool_(),
}
#: Loss by the definition of before, and drops around the instant; -1 in files older than these columns.
DROPS = {
    "loss_permille_resent": pa.int16(),
    "loss_permille_now_resent": pa.int16(),
    "since_drop_us": pa.int32(),
    "until_drop_us": pa.int32(),
}
#: where the YAML names no column
DEFAULT_COLUMNS = {"group": "ap_id", "time": "ts_us", "label": "class", "class_now": "class_now"}
TIME_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, columns: dict[str, np.ndarray], provenance: dict) -> None:
    """Write items of one feature program; `columns` as `from_columns` takes them.

    Provenance goes into the file's metadata.
    """
    features = np.asarray(columns["features"], np.int64)
    names = feature_names(int(columns["feature_hash"][0]), features.shape[1])
    table = {
        name: (
            pa.array(columns[name], type=kind)
            if not pa.types.is_dictionary(kind)
            else pa.array(columns[name]).dictionary_encode()
        )
        for name, kind in FIXED.items()
    }
    table |= {name: pa.array(columns[name], type=kind) for name, kind in DROPS.items() if name in columns}
    table |= {name: pa.array(features[:, i], mask=features[:, i] == MISSING) for i, name in enumerate(names)}
    metadata = provenance | {
        "schema_revision": settings()["schema_revision"],
        "label_window_us": settings()["label_window_us"],
        "features": list(names),
    }
    made = pa.table(table).replace_schema_metadata({METADATA: json.dumps(metadata).encode()})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(made, path, compression="zstd", compression_level=19)


def _open(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise TrainingError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise TrainingError(f"{path} is not a Parquet file: {error}") from None


def read_columns(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Columns and provenance of a file that `write` made. TrainingError when it is another kind of file."""
    table = _open(path)
    metadata = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
    if missing := [name for name in FIXED if name not in table.column_names]:
        raise TrainingError(
            f"{path} has no column {', '.join(missing)}; it is no file of `oal-train import-items`. Commands that take"
            " an experiment read it when that names its columns (`columns:`); `compare` does not"
        )
    columns = {
        name: (
            np.asarray(table[name].to_pylist(), dtype=object)
            if pa.types.is_dictionary(kind)
            else table[name].to_numpy()
        )
        for name, kind in FIXED.items()
    }
    for name in DROPS:
        there = name in table.column_names
        columns[name] = table[name].to_numpy() if there else np.full(table.num_rows, -1, np.int64)
    features = metadata.get("features") or [name for name in table.column_names if name not in FIXED | DROPS]
    columns["features"] = np.column_stack([table[name].fill_null(MISSING).to_numpy() for name in features])
    return columns, metadata


def read(
    path: Path,
    columns: dict | None = None,
    ap: str | None = None,
    site: str | None = None,
    begin_us: int | None = None,
    end_us: int | None = None,
    log=print,
) -> Items:
    """Items of a file. `columns` (the experiment's) names the columns of a file that is not OAL's own."""
    path = Path(path)
    source = {
        "kind": "file",
        "file": path.name,
        "file_sha256": sha256(path) if path.is_file() else "",
        "ap": ap,
        "site": site,
        "begin_us": begin_us,
        "end_us": end_us,
    }
    if columns:
        return _foreign(path, columns, source, ap, site, begin_us, end_us, log)
    found, metadata = read_columns(path)
    keep = np.ones(len(found["ts_us"]), bool)
    for name, value in (("ap_id", ap), ("site", site)):
        keep &= (found[name] == value) if value else True
    keep &= (found["ts_us"] >= begin_us) if begin_us is not None else True
    keep &= (found["ts_us"] < end_us) if end_us is not None else True
    if not keep.any():
        raise TrainingError(
            f"{path}: none of its {len(keep)} items is in that range; APs there:"
            f" {', '.join(sorted(set(found['ap_id']))[:10])}"
        )
    source |= {
        "provenance": {k: v for k, v in metadata.items() if k != "features"},
        "schema_revision": metadata.get("schema_revision"),
    }
    return from_columns({k: v[keep] for k, v in found.items()}, source, log)


def _labels(values: pa.ChunkedArray, path: Path, target: dict, classes: tuple[str, ...]) -> np.ndarray:
    """Class indices from numbers, names, or a ratio that `bounds` cuts."""
    if bounds := target.get("bounds"):
        ratio = _numbers(values, path, "label (a ratio that `target.bounds` cuts)")
        if (ratio < 0).any():
            raise TrainingError(f"{path}: a label of {ratio.min():g} is no ratio; it is 0 or greater")
        return np.searchsorted(np.asarray(bounds, float), ratio, side="right")
    if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        y = values.to_numpy().astype(np.int64)
    else:
        index = {name.lower(): k for k, name in enumerate(classes)}
        texts = [str(v) for v in values.to_pylist()]
        if unknown := sorted({t for t in texts if t.lower() not in index})[:5]:
            raise TrainingError(
                f"{path}: label {', '.join(unknown)} is none of {', '.join(classes)}; set `target.classes`, or"
                " `target.bounds` for a ratio"
            )
        y = np.array([index[t.lower()] for t in texts], np.int64)
    if y.min() < 0 or y.max() >= len(classes):
        raise TrainingError(
            f"{path}: labels run from {y.min()} to {y.max()}, and there are {len(classes)} classes; set"
            " `target.classes`"
        )
    return y


def _numbers(values: pa.ChunkedArray, path: Path, what: str) -> np.ndarray:
    """float64; TrainingError when there is text, a gap or a number that is not finite."""
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise TrainingError(f"{path}: {what} is {kind}, not a number")
    found = np.asarray(values.cast(pa.float64()).fill_null(float("nan")).to_numpy(), np.float64)
    if wrong := int(np.sum(~np.isfinite(found))):
        raise TrainingError(
            f"{path}: {what} is missing, NaN or infinite in {wrong} of {len(found)} rows; leave those rows out"
        )
    return found


def _times(values: pa.ChunkedArray, path: Path, unit: str | None) -> np.ndarray:
    if values.null_count:
        raise TrainingError(f"{path}: time is missing in {values.null_count} of {len(values)} rows")
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    if unit not in (None, *TIME_UNITS):
        raise TrainingError(f"columns.time_unit {unit!r} is none of {', '.join(TIME_UNITS)}")
    if unit is None and pa.types.is_integer(values.type):
        return values.to_numpy().astype(np.int64)
    found = np.round(_numbers(values, path, "time") * TIME_UNITS[unit or "us"])
    if (np.abs(found) >= 2.0**62).any():
        raise TrainingError(
            f"{path}: time {found[np.argmax(np.abs(found))]:g} µs is beyond any date; see columns.time_unit"
        )
    return found.astype(np.int64)


def _foreign(path: Path, spec: dict, source: dict, ap, site, begin_us, end_us, log) -> Items:
    s = settings()
    table = _open(path)
    names = DEFAULT_COLUMNS | {k: v for k, v in spec.items() if isinstance(v, str)}
    target = {"classes": s["class_names"], "congested_from": 2} | (spec.get("target") or {})
    classes = tuple(target["classes"])
    for role in ("group", "time", "label"):
        if names[role] not in table.column_names:
            raise TrainingError(
                f"{path} has no column {names[role]} ({role}); it has {', '.join(table.column_names[:40])}"
            )
    for role, option, value in (("group", "--ap", ap), ("site", "--site", site)):
        if value:
            if names.get(role) not in table.column_names:
                raise TrainingError(
                    f"{option}: name the column of {path} that it is about in the experiment (columns.{role})"
                )
            table = table.filter(pc.equal(table[names[role]].cast(pa.string()), value))
    not_features = {names.get(k) for k in names} | set(spec.get("drop") or ())
    numeric = [
        f.name
        for f in table.schema
        if f.name not in not_features
        and (pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_boolean(f.type))
    ]
    features = list(spec.get("features") or numeric)
    if wrong := [f for f in features if f not in table.column_names]:
        raise TrainingError(f"{path} has no feature column {', '.join(wrong)}")
    if not features:
        raise TrainingError(f"{path}: no numeric column is left for a feature")
    if absent := table[names["group"]].null_count:
        raise TrainingError(f"{path}: {names['group']} (group) is missing in {absent} rows; whose items are they?")
    group = np.asarray([str(v) for v in table[names["group"]].to_pylist()])
    ts_us = _times(table[names["time"]], path, spec.get("time_unit"))
    labelled = ~np.asarray(table[names["label"]].is_null())
    keep = (
        labelled
        & (ts_us >= begin_us if begin_us is not None else True)
        & (ts_us < end_us if end_us is not None else True)
    )
    if not keep.any():
        raise TrainingError(f"{path}: none of its {len(keep)} rows has a label and is in that range")
    table, group, ts_us = table.filter(pa.array(keep)), group[keep], ts_us[keep]
    label = table[names["label"]]
    y = _labels(label, path, target, classes)
    horizon_us, window_us = int(spec.get("horizon_us", s["horizon_us"])), int(
        spec.get("label_window_us", s["label_window_us"])
    )
    age_us = horizon_us + window_us
    if names["class_now"] in table.column_names:
        now = _labels(table[names["class_now"]], path, target, classes)
    else:
        now = label_known_before(group, ts_us, y, age_us, UNKNOWN)
        log(
            f"{path.name} has no column {names['class_now']}: the class now is the label of the latest item that is"
            f" {age_us / 1e6:g} s older"
        )
    loss = label.to_numpy().astype(float) if target.get("bounds") else np.full(len(y), np.nan)
    x = np.column_stack(
        [np.asarray(table[f].cast(pa.float64()).fill_null(float("nan")).to_numpy(), np.float64) for f in features]
    )
    x[~np.isfinite(x)] = np.nan
    items = Items(
        x=x,
        names=tuple(features),
        group=group,
        ts_us=ts_us,
        y=y,
        now=now,
        loss_now=label_known_before(group, ts_us, loss, age_us, np.nan),
        classes=classes,
        congested_from=int(target["congested_from"]),
        horizon_us=horizon_us,
        label_window_us=window_us,
        source=source,
    )
    if left := int(np.sum(~keep)):
        log(f"left out: {left} rows without a label or outside the range")
    return with_range(ordered(items))
