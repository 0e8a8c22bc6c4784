"""The start script of the chart's PostgreSQL, run with a real PostgreSQL: databases and users are made, and passwords
follow their files.
"""
import os
import pwd
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from conftest import ROOT
from manifests import find

PROGRAMS = Path("/usr/lib/postgresql/15/bin")


class Server:
    """The script with its folders moved into FOLDER, as user postgres."""

    def __init__(self, chart, folder: Path):
        self.folder, self.process = folder, None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        files = find(chart.objects(), "ConfigMap", "oal-postgres")["data"]
        text = files["start.sh"]
        subprocess.run(
            [ROOT / "platform/security/oal-ca", "init", folder / "state", "--hosts", "postgres=oal-postgres"],
            check=True, capture_output=True)
        self.ca = folder / "state/pki/ca.crt"
        (folder / "pg_hba.conf").write_text(files["pg_hba.conf"])
        text = text.replace("/run/secrets/oal/pki", str(self.ca.parent)).replace("/etc/oal/postgres", str(folder))
        for path in ("/var/lib/postgresql/data", "/run/secrets/oal/secrets", "/var/run/postgresql"):
            moved = folder / path.strip("/").replace("/", "-")
            moved.mkdir(mode=0o700)
            text = text.replace(path, str(moved))
        self.secrets = folder / "run-secrets-oal-secrets"
        self.script = folder / "start.sh"
        self.script.write_text(text)
        for user in ("mlflow", "push"):
            (self.secrets / f"postgres-{user}.password").write_text(f"it's {user}'s: \\first")
        self.user = pwd.getpwnam("postgres")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def run(self, path: str = "") -> None:
        self.process = subprocess.Popen(["bash", str(self.script)], user=self.user.pw_uid, group=self.user.pw_gid,
                                        extra_groups=[], cwd=self.folder, env={
                                            "PATH": f"{path}:{PROGRAMS}:/usr/bin:/bin", "PGPORT": str(self.port),
                                            "HOME": str(self.folder)
                                        }, stdout=open(self.folder / "log", "ab"), stderr=subprocess.STDOUT)

    def start(self) -> None:
        self.run()
        deadline = time.monotonic() + 120
        # The server that prepares listens on its socket only, so this is the one that stays.
        while subprocess.run([PROGRAMS / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < deadline, (self.folder
                                                                                 / "log").read_text()[-3000:]
            time.sleep(0.2)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)

    def psql(self, user: str, database: str, sql: str, password: str | None = None, host: str = "oal-postgres",
             tls: str | None = None) -> subprocess.CompletedProcess:
        """With the options of the chart's clients: verify-full by our authority."""
        if password is None:
            password = (self.secrets / f"postgres-{user}.password").read_text()
        return subprocess.run(
            [PROGRAMS / "psql", "-At", "-c", sql, f"host={host} hostaddr=127.0.0.1 port={self.port} user={user}"
             f" dbname={database} " + (tls or f"sslmode=verify-full sslrootcert={self.ca}")],
            capture_output=True, text=True, env={"PGPASSWORD": password})


@pytest.fixture
def server(chart):
    # Not in pytest's folder, which every other run of pytest closes to root alone again.
    with tempfile.TemporaryDirectory(prefix="oal-postgres-") as folder:
        made = Server(chart, Path(folder))
        try:
            yield made
        finally:
            made.stop()


#: In place of initdb: it, until it has written PG_VERSION, which it does first. Then the node loses power.
CUT_OFF = """#!/bin/bash
for argument; do case $argument in --pgdata=*) PGDATA=${argument#*=} ;; esac; done
setsid %s "$@" & child=$!
until [ -s "$PGDATA/PG_VERSION" ] || ! kill -0 $child; do :; done
kill -KILL -- -$child
exit 137
"""


def test_an_initdb_that_was_cut_off_is_done_again(server):
    """Else its PG_VERSION passes for a cluster, and PostgreSQL never starts."""
    programs = server.folder / "programs"
    programs.mkdir()
    (programs / "initdb").write_text(CUT_OFF % (PROGRAMS / "initdb"))
    for path in (programs, programs / "initdb"):
        path.chmod(0o755)
        os.chown(path, server.user.pw_uid, server.user.pw_gid)
    server.run(str(programs))
    assert server.process.wait(60) == 137
    data = server.folder / "var-lib-postgresql-data"
    cut = [path for path in data.rglob("PG_VERSION") if path.parent.name.startswith("pgdata")]
    assert cut and not (cut[0].parent / "global" / "pg_control").exists(), "initdb was not cut off"
    server.start()
    assert server.psql("push", "push", "SELECT current_user").stdout == "push\n"


def test_databases_passwords_and_data_outlive_a_restart(server):
    server.start()
    assert server.psql("push", "push", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)").returncode == 0
    assert server.psql("mlflow", "mlflow", "SELECT current_user").stdout == "mlflow\n"
    # Nobody comes in without a password, with another's, or into another's database.
    assert "password authentication failed" in server.psql("push", "push", "SELECT 1", "wrong").stderr
    assert "password authentication failed" in server.psql("postgres", "postgres", "SELECT 1", "postgres").stderr
    assert "permission denied" in server.psql("push", "mlflow", "SELECT 1").stderr
    # Nor in plain; and no client believes a server of another authority, or under another name.
    assert "no encryption" in server.psql("push", "push", "SELECT 1", tls="sslmode=disable").stderr
    assert "no encryption" in server.psql("push", "push", "SELECT 1", "wrong", tls="sslmode=disable").stderr
    other = "sslmode=verify-full sslrootcert=/etc/ssl/certs/ca-certificates.crt"
    assert "certificate verify failed" in server.psql("push", "push", "SELECT 1", tls=other).stderr
    assert "does not match host name" in server.psql("push", "push", "SELECT 1", host="another").stderr
    server.stop()

    old = (server.secrets / "postgres-push.password").read_text()
    (server.secrets / "postgres-push.password").write_text("second")
    server.start()
    assert server.psql("push", "push", "SELECT n FROM kept").stdout == "7\n"
    assert "password authentication failed" in server.psql("push", "push", "SELECT 1", old).stderr
