"""What Telegraf sends becomes rows, and the views of these give the figures worked out by hand."""

import json

import pytest

RANGE = "from = '2026-11-20 00:00:00', to = '2026-11-20 01:00:00'"
T0_MS = 1_795_132_800_000  # 2026-11-20 00:00:00 UTC


def say(database, *readings: tuple) -> None:
    """Insert (second, name, tags, fields) as observe/telegraf/telegraf.conf does."""
    lines = "\n".join(
        json.dumps({"name": name, "timestamp": T0_MS + round(second * 1000), "tags": tags, "fields": fields})
        for second, name, tags, fields in readings)
    database.server.query(
        f"INSERT INTO {database.name}.platform_metric (name, timestamp, tags, fields) FORMAT JSONEachRow",
        data=lines.encode(), input_format_json_read_objects_as_strings=1)


KAFKA = {"component": "kafka", "host": "m1", "jolokia_agent_url": "http://broker-0:8778/jolokia"}


def test_a_reading_becomes_columns(database):
    say(database, (1.5, "health", {
        "component": "kafka", "host": "m1", "server": "http://broker-0:8778/jolokia/read/a:name=B,type=C/Value"
    }, {"result_code": 3, "result_type": "connection_failed", "ok": True}))
    assert database.rows("SELECT ts, name, component, instance, host, labels, values, texts FROM platform_metric") == [[
        "2026-11-20 00:00:01.500", "health", "kafka", "broker-0:8778", "m1", "{}", "{'result_code':3,'ok':1}",
        "{'result_type':'connection_failed'}"
    ]]


@pytest.mark.parametrize("tags, instance", [({"jolokia_agent_url": "http://b:1/jolokia"}, "b:1"),
                                            ({"url": "https://c.d:2/"}, "c.d:2"), ({"server": "http://e/ping"}, "e"),
                                            ({}, "m1")])
def test_instance_is_what_was_asked(database, tags, instance):
    say(database, (0, "x", {"host": "m1", "topic": "t", **tags}, {"a": 1}))
    assert database.rows("SELECT instance, labels FROM platform_metric") == [[instance, "{'topic':'t'}"]]


def test_increases_begin_again_with_the_counter_and_never_cross_a_hole(database):
    say(
        database,
        *((second, "kafka", KAFKA, {"BytesInPerSec": count, "PartitionCount": 7})
          for second, count in ((0, 100), (10, 300), (20, 50), (400, 90), (410, 190))))
    say(database, (10, "kafka", {**KAFKA, "jolokia_agent_url": "http://broker-1:8778/jolokia"}, {"BytesInPerSec": 9}))
    rows = database.rows(
        f"SELECT toSecond(t) + 60 * toMinute(t), bytes_in_per_s, partitions, connections FROM v_platform_kafka({RANGE})"
        " WHERE instance = 'broker-0:8778' ORDER BY t"
    )
    assert rows == [["0", "\\N", "7", "\\N"], ["10", "20", "7", "\\N"], ["20", "5", "7", "\\N"],
                    ["400", "\\N", "7", "\\N"], ["410", "10", "7", "\\N"]]


def test_the_reading_before_the_range_counts(database):
    say(database, (0, "kafka", KAFKA, {"BytesInPerSec": 100}), (10, "kafka", KAFKA, {"BytesInPerSec": 300}))
    assert database.rows(
        "SELECT bytes_in_per_s FROM v_platform_kafka(from = '2026-11-20 00:00:10', to = '2026-11-20 00:00:11')") == [[
            "20"
        ]]


def test_rows_of_one_reading_come_together(database):
    say(
        database, (0, "kafka", KAFKA, {"PartitionCount": 7}),
        *((second, "kafka_request", {**KAFKA, "request": request}, {"Count": 10 * second}) for second in (0, 10)
          for request in ("Produce", "Metadata")), (10, "kafka", KAFKA, {"PartitionCount": 8}),
        *((10, "kafka_listener", {**KAFKA, "listener": "CLIENT",
                                  "networkProcessor": n}, {"connection-count": 3, "failed-authentication-total": 0})
          for n in "01"))
    assert database.rows(
        f"SELECT partitions, requests_per_s, connections FROM v_platform_kafka({RANGE}) ORDER BY t") == [[
            "7", "\\N", "\\N"
        ], ["8", "20", "6"]]


