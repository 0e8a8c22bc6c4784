"""Samples of the window model: a flow at a decision instant as the AP sees it, with the congestion window that its
sender had then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from oal_schema.settings import settings

from oal_training.errors import TrainingError
from oal_training.policies import window_settings
from oal_training.stored import jsonl, parquet
from oal_training.stored.items import MISSING
from oal_training.stored.parquet import sha256
from oal_training.stored.programs import feature_names, known_programs
from oal_training.window import capture, sender

METADATA = b"oal.window"
#: columns of the flow table that a model may see: what the AP's tracker counts, without identities and times
FLOW_INPUTS = tuple(window_settings()["flow_inputs"])
LIVE_US = 300_000  # a live flow has a row in every batch (252 ms)
ACTIVE_US = 1_000_000  # of a flow that sent nothing for this long nobody can see the window
SENDER_US = 1_100_000  # the sniffer repeats an unchanged row once a second
MAX_CLOCK_ERROR_US = 100_000  # a decision interval: worse, and the truth may be another instant's
FIXED = {
    "capture": pa.dictionary(pa.int8(), pa.string()),
    "ap_id": pa.dictionary(pa.int8(), pa.string()),
    "ts_us": pa.int64(),
    "flow_id": pa.uint64(),
    "cwnd_bytes": pa.int64(),
    "mss_bytes": pa.int32(),
    "congestion_control": pa.dictionary(pa.int8(), pa.string()),
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """m samples in order of time.

    x        float64[m, k], NaN where missing; names: k, flow columns as `flow.NAME`, features of the program by their
             names
    inputs   k numbers of the contract (WindowModel.input): v >= 0 feature v, v < 0 column -1 - v of the flow table
    y        float64[m], the sender's congestion window in bytes
    flow     uint64[m]; capture str[m]; ts_us int64[m], decision instant; cc str[m], congestion control
    source   provenance of the captures
    """

    x: np.ndarray
    names: tuple[str, ...]
    inputs: tuple[int, ...]
    y: np.ndarray
    flow: np.ndarray
    capture: np.ndarray
    ts_us: np.ndarray
    cc: np.ndarray
    feature_hash: int
    source: dict

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows) -> Dataset:
        return replace(self, **{k: getattr(self, k)[rows] for k in ("x", "y", "flow", "capture", "ts_us", "cc")})

    def only(self, names: tuple[str, ...] | list[str]) -> Dataset:
        """The samples with these inputs alone."""
        at = [self.names.index(name) for name in names]
        return replace(self, x=self.x[:, at], names=tuple(names), inputs=tuple(self.inputs[i] for i in at))

    def of(self, *captures: str) -> Dataset:
        """The samples of these captures. TrainingError where there are none."""
        keep = np.isin(self.capture, captures)
        if not keep.any():
            raise TrainingError(
                f"no sample of {', '.join(captures)}; there are {', '.join(sorted(set(self.capture.tolist())))}"
            )
        return self[keep]

    def describe(self) -> str:
        """Number of samples and flows and the spread of windows in one line."""
        q = np.percentile(self.y, [5, 50, 95]) / 1000
        return (
            f"{len(self)} samples of {len(set(self.flow.tolist()))} flows in"
            f" {', '.join(sorted(set(self.capture.tolist())))}; window {q[0]:.1f} / {q[1]:.1f} / {q[2]:.1f} KB (5 %,"
            " median, 95 %)"
        )


def as_of(times: np.ndarray, instants: np.ndarray, age_us: int) -> np.ndarray:
    """Index of the latest time ≤ each instant, -1 where it is more than age_us older or there is none. Times ascend."""
    at = np.searchsorted(times, instants, side="right") - 1
    fresh = (at >= 0) & (instants - times[np.maximum(at, 0)] <= age_us)
    return np.where(fresh, at, -1)


def by_flow(flow_id: np.ndarray, ts_us: np.ndarray) -> dict[int, np.ndarray]:
    """Rows of each flow in order of time."""
    order = np.lexsort((ts_us, flow_id))
    first = np.flatnonzero(np.r_[True, np.diff(flow_id[order]) != 0]) if len(order) else []
    return {int(flow_id[rows[0]]): rows for rows in np.split(order, first[1:])} if len(order) else {}


def join(rows: dict, sent: dict, instants: np.ndarray) -> dict[str, np.ndarray]:
    """`instant` (index into instants), `row` (index into the flow rows) and `truth` (index into the sender's) of each
    sample.
    """
    good = np.flatnonzero(sent["clock_offset_error_us"] <= MAX_CLOCK_ERROR_US)
    ap_time = sent["ts_us"] - sent["clock_offset_us"]
    truths = {flow: good[r] for flow, r in by_flow(sent["flow_id"][good], ap_time[good]).items()}
    found = {"instant": [], "row": [], "truth": []}
    for flow, mine in by_flow(rows["flow_id"], rows["ts_us"]).items():
        if flow not in truths:
            continue
        times = rows["ts_us"][mine]
        begin, end = np.searchsorted(instants, [times[0], times[-1] + LIVE_US])
        t = instants[begin:end]
        now, before = as_of(times, t, LIVE_US), as_of(times, t - ACTIVE_US, 1 << 62)
        sent_bytes = rows["sent_bytes"][mine]
        grew = sent_bytes[now] > np.where(before >= 0, sent_bytes[before], 0)
        truth = as_of(ap_time[truths[flow]], t, SENDER_US)
        keep = np.flatnonzero((now >= 0) & grew & (truth >= 0))
        found["instant"].append(begin + keep)
        found["row"].append(mine[now[keep]])
        found["truth"].append(truths[flow][truth[keep]])
    return {key: np.concatenate(parts) if parts else np.zeros(0, np.int64) for key, parts in found.items()}


def build(capture_file: Path, sender_file: Path, items_file: Path, log=print) -> tuple[dict[str, np.ndarray], dict]:
    """Columns of the samples of one capture, and its provenance.

    `items_file`: the capture's items, from stream-jobs/items or import-items.
    """
    rows, about = capture.flow_rows(capture_file)
    items = parquet.read_columns(items_file)[0] if items_file.suffix == ".parquet" else jsonl.read(items_file)
    if not (items["ap_id"] == about["ap_id"]).any():
        raise TrainingError(f"{items_file} holds no complete item of {about['ap_id']}, the AP of {capture_file}")
    columns, source = samples(
        rows, sender.rows(sender_file), items, about["ap_id"], capture_file.name.split(".")[0], log
    )
    return columns, source | {
        "capture": capture_file.name,
        "capture_sha256": sha256(capture_file),
        "sender": sender_file.name,
        "sender_sha256": sha256(sender_file),
        "schema_revision": about["schema_revision"],
        "batches_refused": about["refused"],
    }


def samples(
    rows: dict, sent: dict, items: dict, ap_id: str, name: str, log=print
) -> tuple[dict[str, np.ndarray], dict]:
    """Columns of the samples of one AP, in order of time, and what there is to say about them.

    `name` is the value of the column `capture`.
    """
    own = (items["ap_id"] == ap_id) & np.asarray(items["complete"], bool)
    if not own.any():
        raise TrainingError(f"{name}: no complete item of {ap_id}")
    order = np.flatnonzero(own)[np.argsort(items["ts_us"][own], kind="stable")]
    hashes = items["feature_hash"][order]
    order, hashes = order[hashes == hashes[-1]], hashes[hashes == hashes[-1]]
    instants, features = items["ts_us"][order], np.asarray(items["features"], np.int64)[order]
    pairs = join(rows, sent, instants)
    n = len(pairs["row"])
    if not n:
        raise TrainingError(
            f"{name}: the AP's flows and the sender's have none in common at the same time; are they of the same run?"
        )
    absent = {column: rows["absent"][pairs["row"]] >> bit & 1 == 1 for column, bit in capture.OPTIONAL.items()}
    flow = {
        f"flow.{column}": (
            np.where(absent[column], MISSING, rows[column][pairs["row"]])
            if column in absent
            else rows[column][pairs["row"]]
        )
        for column in FLOW_INPUTS
    }
    ap = {
        feature: features[pairs["instant"], i]
        for i, feature in enumerate(feature_names(int(hashes[0]), features.shape[1]))
    }
    columns = {
        "capture": np.full(n, name, dtype=object),
        "ap_id": np.full(n, ap_id, dtype=object),
        "ts_us": instants[pairs["instant"]],
        "flow_id": rows["flow_id"][pairs["row"]],
        "cwnd_bytes": sent["cwnd_bytes"][pairs["truth"]],
        "mss_bytes": sent["mss_bytes"][pairs["truth"]],
        "congestion_control": sent["congestion_control"][pairs["truth"]].astype(object),
        **flow,
        **ap,
    }
    order = np.lexsort((columns["flow_id"], columns["ts_us"]))
    source = {
        "feature_hash": f"{int(hashes[0]):016x}",
        "rows": n,
        "flows": len(set(columns["flow_id"].tolist())),
        "flows_at_ap": len(set(rows["flow_id"].tolist())),
        "clock_offset_us": int(np.median(sent["clock_offset_us"][pairs["truth"]])),
        "clock_offset_error_max_us": int(sent["clock_offset_error_us"][pairs["truth"]].max()),
    }
    log(
        f"{name}: {n} samples of {source['flows']} flows ({source['flows_at_ap']} at the AP); clocks differ by"
        f" {source['clock_offset_us']} µs ± {source['clock_offset_error_max_us']} µs at most"
    )
    return {column: values[order] for column, values in columns.items()}, source


def write(path: Path, parts: list[tuple[dict[str, np.ndarray], dict]]) -> None:
    """Samples of several captures in one Parquet file, provenance in its metadata."""
    names = [name for name in parts[0][0] if name not in FIXED]
    hashes = {source["feature_hash"] for _, source in parts}
    if len(hashes) > 1:
        raise TrainingError(
            f"the captures' features are of different programs ({', '.join(sorted(hashes))}); make the items anew"
        )
    joined = {name: np.concatenate([columns[name] for columns, _ in parts]) for name in parts[0][0]}
    table = {
        name: (
            pa.array(joined[name]).dictionary_encode()
            if pa.types.is_dictionary(kind)
            else pa.array(joined[name], type=kind)
        )
        for name, kind in FIXED.items()
    }
    table |= {name: pa.array(joined[name].astype(np.int64), mask=joined[name] == MISSING) for name in names}
    metadata = {
        "captures": [source for _, source in parts],
        "feature_hash": hashes.pop(),
        "schema_revision": settings()["schema_revision"],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table(table).replace_schema_metadata({METADATA: json.dumps(metadata).encode()}),
        path,
        compression="zstd",
        compression_level=19,
    )


def read(path: Path) -> Dataset:
    """A file of `write`."""
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise TrainingError(f"{path}: no such file; make it with `oal-train window dataset`") from None
    except (pa.ArrowException, OSError) as error:
        raise TrainingError(f"{path} is not a Parquet file: {error}") from None
    metadata = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
    if not metadata or (absent := [name for name in FIXED if name not in table.column_names]):
        raise TrainingError(
            f"{path} was not written by `oal-train window dataset`"
            + (f": no column {', '.join(absent)}" if metadata else "")
        )
    names = tuple(name for name in table.column_names if name not in FIXED)
    x = np.column_stack([table[name].cast(pa.float64()).fill_null(float("nan")).to_numpy() for name in names])
    text = {name: np.asarray(table[name].to_pylist(), dtype=str) for name in ("capture", "congestion_control")}
    feature_hash = int(metadata["feature_hash"], 16)
    source = metadata | {
        "file": path.name,
        "file_sha256": sha256(path),
        "rows": len(x),
        "from_us": int(table["ts_us"].to_numpy().min()),
        "to_us": int(table["ts_us"].to_numpy().max()),
    }
    return Dataset(
        x=x,
        names=names,
        inputs=tuple(input_number(name, feature_hash) for name in names),
        y=table["cwnd_bytes"].to_numpy().astype(np.float64),
        flow=table["flow_id"].to_numpy(),
        capture=text["capture"],
        ts_us=table["ts_us"].to_numpy(),
        cc=text["congestion_control"],
        feature_hash=feature_hash,
        source=source,
    )


def input_number(name: str, feature_hash: int) -> int:
    """The contract's number of an input by its name here."""
    if name.startswith("flow."):
        return -1 - capture.COLUMNS.index(name[len("flow.") :])
    program = known_programs().get(feature_hash)
    if program is None:
        raise TrainingError(
            f"feature program {feature_hash:016x} is none of the contract's (policies): its features have no"
            " numbers here"
        )
    return program.names.index(name)
