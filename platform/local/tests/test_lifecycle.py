"""Up, down, crash, and several instances: on ClickHouse alone where one service is enough, it starts fastest."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from oal_local.errors import PlatformError
from oal_local.paths import LOCAL
from oal_local.platform import Platform
from waiting import until

COMMAND = LOCAL / "oal-local"


def processes_of(state: Path) -> list[str]:
    """Command lines that name this state folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(state) in command:
                found.append(command)
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    state = tmp_path_factory.mktemp("small") / "state"
    with Platform(state, ports="auto", only=["clickhouse"]) as running:
        yield running
    assert processes_of(state) == []


def run(*arguments, state) -> subprocess.CompletedProcess:
    return subprocess.run([str(COMMAND), *arguments, "--state", str(state)], capture_output=True, text=True)


def test_up_again_changes_nothing(small):
    before = small.pid("clickhouse"), small.settings
    small.up()
    assert (small.pid("clickhouse"), small.settings) == before


def test_up_restarts_what_was_configured_anew(small):
    pid, memory = small.pid("clickhouse"), small.settings.clickhouse_memory_mib
    Platform(small.state.dir, only=["clickhouse"], clickhouse_memory_mib=memory + 64).up()
    assert small.pid("clickhouse") != pid
    limit = small.clickhouse.query("SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage'")
    assert int(limit) == memory + 64 << 20


def test_a_crashed_service_comes_back_with_its_data(small):
    small.clickhouse.query("CREATE DATABASE IF NOT EXISTS oal")
    small.clickhouse.query("CREATE TABLE oal.crash_test (a UInt8) ENGINE = MergeTree ORDER BY a")
    small.clickhouse.query("INSERT INTO oal.crash_test VALUES (7)")
    pid = small.kill("clickhouse", signal.SIGKILL)
    until(lambda: small.supervisor.info()["clickhouse"]["pid"] not in (0, pid), "a new process")
    small.wait_ready("clickhouse")
    assert small.clickhouse.query("SELECT a FROM oal.crash_test") == "7\n"


def test_down_and_up_keep_ports_passwords_and_data(small):
    before = small.settings.ports, small.clickhouse.password("analyst")
    small.down()
    assert processes_of(small.state.dir) == []
    small.down()
    small.up()
    assert (small.settings.ports, small.clickhouse.password("analyst")) == before
    assert small.clickhouse.query("SELECT count() FROM system.databases WHERE name = 'oal'") == "1\n"


def test_a_stop_is_no_crash(small):
    before = small.state.log("clickhouse").read_text()
    small.stop("clickhouse")
    assert small.supervisor.info()["clickhouse"]["exitstatus"] == 0
    assert "failed" not in small.state.log("clickhouse").read_text()[len(before):]
    small.start("clickhouse")
    small.wait_ready("clickhouse")


def test_no_service_outlives_a_killed_manager(tmp_path):
    platform = Platform(tmp_path / "state", ports="auto", only=["clickhouse"]).up()
    manager = int(platform.supervisor.pid_file.read_text())
    os.kill(manager, signal.SIGKILL)
    until(lambda: not processes_of(platform.state.dir), "the end of every process")
    platform.up()
    assert platform.clickhouse.query("SELECT 1") == "1\n"
    platform.down()
    assert processes_of(platform.state.dir) == []


def test_a_long_state_path(tmp_path):
    """The manager's socket has a path limit of 108 bytes."""
    state = tmp_path / ("long-" * 12) / ("name-" * 12)
    with Platform(state, ports="auto", only=["clickhouse"]) as platform:
        assert platform.clickhouse.query("SELECT 1") == "1\n"
    assert not platform.supervisor.socket.exists()


def test_instances_side_by_side_share_nothing(platform, small):
    assert not set(platform.settings.ports.values()) & set(small.settings.ports.values())
    platform.clickhouse.query("CREATE DATABASE IF NOT EXISTS oal")
    platform.clickhouse.query("CREATE TABLE IF NOT EXISTS oal.only_here (a UInt8) ENGINE = MergeTree ORDER BY a")
    assert small.clickhouse.query("SELECT count() FROM system.tables WHERE name = 'only_here'") == "0\n"
    assert (small.state.pki / "ca.crt").read_text() != (platform.state.pki / "ca.crt").read_text()
    platform.clickhouse.query("DROP TABLE oal.only_here")


def test_auto_ports_are_below_the_ephemeral_range(small):
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(port < first for port in small.settings.ports.values())


def test_default_ports_in_use_are_named(tmp_path, monkeypatch, small):
    monkeypatch.setattr("oal_local.ports.DEFAULT", small.settings.ports)
    with pytest.raises(PlatformError, match=f"clickhouse_http={small.settings.ports['clickhouse_http']}"):
        Platform(tmp_path / "state", ports="default", only=["clickhouse"]).up()


def test_a_missing_job_is_named(tmp_path):
    with pytest.raises(PlatformError, match="none.jar is missing"):
        Platform(tmp_path / "state", ports="auto", only=["data"], job_jar=str(tmp_path / "none.jar")).up()
    assert processes_of(tmp_path / "state") == []


def test_a_service_that_cannot_start_is_named_with_its_own_words(tmp_path, monkeypatch):
    monkeypatch.setattr("oal_local.clickhouse.fill", lambda *_, **__: "<clickhouse><broken></clickhouse>")
    with pytest.raises(PlatformError, match="clickhouse starts and ends again and again"):
        Platform(tmp_path / "state", ports="auto", only=["clickhouse"]).up()
    assert processes_of(tmp_path / "state") == []


def test_the_command_line(small):
    status = run("status", "--json", state=small.state.dir)
    assert status.returncode == 0, status.stderr
    assert {row["name"]: row["ready"] for row in json.loads(status.stdout)}["clickhouse"] is True
    environment = json.loads(run("env", "--json", state=small.state.dir).stdout)
    assert environment["OAL_CLICKHOUSE_URL"] == small.clickhouse.http_url
    shell = subprocess.run([
        "bash", "-c", f'eval "$({COMMAND} env --state "$1")"; curl -sf "$OAL_CLICKHOUSE_URL/ping"', "_",
        str(small.state.dir)
    ], capture_output=True, text=True)
    assert shell.stdout == "Ok.\n", shell.stderr
    killed = run("kill", "clickhouse", "-9", state=small.state.dir)
    assert int(killed.stdout) > 0
    assert run("wait", "clickhouse", state=small.state.dir).returncode == 0
    assert "restart" in run("--help", state=small.state.dir).stdout
    cert = run("cert", "ap", "ap-77", state=small.state.dir)
    assert f"ssl.key.location={small.state.pki}/ap-77.key" in cert.stdout
    for bad, says in (("admin", "name of a certificate with OU=service"), ("../ap", "cannot be an AP's id"),
                      ("a,OU=service", "cannot be an AP's id"), ("", "cannot be an AP's id")):
        refused = run("cert", "ap", bad, state=small.state.dir)
        assert refused.returncode == 1 and says in refused.stderr, bad
    assert "operator.p12" in run("cert", "operator", "--p12", state=small.state.dir).stdout
    assert run("restart", "no-such", state=small.state.dir).returncode == 2


def test_without_an_instance_commands_say_so(tmp_path):
    missing = run("env", state=tmp_path / "none")
    assert missing.returncode == 1 and "there is no instance" in missing.stderr
    assert run("status", state=tmp_path / "none").returncode == 3
    assert run("down", state=tmp_path / "none").returncode == 0