def test_health_says_what_is_wrong(database):
    health = {"component": "mlflow", "host": "m1", "server": "http://mlflow:5000/health"}
    say(database, (0, "health", health,
                   {"result_code": 0, "result_type": "success", "response_time": 0.0251, "http_response_code": 200}),
        (10, "health", health, {
            "result_code": 6, "result_type": "response_status_code_mismatch", "response_time": 0.5,
            "http_response_code": 503
        }), (20, "health", health, {"result_code": 4, "result_type": "timeout"}))
    assert database.rows(
        f"SELECT component, instance, up, latency_ms, said FROM v_platform_health({RANGE}) ORDER BY t") == [[
            "mlflow", "mlflow:5000", "1", "25.1", "200"
        ], ["mlflow", "mlflow:5000", "0", "500", "503"], ["mlflow", "mlflow:5000", "0", "\\N", "timeout"]]


def batch(topic: str, partition: int, offset: int) -> dict:
    return {
        "ap_id": "a", "ts": "2026-11-20 00:00:00", "topic": topic, "kafka_partition": partition, "kafka_offset": offset
    }


def test_stored_lag_is_what_the_broker_holds_and_no_table_does(database):
    """Offsets are stored at the test's own time, so the range is about now."""
    def log(topic: str, partition: int, start: int, end: int) -> str:
        return (
            f"SELECT now64(3), 'kafka_partition', 'kafka', map('topic', '{topic}', 'partition', '{partition}'),"
            f" map('LogStartOffset', {start}, 'LogEndOffset', {end})"
        )

    database.insert("batch", [batch("ap.samples.v1", 0, 89), batch("ap.samples.v1", 0, 80)])
    database.query("INSERT INTO dead_letter (topic, kafka_partition, kafka_offset) VALUES ('ap.samples.v1', 0, 94)")
    parts = (log("ap.samples.v1", 0, 0, 100), log("ap.samples.v1", 1, 40,
                                                  50), log("ap.events.v1", 0, 0, 0), log("training.items.v1", 0, 0, 9))
    database.query(f"INSERT INTO platform_metric (ts, name, component, labels, values) {' UNION ALL '.join(parts)}")
    rows = database.rows(
        "SELECT topic, max(log_end_offset), max(stored_offset), max(lag_records) FROM v_platform_stored_lag(from ="
        " now() - 3600, to = now() + 60) GROUP BY topic ORDER BY topic"
    )
    # of partition 1 nothing is stored, and what Kafka has deleted cannot be
    assert rows == [["ap.events.v1", "0", "0", "0"], ["ap.samples.v1", "150", "95", "15"]]


def test_a_counter_is_summed_over_subtasks_and_a_gauge_that_all_share_is_not(database):
    def flink(name: str, second: int, subtask: int, **fields) -> tuple:
        return (second, name, {
            "component": "taskmanager", "host": "m1", "jolokia_agent_url": "http://tm:8778/jolokia",
            "operator_name": "decode", "subtask_index": str(subtask)
        }, fields)

    say(database, flink("flink_counter", 0, 0, batches=10), flink("flink_counter", 0, 1, batches=20),
        flink("flink_counter", 10, 0, batches=30), flink("flink_counter", 10, 1, batches=50),
        flink("flink_gauge", 10, 0, revokedAps=2), flink("flink_gauge", 10, 1, revokedAps=2))
    assert database.rows(
        f"SELECT counter, value, per_s FROM v_platform_flink_counter({RANGE}) ORDER BY t, counter") == [[
            "batches", "30", "\\N"
        ], ["batches", "80", "5"], ["revokedAps", "2", "\\N"]]


