"""Who may do what with ClickHouse, tried over HTTP."""
import os
import urllib.error
import urllib.request

import pytest
from oal_local import clickhouse
from oal_local.errors import PlatformError

HARMLESS = {"", *(os.environ.get(name, "") for name in clickhouse.ENVIRONMENT)}


@pytest.fixture(scope="module", autouse=True)
def table(platform):
    platform.clickhouse.query("CREATE DATABASE IF NOT EXISTS oal")
    platform.clickhouse.query("CREATE TABLE IF NOT EXISTS oal.rights_test (a UInt32) ENGINE = MergeTree ORDER BY a "
                              "SETTINGS non_replicated_deduplication_window = 100")
    yield
    platform.clickhouse.query("DROP TABLE oal.rights_test")


def refused(platform, sql: str, user: str) -> str:
    with pytest.raises(PlatformError) as refusal:
        platform.clickhouse.query(sql, user)
    return str(refusal.value)


def as_user(platform, user: str, password: str, sql: str = "SELECT currentUser()") -> str:
    request = urllib.request.Request(platform.clickhouse.http_url + "/", data=sql.encode(),
                                     headers={"X-ClickHouse-User": user, "X-ClickHouse-Key": password})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode().strip()


@pytest.mark.parametrize("user", ["admin", "ingest", "analyst"])
def test_each_user_needs_its_password(platform, user):
    assert as_user(platform, user, platform.clickhouse.password(user)) == user
    for wrong in ("", "wrong", platform.clickhouse.password(user) + "x"):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            as_user(platform, user, wrong)
        assert refusal.value.headers["X-ClickHouse-Exception-Code"] == "516"  # AUTHENTICATION_FAILED


def secret_reads(platform) -> list[str]:
    """Statements that read what is none of a database user's business, with the function that no grant forbids."""
    secret = platform.clickhouse.password_file("admin")
    return [
        f"SELECT file('{path}')"
        for path in (secret, f"/proc/self/root{secret}", platform.state.pki / "ca.key", "/etc/passwd",
                     f"/proc/{platform.supervisor.pid('clickhouse')}/../1/environ")
    ]


@pytest.mark.parametrize("parameters",
                         ["", "?database=system", "?database=oal", "?session_id=mine", "?user=default&password="])
def test_the_engines_own_user_cannot_begin_a_session(platform, parameters):
    """It has no password, so what else it may do is not the question: UNKNOWN_DATABASE is 81."""
    for sql in [
            "SELECT 1", "SELECT * FROM oal.rights_test", "SYSTEM STOP LISTEN HTTP", "CREATE DATABASE default",
            *secret_reads(platform)
    ]:
        request = urllib.request.Request(platform.clickhouse.http_url + "/" + parameters, data=sql.encode())
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(request, timeout=30)
        assert refusal.value.headers["X-ClickHouse-Exception-Code"] == "81", sql


@pytest.mark.parametrize("user", ["analyst", "ingest", "admin"])
def test_the_server_has_given_up_every_folder_but_its_own(platform, user):
    """The administrator too: it is the process that cannot."""
    for sql in secret_reads(platform):
        assert "Permission denied" in refused(platform, sql, user), sql
    hashes = platform.clickhouse.query("SELECT file('/proc/self/environ')", user)
    assert "OAL_ANALYST_PASSWORD_SHA256" in hashes and not set(
        os.environ.values()) & {word.partition("=")[2] for word in hashes.split("\\0")} - HARMLESS


def test_ingest_inserts_once_per_token_and_cannot_change_the_schema(platform):
    for _ in range(2):
        platform.clickhouse.query("INSERT INTO oal.rights_test SETTINGS insert_deduplication_token = 'one' VALUES (1)",
                                  "ingest")
    assert platform.clickhouse.query("SELECT count() FROM oal.rights_test WHERE a = 1") == "1\n"
    assert "ACCESS_DENIED" in refused(platform, "DROP TABLE oal.rights_test", "ingest")
    assert "ACCESS_DENIED" in refused(platform, "CREATE TABLE oal.mine (a UInt8) ENGINE = Memory", "ingest")
    assert "ACCESS_DENIED" in refused(platform, "ALTER TABLE oal.rights_test DELETE WHERE 1", "ingest")


@pytest.mark.parametrize("sql", [
    "INSERT INTO oal.rights_test VALUES (9)", "DROP TABLE oal.rights_test", "TRUNCATE TABLE oal.rights_test",
    "CREATE TABLE oal.mine (a UInt8) ENGINE = Memory", "ALTER TABLE oal.rights_test DELETE WHERE 1",
    "SYSTEM STOP MERGES oal.rights_test"
])
def test_an_analyst_changes_nothing(platform, sql):
    assert "ACCESS_DENIED" in refused(platform, sql, "analyst") or "READONLY" in refused(platform, sql, "analyst")


def test_an_analyst_reads_the_platform_and_no_files_or_networks(platform):
    platform.clickhouse.query("SELECT count() FROM oal.rights_test", "analyst")
    assert "ACCESS_DENIED" in refused(platform, "SELECT * FROM file('/etc/passwd', 'LineAsString', 'l String')",
                                      "analyst")
    assert "ACCESS_DENIED" in refused(
        platform, f"SELECT * FROM url('{platform.clickhouse.http_url}/ping', 'LineAsString', 'l String')", "analyst")


def test_an_analysts_limits_hold_and_cannot_be_lifted(platform):
    assert platform.clickhouse.query("SELECT 1 SETTINGS max_execution_time = 10", "analyst") == "1\n"
    for setting in ("max_execution_time = 3600", "max_execution_time = 0", "max_memory_usage = 0",
                    "max_rows_to_read = 0", "max_concurrent_queries_for_user = 0"):
        assert "SETTING_CONSTRAINT_VIOLATION" in refused(platform, f"SELECT 1 SETTINGS {setting}", "analyst"), setting
    # One of the limits itself: a result of more rows than allowed.
    platform.clickhouse.query("INSERT INTO oal.rights_test SELECT number + 10 FROM numbers(1100000)")
    assert "TOO_MANY_ROWS" in refused(platform, "SELECT a FROM oal.rights_test", "analyst")


def test_passwords_and_keys_are_private(platform):
    assert platform.state.dir.stat().st_mode & 0o077 == 0
    for file in [
            *platform.state.pki.glob("*.key"), *platform.state.pki.glob("*.pem"), *platform.state.secrets.iterdir()
    ]:
        assert file.stat().st_mode & 0o077 == 0, file
