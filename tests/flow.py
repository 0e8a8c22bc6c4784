"""Waiting for the running platform: for conditions, never for time alone."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from ledger import clickhouse_ledger, differences
from oal_local.errors import PlatformError

LIMIT_S = 420  # a restart of everything takes 20 s on an idle machine, several minutes on one that is busy with builds
LEAST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 2.0
SHARE = 4  # pause so many times as long as the look took: what is waited for needs the processors more


def until(what: str, condition: Callable[[], object], limit_s: float = LIMIT_S):
    """Poll until the condition holds and return what it gave. A service that is away counts as "not yet"."""
    deadline = time.monotonic() + limit_s
    error = None
    while (begun := time.monotonic()) < deadline:
        try:
            error = None
            value = condition()
            if value:
                return value
        except (OSError, PlatformError) as away:
            error = away
        time.sleep(max(LEAST_PAUSE_S, min(SHARE * (time.monotonic() - begun), LONGEST_PAUSE_S)))
    raise AssertionError(f"{what}: not within {limit_s:.0f} s" + (f" ({error})" if error else ""))


def kill(platform, service: str) -> int:
    """kill -9 of the service's process; its id."""
    return until(f"{service} has a process", lambda: platform.kill(service, signal.SIGKILL))


def until_back(platform, service: str, killed: int) -> None:
    until(f"{service} runs again", lambda: platform.pid(service) != killed)


def rows(platform, table: str, ap_ids) -> int:
    names = ", ".join(f"'{a}'" for a in ap_ids)
    return int(platform.clickhouse.query(f"SELECT count() FROM oal.{table} WHERE ap_id IN ({names})"))


def until_rows_flow(platform, ap_ids, batches: int = 12) -> None:
    """Wait until that many more batches have arrived in ClickHouse than there are now."""
    before = until("ClickHouse answers", lambda: [rows(platform, "batch", ap_ids)])[0]
    until(f"{batches} more batches in ClickHouse", lambda: rows(platform, "batch", ap_ids) >= before + batches)


def until_drained(platform, ledger) -> None:
    """Wait until ClickHouse has at least as many batches as were made; the ledger says how many rows that is."""
    ap_ids = {key[1] for key in ledger}
    expected = sum(n for key, n in ledger.items() if key[0] == "batch")
    until(f"all {expected} batches in ClickHouse", lambda: rows(platform, "batch", ap_ids) >= expected)
    # `batch` and the other tables are inserts of the same checkpoint: they follow within one commit.
    until("every row in ClickHouse", lambda: sum(clickhouse_ledger(platform, ap_ids).values()) >= sum(ledger.values()),
          60)


def assert_every_row_once(platform, ledger) -> None:
    ap_ids = {key[1] for key in ledger}
    wrong = differences(ledger, clickhouse_ledger(platform, ap_ids))
    assert not wrong, f"by table: (rows made, rows in ClickHouse, lost, too many): {wrong}"
