"""Telegraf and a real platform: every part is read, what is away is said to be, and what cannot be written waits or is
counted.
"""
import base64
import json
import os
import re
import signal
import urllib.error
import urllib.request

import pytest
from confluent_kafka import Producer
from conftest import FOLDER, WATCH
from oal_local import telegraf
from waiting import until

NAMES = {
    "health", "jvm", "jvm_gc", "kafka", "kafka_topic", "kafka_partition", "kafka_listener", "kafka_request",
    "flink_job", "flink_cluster", "flink_task", "flink_operator", "flink_counter", "flink_gauge", "clickhouse",
    "clickhouse_table", "clickhouse_disk", "service", "cpu", "mem", "swap", "system", "disk", "diskio", "net",
    "x509_cert", "internal_agent", "internal_write", "internal_gather", "internal_memstats"
}
MIGRATION = (FOLDER.parent.parent / "clickhouse" / "migrations" / "0018_platform.sql").read_text()
# Nothing of these runs here, nothing has failed, or nothing has been read from Kafka.
QUIET = {"v_platform_trainer", "v_platform_registry", "v_platform_clickhouse_error", "v_platform_lag"}


def count(platform, where: str) -> int:
    return platform.clickhouse.rows(f"SELECT count() AS n FROM oal.platform_metric WHERE {where}")[0]["n"]


def health(platform) -> dict[str, dict]:
    """The newest answer of each component, of the last readings."""
    return {
        r["component"]: r
        for r in platform.clickhouse.rows("SELECT component, up, said, age_s FROM oal.v_platform_health_now")
    }


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_input_gives_rows(platform, name):
    until(lambda: count(platform, f"name = '{name}' AND notEmpty(values)"), f"rows of {name}")


def test_nothing_is_read_that_no_test_names(platform):
    names = {r["name"] for r in platform.clickhouse.rows("SELECT DISTINCT name FROM oal.platform_metric")}
    assert names - NAMES <= {"clickhouse_error", "internal_parser", "internal_serializer", "kafka_quota"}


def test_every_row_says_what_it_is_of(platform):
    assert count(platform, "component = '' OR instance = '' OR host = ''") == 0
    instances = {
        r["component"]: r["instance"] for r in platform.clickhouse.rows(
            "SELECT component, any(instance) AS instance FROM oal.platform_metric WHERE name = 'jvm' GROUP BY component"
        )
    }
    ports = platform.settings.ports
    assert instances == {
        name: f"127.0.0.1:{ports[f'jolokia_{name}']}" for name in ("kafka", "jobmanager", "taskmanager")
    }


@pytest.mark.parametrize("view", sorted(set(re.findall(r"CREATE OR REPLACE VIEW (v_platform_\w+)", MIGRATION)) - QUIET))
def test_every_view_has_rows(platform, view):
    arguments = (
        ""
        if view.endswith("_now")
        else (
            "(from = now() - 600, to = now() +"
            f" 60{', name = ' + repr('jvm') if view in ('v_platform_metric', 'v_platform_reading') else ''})"
        )
    )
    until(lambda: platform.clickhouse.rows(f"SELECT * FROM oal.{view}{arguments} LIMIT 1", user="analyst"),
          f"a row of {view}")


def test_how_far_committed_readers_are_behind_is_read_with_the_partitions_end(platform):
    """The alert "Committed readers wait" compares the two in one reading."""
    def both():
        return platform.clickhouse.rows(
            "SELECT count() AS n FROM oal.v_platform_reading(name = 'kafka_partition', from = now() - 600,"
            " to = now() + 60) WHERE mapContains(v, 'LastStableOffsetLag') AND mapContains(v, 'LogEndOffset')"
        )[0]["n"]

    until(both, "a reading with both figures")


def test_who_sends_more_than_its_quota_is_named(platform):
    producer = Producer({**platform.kafka.ap("ap-flood"), "log_level": 0})

    def throttled():
        for _ in range(8):
            if len(producer) < 64:
                producer.produce("ap.events.v1", os.urandom(65_536), partition=0)
        producer.poll(0)
        return platform.clickhouse.rows("SELECT DISTINCT decodeURLComponent(labels['user']) AS user FROM"
                                        " oal.platform_metric WHERE name = 'kafka_quota'")

    assert until(throttled, "a row of the one that floods") == [{"user": "ap:ap-flood"}]
    producer.purge()
    producer.flush(20)


def test_figures_are_those_of_the_parts(platform):
    """Asked of each part itself, or known from its configuration."""
    def last(view: str, column: str, where: str = "1"):
        return platform.clickhouse.rows(
            f"SELECT argMax({column}, t) AS x FROM oal.{view}(from = now() - 60, to = now() + 60) WHERE {where} AND"
            f" {column} IS NOT NULL"
        )[0]["x"]

    assert last("v_platform_flink_job", "taskmanagers") == 1
    assert last("v_platform_flink_job", "slots") == platform.settings.parallelism
    assert last("v_platform_kafka", "active_controllers") == 1
    assert last("v_platform_clickhouse", "memory_limit_bytes") == platform.settings.clickhouse_memory_mib << 20
    # The serial collector, which short-lived platforms have, counts one survivor space less.
    heap = last("v_platform_jvm", "heap_max_bytes", "component = 'taskmanager'")
    assert 0.9 < heap / (platform.settings.taskmanager_heap_mib << 20) <= 1
    assert last("v_platform_clickhouse_table", "rows", "table = 'schema_migrations'") == platform.clickhouse.rows(
        "SELECT count() AS n FROM oal.schema_migrations")[0]["n"]
    before = last("v_platform_flink_job", "checkpoints_completed")
    until(lambda: last("v_platform_flink_job", "checkpoints_completed") > before, "a checkpoint that is counted")


