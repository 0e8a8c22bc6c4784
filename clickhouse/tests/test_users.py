"""The users that people and stream jobs get: what they may, and what they may not."""

import hashlib
import os
import re
from xml.etree import ElementTree

import dataset
import pytest
from conftest import FOLDER, PASSWORDS
from server import QueryError, Server

ANALYST, JOBS, TELEGRAF, GRAFANA = (PASSWORDS[name] for name in ("analyst", "ingest", "telegraf", "grafana"))


@pytest.fixture(scope="module")
def guarded(_shared):
    """The server, with database oal, which is the one that the users' rights name, filled."""
    _shared.clear()
    dataset.fill(_shared.query)
    return _shared.server


def analyst(server, sql, **settings):
    return server.query(sql, user="analyst", password=ANALYST, **settings)


def jobs(server, sql, data=None, **settings):
    return server.query(sql, data=data, user="ingest", password=JOBS, **settings)


def test_analyst_reads_tables_rollups_and_views(guarded):
    assert int(analyst(guarded, "SELECT count() FROM oal.packet")) > 0
    assert int(analyst(guarded, "SELECT count() FROM station_1s")) > 0  # oal is its default database
    assert "ap-03" in analyst(guarded,
                              "SELECT * FROM v_loss_where(from = '2026-11-20 12:00:00', to = '2026-11-20 13:00:00')")
    assert "packet" in analyst(guarded, "SELECT * FROM v_table_sizes")


def test_analyst_runs_every_question_of_the_readme(guarded):
    import questions

    for q in questions.load():
        analyst(guarded, q.sql.strip().rstrip(";"))


def test_analyst_may_set_what_clients_set(guarded):
    assert analyst(guarded, "SELECT 1 AS x", default_format="JSONEachRow", max_execution_time=5).strip() == '{"x":1}'


@pytest.mark.parametrize("sql", [
    "INSERT INTO oal.late (ap_id) VALUES ('x')",
    "DROP TABLE oal.packet",
    "ALTER TABLE oal.packet DELETE WHERE 1",
    "TRUNCATE TABLE oal.label",
    "CREATE TABLE oal.mine (a UInt8) ENGINE = Memory",
    "CREATE TEMPORARY TABLE mine (a UInt8)",
    "OPTIMIZE TABLE oal.packet FINAL",
    "SYSTEM DROP MARK CACHE",
    "KILL QUERY WHERE 1",
])
def test_analyst_cannot_write(guarded, sql):
    with pytest.raises(QueryError, match=r"READONLY|ACCESS_DENIED"):
        analyst(guarded, sql)


@pytest.mark.parametrize("sql", [
    "SELECT * FROM file('/etc/passwd', 'LineAsString', 'l String')",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString', 'l String')",
    "SELECT * FROM remote('127.0.0.1:1', 'system.one')",
    "SELECT * FROM system.users",
])
def test_analyst_cannot_look_elsewhere(guarded, sql):
    with pytest.raises(QueryError, match=r"READONLY|ACCESS_DENIED"):
        analyst(guarded, sql)


@pytest.mark.parametrize("setting, value", [
    ("readonly", 0),
    ("max_execution_time", 3600),
    ("max_execution_time", 0),
    ("max_memory_usage", 0),
    ("max_memory_usage", 10**11),
    ("max_rows_to_read", 0),
    ("max_result_rows", 0),
    ("max_result_rows", 10**9),
    ("max_threads", 64),
    ("result_overflow_mode", "break"),
])
def test_analyst_cannot_raise_its_limits(guarded, setting, value):
    with pytest.raises(QueryError, match=r"SETTING_CONSTRAINT_VIOLATION|READONLY|ACCESS_DENIED|shouldn't be"):
        analyst(guarded, "SELECT 1", **{setting: value})


