"""Samples from ClickHouse: tables `flow`, `sender_tcp` and `item` of one AP and a range of time."""

from __future__ import annotations

import hashlib

import numpy as np
from oal_schema.settings import settings

from oal_training.errors import TrainingError
from oal_training.policies import RWND_FAIR
from oal_training.stored.clickhouse import MAX_ITEMS, Connection, columns_of
from oal_training.window import capture, dataset
from oal_training.window.sender import WANTED

MAX_APS = 20  # of one training; each costs three queries
RANGE = "ts >= fromUnixTimestamp64Micro({begin:Int64}, 'UTC') AND ts < fromUnixTimestamp64Micro({end:Int64}, 'UTC')"
TIME = "toUnixTimestamp64Micro(ts) AS ts_us"
QUERIES = {
    "flow": (
        f"SELECT flow_id, {TIME}, isNull(rwnd_bytes) AS no_rwnd,"
        f" {', '.join(c if c != 'rwnd_bytes' else 'ifNull(rwnd_bytes, 0) AS rwnd_bytes' for c in dataset.FLOW_INPUTS)}"
        f" FROM flow WHERE ap_id = {{ap:String}} AND direction = {capture.DOWN} AND {RANGE} ORDER BY ts DESC LIMIT"
        f" {MAX_ITEMS}"
    ),
    "sender_tcp": (
        f"SELECT {TIME}, congestion_control, {', '.join(WANTED)} FROM sender_tcp WHERE {RANGE} AND flow_id IN (SELECT"
        f" DISTINCT flow_id FROM flow WHERE ap_id = {{ap:String}} AND {RANGE}) ORDER BY ts DESC LIMIT {MAX_ITEMS}"
    ),
    "item": (
        f"SELECT ap_id, {TIME}, feature_hash, features, toUInt8(item.complete = 1 AND"
        f" lacked_input != 'yes') AS complete FROM item WHERE ap_id = {{ap:String}} AND {RANGE}"
        f" AND policy = '{RWND_FAIR}' ORDER BY ts DESC LIMIT {MAX_ITEMS}"
    ),
}

APS = (
    f"SELECT DISTINCT ap_id FROM flow WHERE direction = {capture.DOWN} AND {RANGE} AND flow_id IN (SELECT DISTINCT"
    f" flow_id FROM sender_tcp WHERE {RANGE}) ORDER BY ap_id LIMIT {MAX_APS}"
)


def aps(connection: Connection, begin_us: int, end_us: int) -> list[str]:
    """APs with flows whose sender told its side in that time. TrainingError where there are none."""
    from clickhouse_connect.driver.exceptions import ClickHouseError

    client = connection.client()
    try:
        found = [row[0] for row in client.query(APS, parameters={"begin": begin_us, "end": end_us}).result_rows]
    except ClickHouseError as error:
        raise TrainingError(f"ClickHouse refused the query: {str(error).splitlines()[0]}") from None
    finally:
        client.close()
    if not found:
        raise TrainingError(
            "ClickHouse has no flow with its sender's side (sender_tcp) in that time; it comes from oal-sniffer"
            " (lab/README.md) with --brokers"
        )
    return found


def fetch(connection: Connection, ap: str, begin_us: int, end_us: int) -> dict[str, dict[str, np.ndarray]]:
    """Columns of the latest rows of the three tables. TrainingError where one of them has none."""
    from clickhouse_connect.driver.exceptions import ClickHouseError

    client = connection.client()
    try:
        found = {
            name: client.query_arrow(query, parameters={"ap": ap, "begin": begin_us, "end": end_us}, use_strings=True)
            for name, query in QUERIES.items()
        }
    except ClickHouseError as error:
        raise TrainingError(f"ClickHouse refused the query: {str(error).splitlines()[0]}") from None
    finally:
        client.close()
    if empty := [name for name, table in found.items() if not table.num_rows]:
        raise TrainingError(
            f"ClickHouse has no rows of {', '.join(empty)} for AP {ap} in that time"
            + (
                "; the sender's side comes from oal-sniffer (lab/README.md) with --brokers"
                if "sender_tcp" in empty
                else ""
            )
        )
    tables = {
        name: {c: table[c].to_numpy(zero_copy_only=False) for c in table.column_names}
        for name, table in found.items()
        if name != "item"
    }
    return tables | {"item": columns_of(found["item"])}


def build(connection: Connection, ap: str, begin_us: int, end_us: int, log=print) -> tuple[dict[str, np.ndarray], dict]:
    """Columns of the samples and their provenance, as `dataset.build` gives them."""
    tables = fetch(connection, ap, begin_us, end_us)
    content = hashlib.sha256()
    for name in sorted(tables):
        for column in sorted(tables[name]):
            values = tables[name][column]
            content.update(np.ascontiguousarray(values.astype(str) if values.dtype == object else values).tobytes())
    rows = {c: v if c == "flow_id" else v.astype(np.int64) for c, v in tables["flow"].items()}
    rows["absent"] = rows.pop("no_rwnd") << capture.OPTIONAL["rwnd_bytes"]
    sent = {
        c: v.astype(str) if c == "congestion_control" else v if c == "flow_id" else v.astype(np.int64)
        for c, v in tables["sender_tcp"].items()
    }
    columns, source = dataset.samples(rows, sent, tables["item"], ap, ap, log)
    digest = content.hexdigest()
    return columns, source | {
        "capture": f"ClickHouse, AP {ap}",
        "capture_sha256": digest,
        "sender": "ClickHouse, sender_tcp",
        "sender_sha256": digest,
        "begin_us": begin_us,
        "end_us": end_us,
        "schema_revision": settings()["schema_revision"],
    }