def test_passwords_are_in_no_command_line(platform):
    secrets = {(platform.state.secrets / name).read_bytes()
               for name in ("jolokia.password", "clickhouse-telegraf.password", "metrics.token")}
    for name in ("kafka", "jobmanager", "taskmanager", "telegraf"):
        with open(f"/proc/{platform.pid(name)}/cmdline", "rb") as command:
            line = command.read()
        assert not any(secret in line for secret in secrets), name


@pytest.mark.parametrize("victim", ["push", "kafka"])
def test_a_part_that_is_away_is_down_and_the_others_go_on(platform, victim):
    until(lambda: all(health(platform)[name]["up"] for name in (victim, "clickhouse", "jobmanager")),
          "everything is up")
    platform.stop(victim)
    try:
        down = until(lambda: (h := health(platform))[victim]["up"] == 0 and h, f"{victim} is said to be down")
        assert down[victim]["said"] == "connection_failed"
        since = platform.clickhouse.query("SELECT now64(3)").strip()
        for name in ("cpu", "flink_job", "clickhouse", "internal_write"):
            until(lambda: count(platform, f"name = '{name}' AND ts > '{since}'"), f"newer rows of {name}")
    finally:
        platform.start(victim)
    until(lambda: health(platform)[victim]["up"], f"{victim} is up again")


def test_rows_of_an_outage_of_clickhouse_come_later(platform):
    def readings() -> list[int]:
        return [
            r["s"] for r in platform.clickhouse.rows(
                "SELECT DISTINCT toUnixTimestamp(ts) AS s FROM oal.platform_metric WHERE name = 'cpu' ORDER BY s")
        ]

    log = platform.state.log("telegraf")
    before = len(log.read_text())
    last = readings()[-1]
    platform.stop("clickhouse")
    try:
        until(lambda: log.read_text()[before:].count("connection refused") > 1, "Telegraf says that ClickHouse is away")
    finally:
        platform.start("clickhouse")
    platform.wait_ready("clickhouse")
    until(lambda: readings()[-1] > last + 10, "later readings")
    seconds = [s for s in readings() if s >= last]
    # one in two seconds; on a machine that is busy a reading may be missed, five in a row mean that rows were lost
    assert max(b - a for a, b in zip(seconds, seconds[1:])) <= 10, seconds
    assert platform.clickhouse.rows(
        "SELECT max(dropped) AS n FROM oal.v_platform_telegraf(from = now() - 600, to = now() + 60)") == [{"n": 0}]


def test_a_wrong_password_is_said_to_be(platform):
    file = platform.state.secrets / "jolokia.password"
    right, before = file.read_text(), len(platform.state.log("telegraf").read_text())
    file.write_text("wrong")
    try:
        platform.stop("telegraf")
        platform.start("telegraf")
        refused = f'127.0.0.1:{platform.settings.ports["jolokia_kafka"]}/jolokia" has status code 401'
        text = until(lambda: refused in (t := platform.state.log("telegraf").read_text()[before:]) and t,
                     "Telegraf's complaint")
        assert "wrong" not in text
        until(lambda: health(platform)["kafka"]["said"] == "401", "the answer")
    finally:
        file.write_text(right)
        platform.restart("telegraf")
    until(lambda: health(platform)["kafka"]["up"], "Kafka is up again")


def test_jolokia_reads_and_does_nothing_else(platform):
    """With the right password: no operation, no change, no command line."""
    def ask(body: dict, password: str):
        request = urllib.request.Request(
            f"http://127.0.0.1:{platform.settings.ports['jolokia_kafka']}/jolokia/", data=json.dumps(body).encode(),
            headers={"Authorization": "Basic " + base64.b64encode(f"telegraf:{password}".encode()).decode()})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["status"]

    password = (platform.state.secrets / "jolokia.password").read_text()
    assert ask({"type": "read", "mbean": "java.lang:type=Threading", "attribute": "ThreadCount"}, password) == 200
    for body in ({"type": "exec", "mbean": "java.lang:type=Memory", "operation": "gc"},
                 {"type": "write", "mbean": "java.lang:type=Memory", "attribute": "Verbose",
                  "value": True}, {"type": "read", "mbean": "java.lang:type=Runtime",
                                   "attribute": "SystemProperties"}, {"type": "list"}):
        assert ask(body, password) == 403, body
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask({"type": "version"}, "wrong")


def test_telegraf_that_crashes_comes_back(platform):
    pid = platform.kill("telegraf", signal.SIGKILL)
    until(lambda: platform.supervisor.info()["telegraf"]["pid"] not in (0, pid), "a new process")
    since = platform.clickhouse.query("SELECT now64(3)").strip()
    until(lambda: count(platform, f"name = 'cpu' AND ts > '{since}'"), "rows again")


def test_local_sets_every_variable_that_the_watched_parts_need(platform):
    assert set(platform.settings.telegraf_watch) == set(WATCH)
    given = telegraf.environment(platform.state, platform.settings)
    assert all(given.values())
