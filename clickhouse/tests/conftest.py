"""One server for the whole run, and a fresh, migrated database for each test that asks for one."""

import importlib.machinery
import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(FOLDER / "tests"), str(FOLDER / "bench")]

import dataset  # noqa: E402
from server import Server  # noqa: E402

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    s = Server(tmp_path_factory.mktemp("clickhouse")).start()
    yield s
    s.stop()


@pytest.fixture(scope="session")
def migrate_module():
    """migrate as a module; it has no .py because people run it."""
    loader = importlib.machinery.SourceFileLoader("oal_migrate", str(FOLDER / "migrate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def run_migrate(*arguments: str) -> subprocess.CompletedProcess:
    """migrate as a user runs it."""
    return subprocess.run([sys.executable, str(FOLDER / "migrate"), *arguments], capture_output=True, text=True, timeout=120)


class Database:
    """A database of the server, by name."""

    def __init__(self, server: Server, name: str):
        self.server, self.name = server, name

    def query(self, sql: str, **settings) -> str:
        return self.server.query(sql, database=self.name, **settings)

    def rows(self, sql: str, **settings) -> list[list[str]]:
        return self.server.rows(sql, database=self.name, **settings)

    def insert(self, table: str, rows: list[dict], **settings) -> None:
        """Insert rows given as column → value."""
        columns = list(rows[0])
        body = "\n".join("\t".join("\\N" if r[c] is None else str(r[c]) for c in columns) for r in rows)
        self.server.query(f"INSERT INTO {self.name}.{table} ({', '.join(columns)}) FORMAT TSV", data=body.encode(), **{"async_insert": 0, **settings})


def migrated(server: Server, name: str) -> Database:
    """A database brought up to date, in which rows do not expire, so that they may be of any day."""
    done = run_migrate("--url", server.url, "--database", name)
    assert done.returncode == 0, done.stderr
    server.keep_expired()
    return Database(server, name)


@pytest.fixture
def empty(server):
    """A name that no database has yet."""
    name = f"zz_test_{next(_numbers)}_"
    yield Database(server, name)
    server.query(f"DROP DATABASE IF EXISTS {name} SYNC")


@pytest.fixture
def database(server, empty):
    return migrated(server, empty.name)


@pytest.fixture(scope="session")
def filled(server):
    """The data of bench/dataset.py; read only."""
    d = migrated(server, "filled")
    dataset.fill(d.query)
    return d


@pytest.fixture(scope="session")
def blank(server):
    """A migrated database without rows; read only."""
    return migrated(server, "blank")
