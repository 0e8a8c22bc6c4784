"""One migrated ClickHouse for the run: first without a row, then with data that end now, since alert rules ask about
now.
"""
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
import hosts  # noqa: E402
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


def pytest_collection_modifyitems(items):
    """What wants a ClickHouse without a row comes before the rows."""
    items.sort(key=lambda item: "blank" not in item.fixturenames)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Migrated, with the platform's users."""
    hashes = {
        f"OAL_{user}_PASSWORD_SHA256": hashlib.sha256(PASSWORD.encode()).hexdigest()
        for user in ("ANALYST", "GRAFANA", "INGEST", "TELEGRAF")
    }
    server = Server(tmp_path_factory.mktemp("clickhouse"), extra_users=sorted((CLICKHOUSE / "users").glob("*.xml")),
                    environment={**os.environ, **hashes}).start()
    try:
        subprocess.run([sys.executable, CLICKHOUSE / "migrate", "--url", server.url], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def blank(server):
    """The server without a row."""
    held = server.query("SELECT sum(rows) FROM system.parts WHERE active AND database = 'oal' AND table !="
                        " 'schema_migrations'")
    assert held.strip() == "0", "tests that want no rows come first"
    now = int(time.time())
    return Platform(server.url, server, now - 900, now)


@pytest.fixture(scope="session")
def platform(server):
    """Access points at work, and every trouble that a panel or an alert rule can tell of. Read only."""
    start_s = (int(time.time()) - BATCHES * 252 // 1000) // 60 * 60
    for table, select in generate.selects(APS, start_s * 1_000_000, 0, BATCHES).items():
        server.query(f"INSERT INTO {table} {select}", database="oal")
    # Something old too: what must not be read when a long range is shown.
    for table, select in generate.selects(1, (start_s - OLD_S) * 1_000_000, 0, 200).items():
        server.query(f"INSERT INTO {table} {select}", database="oal")
    for sql in (*troubles.statements(), *hosts.statements()):
        server.query(sql, database="oal")
    telemetry.insert(server, int(time.time()) - 1)
    return Platform(server.url, server, start_s - 60, int(time.time()))