def test_another_profile_changes_no_limit(guarded):
    limits = (
        "SELECT getSetting('readonly'), getSetting('max_execution_time'), getSetting('max_memory_usage'),"
        " getSetting('max_result_rows')"
    )
    assert analyst(guarded, limits, profile="default") == analyst(guarded, limits) == "2\t30\t2000000000\t1000000\n"
    with pytest.raises(QueryError, match=r"SETTING_CONSTRAINT_VIOLATION|READONLY|ACCESS_DENIED|shouldn't be"):
        analyst(guarded, "SELECT 1", profile="ingest")


def test_analyst_s_answers_are_limited(guarded):
    with pytest.raises(QueryError, match="TOO_MANY_ROWS_OR_BYTES"):
        analyst(guarded, "SELECT number FROM numbers(1000001)", wait_end_of_query=1)
    with pytest.raises(QueryError, match="TOO_MANY_ROWS"):
        analyst(guarded, "SELECT count() FROM packet WHERE payload_bytes > 3", max_rows_to_read=10)
    with pytest.raises(QueryError, match="MEMORY_LIMIT_EXCEEDED"):
        analyst(guarded, "SELECT groupArray(toString(number)) FROM numbers(100000000) FORMAT Null")


@pytest.mark.parametrize("user, password", [("analyst", ""), ("analyst", "wrong"), ("ingest", ""), ("ingest", ANALYST)])
def test_a_wrong_password_is_refused(guarded, user, password):
    with pytest.raises(QueryError, match="AUTHENTICATION_FAILED"):
        guarded.query("SELECT 1", user=user, password=password)


def test_ingest_inserts_and_the_rollups_follow(guarded):
    before = int(guarded.query("SELECT sum(pkts) FROM oal.packet_1m"))
    body = b"new-ap\t2026-11-20 15:00:00\t0\nnew-ap\t2026-11-20 15:00:01\t1\n"
    for _ in range(2):  # the profile deduplicates without being asked
        jobs(guarded, "INSERT INTO packet (ap_id, ts, direction) FORMAT TSV", data=body,
             insert_deduplication_token="users-1")
    assert int(guarded.query("SELECT sum(pkts) FROM oal.packet_1m")) == before + 2


@pytest.mark.parametrize("sql", [
    "DROP TABLE oal.packet", "ALTER TABLE oal.packet DELETE WHERE 1",
    "SELECT * FROM file('/etc/passwd', 'LineAsString', 'l String')", "TRUNCATE TABLE oal.packet",
    "CREATE TABLE oal.mine (a UInt8) ENGINE = Memory"
])
def test_ingest_does_nothing_else(guarded, sql):
    with pytest.raises(QueryError, match="ACCESS_DENIED"):
        jobs(guarded, sql)


def statements() -> list[str]:
    return [
        s.strip() for s in re.sub(r"--[^\n]*", "", (FOLDER / "users" / "roles.sql").read_text()).split(";")
        if s.strip()
    ]


@pytest.mark.parametrize("sql", statements(), ids=lambda s: " ".join(s.split()[:6]))
def test_roles_sql_parses(server, sql):
    """This server's users come from files alone, so it refuses to make some; but only after it has understood the
    statement.
    """
    with pytest.raises(QueryError,
                       match="ACCESS_DENIED|UNKNOWN_ROLE|THERE_IS_NO_PROFILE|ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND"):
        server.query(sql, param_analyst_sha256="0" * 64, param_ingest_sha256="0" * 64, param_telegraf_sha256="0" * 64,
                     param_grafana_sha256="0" * 64)


