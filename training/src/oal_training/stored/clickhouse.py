"""Items from ClickHouse's table `item`, by site, AP and range of time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from oal_training.errors import TrainingError
from oal_training.policies import RWND_FAIR
from oal_training.stored.items import Items, from_columns

QUERY = """SELECT ap_id, site, toUnixTimestamp64Micro(ts) AS ts_us, boot_id, feature_hash, features, horizon_us,
    toInt8(class_now) AS class_now, toInt8(class) AS class, loss_ratio, offered_pkts, complete
FROM item WHERE {where} ORDER BY ts DESC, ap_id LIMIT {limit}"""
#: the analyst's limit on the rows of one answer, and about 400 bytes of features a row
MAX_ITEMS = 200_000


@dataclass(frozen=True)
class Connection:
    """As in the section `clickhouse` of a service's configuration."""

    url: str
    user: str
    password_file: str
    database: str = "oal"

    def client(self):
        """A client of clickhouse-connect; TrainingError when the server does not answer or refuses."""
        import clickhouse_connect
        from clickhouse_connect.driver.exceptions import ClickHouseError

        parts = urlsplit(self.url)
        try:
            password = Path(self.password_file).read_text().strip()
        except OSError as error:
            raise TrainingError(f"ClickHouse's password file: {error}") from None
        try:
            return clickhouse_connect.get_client(
                host=parts.hostname,
                port=parts.port,
                interface=parts.scheme,
                username=self.user,
                password=password,
                database=self.database,
                connect_timeout=10,
                send_receive_timeout=60,
                autogenerate_session_id=False,
            )
        except (ClickHouseError, OSError) as error:
            raise TrainingError(f"ClickHouse at {self.url} as {self.user}: {str(error).splitlines()[0]}") from None


def _where(policy, ap, site, begin_us, end_us) -> tuple[str, dict]:
    terms, values = [], {}
    for term, name, value in (
        ("policy = {policy:String}", "policy", policy),
        ("ap_id = {ap:String}", "ap", ap),
        ("site = {site:String}", "site", site),
        ("ts >= fromUnixTimestamp64Micro({begin:Int64}, 'UTC')", "begin", begin_us),
        ("ts < fromUnixTimestamp64Micro({end:Int64}, 'UTC')", "end", end_us),
    ):
        if value is not None:
            terms.append(term)
            values[name] = value
    return " AND ".join(terms), values


def columns_of(table: pa.Table) -> dict[str, np.ndarray]:
    """Columns of rows of `item`; their features as one matrix, of as many as the newest row has."""
    lists = table["features"].combine_chunks()
    lengths = lists.value_lengths().to_numpy()
    n = int(lengths[0])
    if (lengths != n).any():  # of several feature programs: keep those as long as the newest
        table = table.filter(pa.array(lengths == n))
        lists = table["features"].combine_chunks()
    columns = {
        name: np.asarray(table[name].to_pylist(), dtype=object) if name in ("ap_id", "site") else table[name].to_numpy()
        for name in table.column_names
        if name != "features"
    }
    columns["features"] = lists.flatten().to_numpy().reshape(-1, n)
    return columns


def read(
    connection: Connection,
    ap: str | None = None,
    site: str | None = None,
    begin_us: int | None = None,
    end_us: int | None = None,
    limit: int = MAX_ITEMS,
    log=print,
    policy: str = RWND_FAIR,
) -> Items:
    """The latest `limit` items of that policy, AP, site and range [begin_us, end_us).

    TrainingError when there is none.
    """
    from clickhouse_connect.driver.exceptions import ClickHouseError

    where, values = _where(policy, ap, site, begin_us, end_us)
    query = QUERY.format(where=where, limit=limit)
    client = connection.client()
    try:
        there = client.query(f"SELECT count() FROM item WHERE {where}", parameters=values).result_rows[0][0]
        if not there:
            raise TrainingError(
                f"ClickHouse has no items {_said(policy, ap, site, begin_us, end_us)}; has the platform run, and is the"
                " range in UTC?"
            )
        log(f"ClickHouse: reading {min(there, limit)} of {there} items")
        table = client.query_arrow(query, parameters=values, use_strings=True)
    except ClickHouseError as error:
        raise TrainingError(f"ClickHouse refused the query: {str(error).splitlines()[0]}") from None
    finally:
        client.close()
    columns = columns_of(table)
    content = hashlib.sha256()
    for name in sorted(columns):
        content.update(
            np.ascontiguousarray(
                columns[name].astype(str) if columns[name].dtype == object else columns[name]
            ).tobytes()
        )
    source = {
        "kind": "clickhouse",
        "query": " ".join(query.split()),
        "query_parameters": values,
        "data_sha256": content.hexdigest(),
        "ap": ap,
        "site": site,
        "begin_us": begin_us,
        "end_us": end_us,
    }
    return from_columns(columns, source, log)


def _said(policy, ap, site, begin_us, end_us) -> str:
    words = [
        f"of policy {policy}" if policy != RWND_FAIR else "",
        f"of AP {ap}" if ap else "",
        f"of site {site}" if site else "",
        f"from {begin_us} µs" if begin_us is not None else "",
        f"to {end_us} µs" if end_us is not None else "",
    ]
    return " ".join(w for w in words if w) or "at all"
