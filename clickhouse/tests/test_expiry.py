"""Rows go when their time has come, and not before."""

import time

import pytest


@pytest.fixture
def ageing(database):
    """The database of all tests holds expiry back; whoever lets it go holds it back again."""
    yield database
    for s in database.server.cluster:
        s.keep_expired()


@pytest.mark.parametrize("table, days", [("packet", 7), ("flow", 7), ("flow_1m", 7), ("dead_letter", 7),
                                         ("station", 30), ("station_1s", 30), ("station_1m", 400), ("label", 180),
                                         ("decision", 30), ("prediction", 180), ("prediction_1m", 400), ("action", 30),
                                         ("control", 30), ("control_1m", 400), ("neighbour_ap", 30),
                                         ("counter_refresh", 30), ("sender_tcp", 7), ("sender_session", 7),
                                         ("sender_tcp_1m", 400), ("sender_session_1m", 7),
                                         ("platform_metric", 30), ("stored_offset_1m", 30)])
def test_a_row_goes_after_its_days(server, ageing, table, days):
    """Expiry is let go once the rows are there."""
    column = "t" if "_1" in table else "ts"
    month = 31 if table.endswith("_1m") and days == 400 else 1  # these drop months, so a row may stay for one more
    for age in (days + month + 1, days - 1):
        ageing.query(f"INSERT INTO {table} ({column}) SETTINGS async_insert = 0 SELECT now() - INTERVAL {age} DAY")
    assert ageing.rows(f"SELECT count() FROM {table}") == [["2"]]
    for s in server.cluster:
        s.query(f"SYSTEM START TTL MERGES {ageing.share}.{table}")
    deadline = time.monotonic() + 60
    while ageing.rows(f"SELECT count() FROM {table}") != [["1"]]:
        assert time.monotonic() < deadline, "the old row is still there"
        time.sleep(0.1)
    # the latter when midnight has just passed
    assert ageing.rows(f"SELECT dateDiff('day', {column}, now()) FROM {table}") in ([[str(days - 1)]], [[str(days)]])