@pytest.mark.parametrize("user", ["analyst", "grafana", "ingest", "telegraf"])
def test_roles_sql_says_the_same_as_the_files(user):
    root = ElementTree.parse(FOLDER / "users" / f"{user}.xml").getroot()
    profile = root.find(f"profiles/{user}")
    from_xml = {e.tag: e.text for e in profile if e.tag != "constraints"}
    limits = {e.tag: {b.tag: b.text for b in e} for e in profile.findall("constraints/*")}
    (ddl,) = [s for s in statements() if s.startswith(f"CREATE SETTINGS PROFILE IF NOT EXISTS oal_{user} ")]
    from_sql, sql_limits = {}, {}
    for part in ddl.split("SETTINGS", 2)[2].split(","):
        name, value, rest = re.fullmatch(r"\s*(\w+) = (\S+)(.*?)\s*", part).groups()
        from_sql[name] = value.strip("'")
        bounds = re.fullmatch(r" MIN (\d+) MAX (\d+)", rest)
        if rest:
            sql_limits[name] = {"min": bounds.group(1), "max": bounds.group(2)
                                } if bounds else {rest.strip().lower(): None}
    assert from_sql == from_xml and sql_limits == limits
    grants = {e.text for e in root.findall(f"users/{user}/grants/query")}
    assert {f"{g} TO oal_{user}"
            for g in grants} == {s for s in statements() if s.startswith("GRANT ") and s.endswith(f" TO oal_{user}")}


def telegraf(server, sql, data=None, **settings):
    return server.query(sql, data=data, user="telegraf", password=TELEGRAF, **settings)


def test_telegraf_adds_its_rows_and_reads_none(guarded):
    telegraf(guarded, "INSERT INTO oal.platform_metric (name, timestamp, tags, fields) FORMAT JSONEachRow",
             data=b'{"name": "x", "timestamp": 1795132800000, "tags": {"host": "h"}, "fields": {"a": 1}}',
             input_format_json_read_objects_as_strings=1)
    assert analyst(guarded, "SELECT instance, values FROM oal.platform_metric WHERE name = 'x'") == "h\t{'a':1}\n"
    assert int(telegraf(guarded,
                        "SELECT count() FROM system.parts WHERE active AND database IN ('oal', 'oal_shard')")) > 0


@pytest.mark.parametrize("sql", [
    "SELECT * FROM oal.platform_metric", "SELECT * FROM oal.packet", "INSERT INTO oal.label (ap_id) VALUES ('x')",
    "SELECT * FROM system.query_log", "SELECT * FROM system.users", "TRUNCATE TABLE oal.platform_metric"
])
def test_telegraf_may_nothing_else(guarded, sql):
    with pytest.raises(QueryError, match="ACCESS_DENIED|UNKNOWN_TABLE"):
        telegraf(guarded, sql)


def grafana(server, sql, **settings):
    return server.query(sql, user="grafana", password=GRAFANA, **settings)


def test_grafana_reads_what_dashboards_show(guarded):
    assert int(grafana(guarded, "SELECT count() FROM packet")) > 0
    assert "packet" in grafana(guarded, "SELECT * FROM v_table_sizes")
    assert grafana(guarded, "SELECT 1 AS x", default_format="JSONEachRow", max_execution_time=5).strip() == '{"x":1}'


def alerts(server, sql, **settings):
    return server.query(sql, user="grafana_alerts", password=GRAFANA, **settings)


def test_dashboards_that_use_up_their_quota_leave_alerts_alive(tmp_path):
    """On a server whose file has a quota that a test can reach."""
    shipped = (FOLDER / "users" / "grafana.xml").read_text()
    small = tmp_path / "grafana.xml"
    small.write_text(shipped.replace("<queries>200000</queries>", "<queries>3</queries>"))
    assert small.read_text() != shipped
    (tmp_path / "server").mkdir()
    environment = {**os.environ, "OAL_GRAFANA_PASSWORD_SHA256": hashlib.sha256(GRAFANA.encode()).hexdigest()}
    server = Server(tmp_path / "server", extra_users=[small], environment=environment).start()
    try:
        server.query("CREATE DATABASE oal")
        with pytest.raises(QueryError, match="QUOTA_EXCEEDED"):
            for _ in range(5):
                grafana(server, "SELECT count() FROM numbers(3)")
        assert alerts(server, "SELECT count() FROM numbers(3)") == "3\n"
    finally:
        server.kill()


