"""One migrated ClickHouse for the run, with data that end now: alert rules ask about now."""
import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

CLICKHOUSE = Path(__file__).resolve().parents[3] / "clickhouse"
sys.path[:0] = [str(CLICKHOUSE / "tests"), str(CLICKHOUSE / "bench")]

import generate  # noqa: E402
import telemetry  # noqa: E402
import troubles  # noqa: E402
from oal_grafana.clickhouse import ClickHouse  # noqa: E402
from server import Server  # noqa: E402

PASSWORD = "grafana's secret"
APS, BATCHES = 3, 1500  # of 252 ms: six minutes
OLD_S = 5 * 86400


@dataclass(frozen=True)
class Platform:
    url: str
    server: Server
    from_s: int
    to_s: int

    def as_grafana(self) -> ClickHouse:
        return ClickHouse(self.url, "grafana", PASSWORD)


def _start(folder: Path) -> Server:
    hashes = {
        f"OAL_{user}_PASSWORD_SHA256": hashlib.sha256(PASSWORD.encode()).hexdigest()
        for user in ("ANALYST", "GRAFANA", "INGEST", "TELEGRAF")
    }
    server = Server(folder, extra_users=sorted((CLICKHOUSE / "users").glob("*.xml")),
                    environment={**os.environ, **hashes}).start()
    subprocess.run([sys.executable, CLICKHOUSE / "migrate", "--url", server.url], check=True, stdout=subprocess.DEVNULL,
                   timeout=120)
    return server


@pytest.fixture(scope="session")
def platform(tmp_path_factory):
    """Access points at work, and every trouble that a panel or an alert rule can tell of. Read only."""
    server = _start(tmp_path_factory.mktemp("clickhouse"))
    try:
        start_s = (int(time.time()) - BATCHES * 252 // 1000) // 60 * 60
        for table, select in generate.selects(APS, start_s * 1_000_000, 0, BATCHES).items():
            server.query(f"INSERT INTO {table} {select}", database="oal")
        # Something old too: what must not be read when a long range is shown.
        for table, select in generate.selects(1, (start_s - OLD_S) * 1_000_000, 0, 200).items():
            server.query(f"INSERT INTO {table} {select}", database="oal")
        for sql in troubles.statements():
            server.query(sql, database="oal")
        telemetry.insert(server, int(time.time()) - 1)
        yield Platform(server.url, server, start_s - 60, int(time.time()))
    finally:
        server.stop()


@pytest.fixture(scope="session")
def blank(tmp_path_factory):
    """A migrated ClickHouse without a row."""
    server = _start(tmp_path_factory.mktemp("blank"))
    now = int(time.time())
    yield Platform(server.url, server, now - 900, now)
    server.stop()
