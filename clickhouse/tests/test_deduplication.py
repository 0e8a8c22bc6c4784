"""An INSERT repeated with its token adds nothing: not to its table, not to any rollup, not after a crash."""

import time
from functools import cache

import generate
import pytest
from conftest import Database, run_migrate
from server import Server

# of the present: nothing expires while a server restarts; a tree is shipped every 40 s
T0_US = int(time.time()) // 40 * 40_000_000 - 500_000

# What stream-jobs sends with each INSERT.
WRITER = {"async_insert": 0, "deduplicate_blocks_in_dependent_materialized_views": 1}


def contents(database) -> dict[str, list]:
    """Rows and their sum, per table; sums are of the columns' text so that a doubled sum shows."""
    out = {}
    for table in database.tables("%MergeTree"):
        columns = ", ".join(
            r[0]
            for r in database.rows(
                f"SELECT name FROM system.columns WHERE database = currentDatabase() AND table = '{table}' AND"
                " default_kind != 'MATERIALIZED'"
            )
        )
        final = "FINAL" if "_1" in table else ""
        out[table] = database.rows(f"SELECT count(), sum(cityHash64({columns})) FROM {table} {final}")
    return out


@cache
def rows_of(server, select: str) -> bytes:
    """A repeat sends the very same bytes."""
    return server.query(f"SELECT * FROM ({select}) FORMAT TSV").encode()


def insert_all(database, first_batch: int, batches: int, attempt_settings=WRITER) -> None:
    for table, select in generate.selects(2, T0_US, first_batch, batches).items():
        rows = rows_of(database.server, select)
        database.server.query(f"INSERT INTO {database.name}.{table} FORMAT TSV", data=rows,
                              insert_deduplication_token=f"{table}-{first_batch}", **attempt_settings)


def test_a_repeated_token_adds_nothing_anywhere(database):
    insert_all(database, 0, 8)
    insert_all(database, 8, 8)
    once = contents(database)
    assert all(
        int(rows[0][0]) > 0 for table, rows in once.items()
        if table not in ("gap", "late", "dead_letter", "platform_metric", "settled_transaction",
                         "feature_drift")), once
    insert_all(database, 8, 8)
    insert_all(database, 0, 8)
    assert contents(database) == once


def test_equal_rows_with_another_token_are_kept(database):
    """The token decides, not the content: two equal packets are two packets."""
    row = [{"ap_id": "a", "ts": T0_US // 1_000_000, "direction": 0, "payload_bytes": 10}]
    for token in ("one", "two", "two"):
        database.insert("packet", row, insert_deduplication_token=token, **WRITER)
    assert database.rows("SELECT count(), sum(payload_bytes) FROM packet") == [["2", "20"]]
    assert database.rows("SELECT sum(pkts), sum(payload_bytes) FROM packet_1s") == [["2", "20"]]
    assert database.rows("SELECT sum(pkts), sum(payload_bytes) FROM packet_1m") == [["2", "20"]]


def test_a_block_over_two_days_is_deduplicated_in_both(database):
    rows = [{"ap_id": "a", "ts": int(time.time()) - 86_400 * days, "direction": 0} for days in (0, 1, 2)]
    for _ in range(2):
        database.insert("packet", rows, insert_deduplication_token="x", **WRITER)
    assert database.rows("SELECT count() FROM packet") == [["3"]]
    assert database.rows("SELECT sum(pkts) FROM packet_1m") == [["3"]]


@pytest.fixture
def mortal(tmp_path):
    s = Server(tmp_path).start()
    yield s
    s.kill()


def test_a_repeat_after_kill_9_adds_nothing(mortal):
    database = Database(mortal, "oal")
    assert run_migrate("--url", mortal.url).returncode == 0
    insert_all(database, 0, 8)
    once = contents(database)
    mortal.kill()
    mortal.start()
    assert contents(database) == once
    insert_all(database, 0, 8)
    assert contents(database) == once