def test_each_user_of_grafana_has_its_quota_and_the_same_rights():
    root = ElementTree.parse(FOLDER / "users" / "grafana.xml").getroot()
    users = {u.tag: {e.tag: [c.text for c in e] or e.text for e in u} for u in root.find("users")}
    assert users["grafana"].pop("quota") == "grafana"
    assert users["grafana_alerts"].pop("quota") == "grafana_alerts"
    assert users["grafana"] == users["grafana_alerts"]
    said = "\n".join(statements())
    for quota in root.find("quotas"):
        queries, seconds = (quota.findtext(f"interval/{name}") for name in ("queries", "execution_time"))
        assert re.search(rf"oal_{quota.tag} FOR INTERVAL 1 hour MAX queries = {queries}, execution_time = {seconds}\s+"
                         rf"TO {quota.tag}(?![a-z_])", said)


@pytest.mark.parametrize("sql", [
    "INSERT INTO oal.late (ap_id) VALUES ('x')", "DROP TABLE oal.packet", "ALTER TABLE oal.packet DELETE WHERE 1",
    "CREATE TABLE oal.mine (a UInt8) ENGINE = Memory", "KILL QUERY WHERE 1", "SYSTEM FLUSH LOGS",
    "SELECT * FROM system.users", "SELECT * FROM system.processes", "SELECT * FROM system.query_log",
    "SELECT * FROM system.server_settings", "SELECT * FROM file('/etc/passwd', 'LineAsString', 'l String')",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString', 'l String')",
    "SELECT * FROM s3('http://bucket.s3.invalid/key', 'CSV', 'a String')",
    "SELECT * FROM remote('127.0.0.1:1', 'system.one')"
])
def test_grafana_changes_nothing_and_looks_nowhere_else(guarded, sql):
    for user in (grafana, alerts):
        with pytest.raises(QueryError, match=r"READONLY|ACCESS_DENIED|UNKNOWN_TABLE"):
            user(guarded, sql)


@pytest.mark.parametrize("setting, value", [("readonly", 0), ("max_execution_time", 0), ("max_memory_usage", 10**11),
                                            ("max_rows_to_read", 0), ("max_result_rows", 10**9), ("max_threads", 64),
                                            ("max_concurrent_queries_for_user", 0), ("result_overflow_mode", "break")])
@pytest.mark.parametrize("user", [grafana, alerts, analyst], ids=["grafana", "alerts", "analyst"])
def test_nobody_runs_a_query_without_limits(guarded, user, setting, value):
    """Neither with the request nor within the query."""
    refusal = r"SETTING_CONSTRAINT_VIOLATION|READONLY|ACCESS_DENIED|shouldn't be"
    with pytest.raises(QueryError, match=refusal):
        user(guarded, "SELECT 1", **{setting: value})
    with pytest.raises(QueryError, match=refusal):
        user(guarded, f"SELECT 1 SETTINGS {setting} = '{value}'")


#: What system tables everybody may read: what the engine can do, and what the user itself may, has and sees.
SYSTEM = {
    "aggregate_function_combinators", "collations", "columns", "completions", "contributors", "current_roles",
    "data_type_families", "database_engines", "databases", "dictionary_layouts", "disk_types", "enabled_roles",
    "formats", "functions", "licenses", "one", "parts", "privileges", "quota_usage", "settings", "table_engines",
    "table_functions", "tables", "time_zones", "user_query_log"
}


@pytest.mark.parametrize("user", [grafana, analyst], ids=["grafana", "analyst"])
def test_of_the_system_tables_only_harmless_ones_are_read(guarded, user):
    readable = set()
    for (table,) in guarded.rows("SELECT name FROM system.tables WHERE database = 'system'"):
        try:
            user(guarded, f"SELECT * FROM system.{table} LIMIT 0")
            readable.add(table)
        except QueryError as refusal:
            assert "ACCESS_DENIED" in str(refusal), (table, refusal)
    assert readable and readable <= SYSTEM, readable - SYSTEM
