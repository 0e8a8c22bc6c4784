"""Points that a sender's model of losses is fitted on: means of the last samples of congestion window and round trip,
connection by connection, of samples with nothing taken for lost."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oal_training.errors import TrainingError
from oal_training.lineage import Lineage
from oal_training.policies import file as file_of
from oal_training.stored.clickhouse import Connection

POLICY = "loss-cause"
QUERY = (
    "SELECT toUnixTimestamp64Micro(ts) AS ts_us, flow_id, cwnd_bytes, mss_bytes, rtt_us, lost_pkts FROM sender_tcp"
    " WHERE ts >= fromUnixTimestamp64Micro({begin:Int64}, 'UTC') AND ts < fromUnixTimestamp64Micro({end:Int64}, 'UTC')"
    " AND rtt_us > 0 AND mss_bytes > 0 ORDER BY flow_id, ts LIMIT 2000000"
)


def settings() -> dict:
    """What policies/loss-cause/kmeans.yaml says."""
    import yaml

    return yaml.safe_load(file_of(POLICY, "kmeans.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class Points:
    """m points of connections, in order of time within each.

    x        float64[m, 2]: congestion window in segments, round trip in µs
    flow     uint64[m]
    lineage  where they come from
    """

    x: np.ndarray
    flow: np.ndarray
    lineage: Lineage


def means(cwnd_pkts: np.ndarray, rtt_us: np.ndarray, flow: np.ndarray, of: int) -> np.ndarray:
    """Mean of each sample and the `of` - 1 before it, of its own connection; fewer at its begin."""
    raw = np.stack([cwnd_pkts, rtt_us], axis=1).astype(float)
    out, begin = np.empty_like(raw), 0
    for end in [*(np.flatnonzero(flow[1:] != flow[:-1]) + 1), len(flow)]:
        total = np.cumsum(raw[begin:end], axis=0)
        before = np.zeros_like(total)
        before[of:] = total[:-of]
        out[begin:end] = (total - before) / np.minimum(np.arange(1, end - begin + 1), of)[:, None]
        begin = end
    return out


def of_rows(rows: dict[str, np.ndarray], lineage: Lineage) -> Points:
    """Of columns of `sender_tcp`. TrainingError where no sample is calm."""
    calm = (rows["lost_pkts"] == 0) & (rows["rtt_us"] > 0) & (rows["mss_bytes"] > 0)
    if not calm.any():
        raise TrainingError("no sample of a sender has a round trip and nothing lost")
    kept = {name: values[calm] for name, values in rows.items()}
    order = np.lexsort((kept["ts_us"], kept["flow_id"]))
    kept = {name: values[order] for name, values in kept.items()}
    x = means(kept["cwnd_bytes"] / kept["mss_bytes"], kept["rtt_us"], kept["flow_id"], settings()["points_mean"])
    return Points(x, kept["flow_id"], lineage)


def of_files(files: list[Path]) -> Points:
    """Of files of oal-sniffer."""
    from oal_training.window import sender

    parts, digest = [], hashlib.sha256()
    for path in files:
        parts.append(sender.rows(path, ("lost_pkts",)))
        digest.update(path.read_bytes())
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return of_rows(rows, _lineage(", ".join(path.name for path in files), digest.hexdigest(), rows))


def of_clickhouse(connection: Connection, begin_us: int, end_us: int) -> Points:
    """Of the table `sender_tcp` in a range of time. TrainingError where it has none."""
    from clickhouse_connect.driver.exceptions import ClickHouseError

    client = connection.client()
    try:
        table = client.query_arrow(QUERY, parameters={"begin": begin_us, "end": end_us})
    except ClickHouseError as error:
        raise TrainingError(f"ClickHouse refused the query: {str(error).splitlines()[0]}") from None
    finally:
        client.close()
    if not table.num_rows:
        raise TrainingError("ClickHouse has no row of sender_tcp in that time; oal-sniffer sends them (lab/README.md)")
    rows = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(rows[name]).tobytes() for name in sorted(rows)))
    return of_rows(rows, _lineage(f"{QUERY}  -- begin {begin_us}, end {end_us}", digest.hexdigest(), rows))


def _lineage(query: str, sha256: str, rows: dict[str, np.ndarray]) -> Lineage:
    from oal_schema.settings import settings as contract

    return Lineage(
        query=query,
        data_sha256=sha256,
        from_us=int(rows["ts_us"].min()),
        to_us=int(rows["ts_us"].max()),
        rows=len(rows["ts_us"]),
        schema_revision=contract()["schema_revision"],
    )
