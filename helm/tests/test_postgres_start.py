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
from manifests import find

PROGRAMS = Path("/usr/lib/postgresql/15/bin")


class Server:
    """The script with its folders moved into FOLDER, as user postgres."""

    def __init__(self, chart, folder: Path):
        self.folder, self.process = folder, None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        text = find(chart.objects(), "ConfigMap", "oal-postgres")["data"]["start.sh"]
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

    def start(self) -> None:
        self.process = subprocess.Popen(["bash", str(self.script)], user=self.user.pw_uid, group=self.user.pw_gid,
                                        extra_groups=[], cwd=self.folder, env={
                                            "PATH": f"{PROGRAMS}:/usr/bin:/bin", "PGPORT": str(self.port),
                                            "HOME": str(self.folder)
                                        }, stdout=open(self.folder / "log", "ab"), stderr=subprocess.STDOUT)
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

    def psql(self, user: str, database: str, sql: str, password: str | None = None) -> subprocess.CompletedProcess:
        if password is None:
            password = (self.secrets / f"postgres-{user}.password").read_text()
        return subprocess.run(
            [PROGRAMS / "psql", "-At", "-h", "127.0.0.1", "-p",
             str(self.port), "-U", user, "-d", database, "-c", sql], capture_output=True, text=True,
            env={"PGPASSWORD": password})


@pytest.fixture
def server(chart):
    # Not in pytest's folder, which every other run of pytest closes to root alone again.
    with tempfile.TemporaryDirectory(prefix="oal-postgres-") as folder:
        made = Server(chart, Path(folder))
        try:
            made.start()
            yield made
        finally:
            made.stop()


def test_databases_passwords_and_data_outlive_a_restart(server):
    assert server.psql("push", "push", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)").returncode == 0
    assert server.psql("mlflow", "mlflow", "SELECT current_user").stdout == "mlflow\n"
    # Nobody comes in without a password, with another's, or into another's database.
    assert "password authentication failed" in server.psql("push", "push", "SELECT 1", "wrong").stderr
    assert "password authentication failed" in server.psql("postgres", "postgres", "SELECT 1", "postgres").stderr
    assert "permission denied" in server.psql("push", "mlflow", "SELECT 1").stderr
    server.stop()

    old = (server.secrets / "postgres-push.password").read_text()
    (server.secrets / "postgres-push.password").write_text("second")
    server.start()
    assert server.psql("push", "push", "SELECT n FROM kept").stdout == "7\n"
    assert "password authentication failed" in server.psql("push", "push", "SELECT 1", old).stderr