def test_watermarks_before_the_first_are_none(database):
    tags = {
        "component": "taskmanager", "host": "m1", "jolokia_agent_url": "http://tm:8778/jolokia",
        "operator_name": "Source-_kafka-_batches", "subtask_index": "1"
    }
    say(database,
        (0, "flink_operator", tags, {"currentOutputWatermark": -9223372036854776000, "currentEmitEventTimeLag": -1}),
        (10, "flink_operator", tags,
         {"currentOutputWatermark": T0_MS + 7500, "currentEmitEventTimeLag": 40, "pendingRecords": 3}))
    assert database.rows(
        "SELECT subtask, watermark, watermark_lag_s, event_time_lag_s, pending_records FROM"
        f" v_platform_flink_operator({RANGE}) ORDER BY t"
    ) == [["1", "\\N", "\\N", "\\N", "\\N"], ["1", "2026-11-20 00:00:07.500", "2.5", "0.04", "3"]]
    assert database.rows(f"SELECT consumer, topic, lag_records FROM v_platform_lag({RANGE})") == [[
        "stream-jobs", "ap.samples.v1, ap.packets.v1, ap.events.v1", "3"
    ]]


def test_a_service_s_counters_are_summed_over_their_labels(database):
    push = {"component": "push", "host": "m1", "url": "http://push:8444/metrics"}
    say(
        database,
        *((second, "service", {**push, "reason": reason}, {"oal_deploy_denied_total": second * n}) for second in (0, 10)
          for reason, n in (("rate", 1), ("tls", 3))),
        (10, "service", push, {"oal_deploy_connected_aps": 4, "oal_deploy_kafka_lag_records": 5}))
    assert database.rows(
        f"SELECT aps_connected, denied_per_s, revoked_aps FROM v_platform_push({RANGE}) ORDER BY t") == [[
            "\\N", "\\N", "\\N"
        ], ["4", "4", "\\N"]]
    assert database.rows(
        f"SELECT metric, labels, value, per_s FROM v_platform_service_metric({RANGE}) WHERE labels['reason'] = 'tls'"
        " ORDER BY t"
    ) == [
        ["oal_deploy_denied_total", "{'reason':'tls'}", "0", "\\N"],
        ["oal_deploy_denied_total", "{'reason':'tls'}", "30", "3"],
    ]
    assert database.rows(f"SELECT consumer, topic, lag_records FROM v_platform_lag({RANGE})") == [[
        "push", "ap.bundles.v1", "5"
    ]]


def test_a_host_is_put_together_from_its_rows(database):
    host = {"component": "host", "host": "m1"}
    say(database, (0, "cpu", {**host, "cpu": "cpu-total"}, {"usage_active": 25, "usage_iowait": 5}),
        (0, "mem", host, {"total": 1000, "available": 400, "used": 500}), (0, "swap", host, {"total": 10, "used": 3}),
        (0, "system", host, {"load1": 1.5, "n_cpus": 2}), (0, "system", host, {"uptime": 60}))
    assert database.rows(
        "SELECT cpu_ratio, cpu_iowait_ratio, cpus, load1, memory_total_bytes, memory_available_bytes,"
        f" memory_used_ratio, swap_used_bytes, uptime_s FROM v_platform_host({RANGE})"
    ) == [["0.25", "0.05", "2", "1.5", "1000", "400", "0.6", "3", "60"]]


def test_certificates_count_down(database):
    say(database,
        (0, "x509_cert", {"component": "certificate", "host": "m1", "source": "file:///pki/a.crt", "common_name": "a"
                          }, {"enddate": T0_MS // 1000 + 86400 * 5, "expiry": 1}))
    assert database.rows(f"SELECT subject, expires, days_left FROM v_platform_certificate({RANGE})") == [[
        "a", "2026-11-25 00:00:00", "5"
    ]]


def test_dropped_rows_are_seen(database):
    telegraf = {"component": "telegraf", "host": "m1"}
    for second, dropped in ((0, 0), (10, 40)):
        say(database, (second, "internal_agent", telegraf, {"metrics_gathered": 100, "gather_errors": 0}),
            (second, "internal_write", {**telegraf, "output": "http"},
             {"metrics_dropped": dropped, "metrics_written": 5, "buffer_size": 50, "buffer_limit": 200}))
    assert database.rows(
        f"SELECT dropped, dropped_per_s, buffer_ratio FROM v_platform_telegraf({RANGE}) ORDER BY t") == [[
            "0", "\\N", "0.25"
        ], ["40", "4", "0.25"]]
