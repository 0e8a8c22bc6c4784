"""Sessions of hosts, rows of the table `sender_session`, as they are learned from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from oal_training import policies
from oal_training.cc_select.features import TABLE, numbers
from oal_training.cc_select.utility import Utility
from oal_training.errors import TrainingError
from oal_training.lineage import Lineage
from oal_training.stored.clickhouse import Connection

MAX_SESSIONS = 500_000  # of one answer, the latest: some 150 bytes each


def query(host: bool) -> str:
    """SQL of the sessions of a range of time, of one host or of all."""
    return (
        f"SELECT ap_id AS host, toUnixTimestamp64Micro(ts) AS ts_us, {', '.join(c.name for c in numbers())}"
        f" FROM {TABLE}"
        " WHERE ts >= fromUnixTimestamp64Micro({begin:Int64}, 'UTC') AND ts < fromUnixTimestamp64Micro({end:Int64},"
        " 'UTC')" + (" AND ap_id = {host:String}" if host else "") + f" ORDER BY ts DESC LIMIT {MAX_SESSIONS}"
    )


@dataclass(frozen=True, eq=False)
class Sessions:
    """n sessions in order of time; a column is an array of the table's, null where the host did not know."""

    table: pa.Table
    lineage: Lineage

    def __len__(self) -> int:
        return self.table.num_rows

    def column(self, name: str) -> np.ndarray:
        """float64[n], NaN where it is null."""
        return self.table[name].cast(pa.float64()).to_numpy(zero_copy_only=False)

    def whole(self, name: str) -> np.ndarray:
        """int64[n], of a column without null."""
        return self.table[name].cast(pa.int64()).to_numpy(zero_copy_only=False)

    def rows(self, places: np.ndarray) -> list[dict]:
        """Rows by column, None for null."""
        return self.table.take(pa.array(places)).to_pylist()

    def part(self, chosen: np.ndarray) -> Sessions:
        """Some of them."""
        return Sessions(self.table.filter(pa.array(chosen)), self.lineage)

    def networks(self) -> np.ndarray:
        """int64[n]: number of each session's network at its host, 0 … in order of first sight. In place of addresses,
        which are not kept: what is, says no more than that two sessions went to the same network.
        """
        pairs = list(zip(self.table["host"].to_pylist(), self.table["client_prefix"].to_pylist(), strict=True))
        numbers = {pair: n for n, pair in enumerate(dict.fromkeys(pairs))}
        return np.array([numbers[pair] for pair in pairs], dtype=np.int64)

    def worth(self, utility: Utility) -> np.ndarray:
        """float64[n]: what each was worth; NaN where a host knew no round trip, or no time with something to send.

        Speed is that of the time with something to send: a connection of a server waits for requests, too, and no
        congestion control shortens that.
        """
        known = (self.column("busy_us") > 0) & (self.column("min_rtt_us") > 0) & np.isfinite(self.column("rtt_p95_us"))
        out = np.full(len(self), np.nan)
        frame = pd.DataFrame({name: self.column(name)[known] for name in ("bytes_acked", "data_segs_out", "min_rtt_us",
                                                                          "retrans_pkts")})
        frame["seen_us"], frame["rtt_us_p95"] = self.column("busy_us")[known], self.column("rtt_p95_us")[known]
        out[known] = utility.of(frame)
        return out


def of_clickhouse(
    connection: Connection, policy: str, begin_us: int, end_us: int, host: str | None = None
) -> Sessions:
    """Of a range of time, for a policy; of more than MAX_SESSIONS the latest. TrainingError where there is none."""
    from clickhouse_connect.driver.exceptions import ClickHouseError

    text, values = query(host is not None), {"begin": begin_us, "end": end_us} | ({"host": host} if host else {})
    client = connection.client()
    try:
        table = client.query_arrow(text, parameters=values)
    except ClickHouseError as error:
        raise TrainingError(f"ClickHouse refused the query: {str(error).splitlines()[0]}") from None
    finally:
        client.close()
    if not table.num_rows:
        raise TrainingError(
            f"ClickHouse has no session{f' of host {host}' if host else ''} in that time: take a longer one (--from),"
            " or see that hosts send sessions (docs/host-agent.md)"
        )
    return of_table(table, f"{text}  -- {', '.join(f'{k} {v}' for k, v in values.items())}", policy)


def of_table(table: pa.Table, said: str, policy: str) -> Sessions:
    """Of an answer of ClickHouse to a `query`; `said`: what was asked."""
    from oal_schema.settings import settings

    table = table.set_column(0, "host", table["host"].cast(pa.string()))
    table = table.sort_by([("ts_us", "ascending"), ("host", "ascending"), ("client_prefix", "ascending")])
    digest = hashlib.sha256()
    for name in table.column_names:
        digest.update(repr((name, table[name].to_pylist())).encode())
    ts_us = table["ts_us"].to_numpy()
    lineage = Lineage(
        query=said,
        data_sha256=digest.hexdigest(),
        from_us=int(ts_us.min()),
        to_us=int(ts_us.max()),
        rows=table.num_rows,
        schema_revision=settings()["schema_revision"],
        feature_hash=f"{policies.feature_hash(policy):016x}",
    )
    return Sessions(table, lineage)
