"""One server for the whole run. What takes time is made once: a migrated database for all tests that insert rows or
want none, one that is filled. A test that changes tables makes its own.
"""

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(FOLDER), str(FOLDER / "tests"), str(FOLDER / "bench")]

import dataset  # noqa: E402
from server import Server  # noqa: E402

USERS = sorted((FOLDER / "users").glob("*.xml"))
PASSWORDS = {f.stem: f"{f.stem}'s secret" for f in USERS}

_numbers = itertools.count(1)


def pytest_addoption(parser):
    parser.addoption("--shards", type=int, default=1, help="of the server that the tests ask (default %(default)s)")
    parser.addoption("--no-server", action="store_true", help="only what needs no ClickHouse")


SERVERS = {"server", "shards", "mortal", "own_server"}  # fixtures that start one


def pytest_collection_modifyitems(config, items):
    if config.getoption("--no-server"):
        items[:] = [item for item in items if not SERVERS & set(item.fixturenames)]
    if config.getoption("--shards") > 1:  # what does not ask the server is the same with several
        items[:] = [item for item in items if "server" in item.fixturenames]
    else:
        items[:] = [item for item in items if "shards" not in item.fixturenames]


@pytest.fixture(scope="session")
def server(request, tmp_path_factory):
    """The one that tests ask, with all files in users.d; with --shards one of several, which share the rows."""
    environment = {**os.environ, **{f"OAL_{name.upper()}_PASSWORD_SHA256": hashlib.sha256(password.encode()).hexdigest()
                                    for name, password in PASSWORDS.items()}}
    servers = [Server(tmp_path_factory.mktemp("clickhouse"), USERS, environment)
               for _ in range(request.config.getoption("shards"))]
    for s in servers:
        s.join(servers if len(servers) > 1 else [])
    for s in servers:
        s.launch()
    for s in servers:
        s.wait()
    yield servers[0]
    for s in servers:
        s.kill()  # nobody reads its folder any more; to end in order takes seconds


def _load(name: str):
    """A script of this folder as a module; it has no .py because people run it."""
    loader = importlib.machinery.SourceFileLoader(f"oal_{name}", str(FOLDER / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


MIGRATE = _load("migrate")


@pytest.fixture(scope="session")
def migrate_module():
    return MIGRATE


def run_migrate(*arguments: str) -> subprocess.CompletedProcess:
    """migrate with these arguments and what it says, without the start of a process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = MIGRATE.main(list(arguments))
        except SystemExit as e:
            code = e.code
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


class Database:
    """A database of the server, by name. `share` is the one with the tables that hold rows: itself, or each shard's
    own.
    """

    def __init__(self, server: Server, name: str):
        self.server, self.name = server, name
        self.share = f"{name}_shard" if len(server.cluster) > 1 else name

    def query(self, sql: str, **settings) -> str:
        return self.server.query(sql, database=self.name, **settings)

    def rows(self, sql: str, **settings) -> list[list[str]]:
        return self.server.rows(sql, database=self.name, **settings)

    def insert(self, table: str, rows: list[dict], **settings) -> None:
        """Insert rows given as column → value."""
        columns = list(rows[0])
        body = "\n".join("\t".join("\\N" if r[c] is None else str(r[c]) for c in columns) for r in rows)
        self.server.query(f"INSERT INTO {self.name}.{table} ({', '.join(columns)}) FORMAT TSV", data=body.encode(),
                          **{"async_insert": 0, **settings})

    def tables(self, engine: str) -> list[str]:
        """Names of those that hold rows, by a pattern of their engine."""
        return [
            name
            for (name,) in self.rows(
                f"SELECT name FROM system.tables WHERE database = '{self.share}' AND engine LIKE '{engine}' AND name !="
                " 'schema_migrations' ORDER BY name"
            )
        ]

    def clear(self) -> None:
        """Take all rows out. Their insertions' tokens are forgotten with them."""
        for s in self.server.cluster:
            held = s.rows(f"SELECT DISTINCT table FROM system.parts WHERE active AND database = '{self.share}' AND"
                          " table != 'schema_migrations'")
            for (table,) in held:
                s.query(f"TRUNCATE TABLE {self.share}.{table}")

    def truncate(self, *tables: str) -> None:
        for s in self.server.cluster:
            for table in tables:
                s.query(f"TRUNCATE TABLE {self.share}.{table}")


def migrated(server: Server, name: str, *more: str) -> Database:
    """A database brought up to date, in which rows do not expire, so that they may be of any day. `more`: options of
    migrate.
    """
    shards = [argument for s in server.cluster for argument in ("--url", s.url)]
    done = run_migrate(*shards, "--database", name, *(["--cluster", "oal"] if len(server.cluster) > 1 else []),
                       *more)
    assert done.returncode == 0, done.stderr
    for s in server.cluster:
        s.keep_expired()
    return Database(server, name)


@pytest.fixture
def empty(server):
    """A name that no database has yet."""
    name = f"zz_test_{next(_numbers)}_"
    database = Database(server, name)
    yield database
    for s in server.cluster:
        for each in {name, database.share}:
            s.query(f"DROP DATABASE IF EXISTS {each} SYNC")


@pytest.fixture
def own(server, empty):
    """A migrated database for this test alone, which may change its tables."""
    return migrated(server, empty.name)


@pytest.fixture(scope="session")
def _shared(server):
    """Its name is the one that the users' rights name."""
    return migrated(server, "oal")


@pytest.fixture
def database(_shared):
    """A migrated database without rows. Test after test gets the same one: insert what you like, change no table."""
    _shared.clear()
    return _shared


@pytest.fixture(scope="session")
def filled(server):
    """The data of bench/dataset.py; read only."""
    d = migrated(server, "filled")
    dataset.fill(d.query)
    return d
