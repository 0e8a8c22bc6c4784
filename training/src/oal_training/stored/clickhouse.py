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

#: Items of a job that stamped losses when they were sent again (loss_permille_resent -1) have labels of another
#: meaning: they count as incomplete.
QUERY = """SELECT ap_id, site, toUnixTimestamp64Micro(ts) AS ts_us, boot_id, feature_hash, features, horizon_us,
    toInt8(class_now) AS class_now, toInt8(class) AS class, loss_ratio, offered_pkts,
    toUInt8(item.complete = 1 AND lacked_input != 'yes' AND loss_permille_resent >= 0) AS complete
FROM item WHERE {where} ORDER BY ts DESC, ap_id LIMIT {limit}"""
#: of one answer: about 400 bytes of features a row
MAX_ITEMS = 200_000
#: Of more items, those of whole blocks of an AP are taken: neighbours stay together, for an item's class now is another
#: one's label.
BLOCK_S = 10
BLOCK = f"cityHash64(ap_id, intDiv(toUnixTimestamp64Micro(ts), {BLOCK_S * 1_000_000}))"
#: The blocks with the smallest hashes, as many as there is room for: even over time and APs, and the same each time.
SAMPLE = f"""SELECT max(block), max(total) FROM (SELECT block, sum(n) OVER (ORDER BY block) AS total
    FROM (SELECT {BLOCK} AS block, count() AS n FROM item WHERE {{where}} GROUP BY block)) WHERE total <= {{limit}}"""


@dataclass(frozen=True)
class Connection:
    """As in the section `clickhouse` of a service's configuration."""

    url: str
    user: str
    password_file: str
    database: str = "oal"
    ca_file: str | None = None

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
                ca_cert=self.ca_file,
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
    """The items of that policy, AP, site and range [begin_us, end_us); of more than `limit` a sample that is even over
    time and APs and the same each time (`share` of them, in `source`).

    TrainingError when there is none.
    """
    from clickhouse_connect.driver.exceptions import ClickHouseError

    where, values = _where(policy, ap, site, begin_us, end_us)
    client = connection.client()
    try:
        there = client.query(f"SELECT count() FROM item WHERE {where}", parameters=values).result_rows[0][0]
        if not there:
            raise TrainingError(
                f"ClickHouse has no items {_said(policy, ap, site, begin_us, end_us)}; has the platform run, and is the"
                " range in UTC?"
            )
        taken = there
        if there > limit:
            block, taken = client.query(SAMPLE.format(where=where, limit=limit), parameters=values).result_rows[0]
            if not taken:
                raise TrainingError(f"no block of {BLOCK_S} s of an AP has at most {limit} items; ask for fewer items")
            where, values = f"{where} AND {BLOCK} <= {{block:UInt64}}", values | {"block": block}
            log(
                f"ClickHouse: {there} items are more than {limit}: of each AP and stretch of time"
                f" {taken / there:.2%} are taken, in blocks of {BLOCK_S} s drawn by hash"
            )
        log(f"ClickHouse: reading {taken} of {there} items")
        query = QUERY.format(where=where, limit=limit)
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
        "items_there": there,
        "share": taken / there,
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
