"""What Telegraf would have said of a platform in the last quarter of an hour, with every trouble: a part is away, disks
fill, checkpoints fail.
"""
import json

STEP_S, READINGS = 10, 90


def _tags(component: str, port: int, **labels) -> dict:
    return {"component": component, "host": "m1", "jolokia_agent_url": f"http://127.0.0.1:{port}/jolokia", **labels}


KAFKA, JOBMANAGER, TASKMANAGER = _tags("kafka", 8778), _tags("jobmanager", 8779), _tags("taskmanager", 8780)
CLICKHOUSE = {"component": "clickhouse", "host": "m1", "url": "http://127.0.0.1:8123/"}
HOST, TELEGRAF = {"component": "host", "host": "m1"}, {"component": "telegraf", "host": "m1"}


def _service(name: str, port: int, **labels) -> dict:
    return {"component": name, "host": "m1", "url": f"http://127.0.0.1:{port}/metrics", **labels}


def _reading(n: int, at_s: int) -> list[tuple[str, dict, dict]]:
    """Everything that is said at one moment; counters grow with n."""
    said = []
    for component, port, up in (("kafka", 8778, True), ("clickhouse", 8123, True), ("push", 8444, True), ("mlflow",
                                                                                                          5000, False)):
        outcome = {
            "result_code": 0, "result_type": "success", "response_time": 0.004 + n % 5 / 1000, "http_response_code": 200
        } if up else {"result_code": 4, "result_type": "timeout"}
        said.append(("health", {"component": component, "host": "m1",
                                "server": f"http://127.0.0.1:{port}/health"}, outcome))
    said += [
        ("kafka", KAFKA, {
            "MessagesInPerSec": n * 300, "BytesInPerSec": n * 300_000, "BytesOutPerSec": n * 310_000,
            "UnderReplicatedPartitions": 0, "OfflinePartitionsCount": 0, "RequestHandlerAvgIdlePercent": 0.92,
            "NetworkProcessorAvgIdlePercent": 0.97, "PartitionCount": 40
        }),
        ("kafka_listener", {**KAFKA, "listener": "CLIENT",
                            "networkProcessor": "0"}, {"connection-count": 9, "failed-authentication-total": n // 9}),
        ("kafka_quota", {**KAFKA, "user": "ap%3Aap-01"}, {"throttle-time": 800, "byte-rate": 262_144}),
        *(("kafka_request", {**KAFKA, "request": request
                             }, {"Count": n * 50, "Mean": mean, "99thPercentile": mean * 6, "Max": mean * 20})
          for request, mean in (("Produce", 1.4), ("FetchConsumer", 90))),
    ]
    for topic, per_s in (("ap.samples.v1", 120_000), ("ap.packets.v1", 150_000), ("ap.events.v1", 9_000),
                         ("training.items.v1", 20_000)):
        said.append(
            ("kafka_topic", {**KAFKA, "topic": topic},
             {"MessagesInPerSec": n * 100, "BytesInPerSec": n * STEP_S * per_s, "BytesOutPerSec": n * STEP_S * per_s}))
        said.append(("kafka_partition", {**KAFKA, "topic": topic, "partition": "0"},
                     {"Size": n * 1e6, "LogStartOffset": 0, "LogEndOffset": 100_000 + n * 1000}))
        # A transaction hangs in the items; in the others one is open for a moment.
        said.append(("kafka_partition", {**KAFKA, "topic": topic, "partition": "0"},
                     {"LastStableOffsetLag": n * 1000 if topic == "training.items.v1" else n % 3}))
    said += [
        ("flink_job", {**JOBMANAGER, "job_name": "oal-stream-jobs"}, {
            "numRestarts": n // 40, "uptime": n % 40 * 10_000, "numberOfCompletedCheckpoints": n * 9,
            "numberOfFailedCheckpoints": n // 4, "lastCheckpointDuration": 80 + n % 30, "lastCheckpointSize": 2e6,
            "lastCheckpointFullSize": 8e6
        }),
        ("flink_cluster", JOBMANAGER, {"numRegisteredTaskManagers": 1, "taskSlotsTotal": 2, "taskSlotsAvailable": 0}),
        *(("flink_task", {**TASKMANAGER, "task_name": task, "subtask_index": "0"}, {
            "busyTimeMsPerSecond": busy, "backPressuredTimeMsPerSecond": 20, "idleTimeMsPerSecond": 980 - busy,
            "numRecordsIn": n * 3000, "numRecordsOut": n * 3000
        }) for task, busy in (("decode_-_label-feature-item", 400 + n % 60), ("rows-_Writer_-_rows-_Committer", 120))),
        ("flink_operator", {**TASKMANAGER, "operator_name": "Source-_kafka-_batches", "subtask_index": "0"}, {
            "pendingRecords": n % 40, "currentOutputWatermark": (at_s - 2) * 1000, "numRecordsIn": n * 90,
            "numRecordsOut": n * 90
        }),
        ("flink_counter", {**TASKMANAGER, "operator_name": "decode", "subtask_index": "0"},
         {"batches": n * 90, "refused": n // 3, "duplicates": n // 9, "gaps": n // 8, "forged": n // 20,
          "unsigned": 0}),
        ("flink_gauge", {**TASKMANAGER, "operator_name": "rows:_Committer", "subtask_index": "0"},
         {"clickhouseInsertsWaiting": 0, "clickhouseRetryingSeconds": 0}),
        *(("jvm", tags, {
            "HeapMemoryUsage.used": 2e8 + n % 20 * 1e6, "HeapMemoryUsage.max": 4e8, "ProcessCpuTime": n * 2e9,
            "ThreadCount": 90
        }) for tags in (KAFKA, JOBMANAGER, TASKMANAGER)),
        *(("jvm_gc", {**tags, "name": "G1"}, {"CollectionTime": n * 70, "CollectionCount": n})
          for tags in (KAFKA, JOBMANAGER, TASKMANAGER)),
        ("clickhouse", CLICKHOUSE, {
            "event_Query": n * 40, "event_SelectQuery": n * 30, "event_InsertQuery": n * 10,
            "event_InsertedRows": n * 25_000, "event_FailedSelectQuery": n // 30, "event_DelayedInserts": 0,
            "event_RejectedInserts": 0, "event_SelectQueryTimeMicroseconds": n * 900_000,
            "event_InsertQueryTimeMicroseconds": n * 300_000, "metric_Merge": n % 4, "metric_MemoryTracking": 6e8,
            "metric_ReadonlyReplica": 0, "replication_lag_s": 400,
            "memory_limit_bytes": 1.6e9, "uptime_s": n % 60 * 10
        }),
        *(("clickhouse_table", {**CLICKHOUSE, "table": table}, {
            "parts": parts * 2, "parts_max_in_partition": parts, "partitions": 2, "rows": n * size,
            "bytes": n * size * 4
        }) for table, parts, size in (("packet", 640, 9000), ("station", 40, 3000))),
        ("clickhouse_disk", {**CLICKHOUSE, "disk": "default"}, {"total_bytes": 1e11, "free_bytes": 4e10}),
        ("clickhouse_error", {**CLICKHOUSE, "error": "MEMORY_LIMIT_EXCEEDED"}, {"total": n // 30}),
        ("cpu", {**HOST, "cpu": "cpu-total"}, {"usage_active": 40 + n % 20, "usage_iowait": 2}),
        ("mem", HOST, {"total": 8e9, "available": 3e9}),
        ("system", HOST, {"load1": 1.5, "n_cpus": 2, "uptime": n * 10}),
        *(("disk", {**HOST, "path": path, "device": "sda1"
                    }, {"total": 1e11, "used": used, "free": 1e11 - used, "inodes_used_percent": 3})
          for path, used in (("/", 5e10), ("/var/lib/oal", 9e10))),
        *(("x509_cert", {
            "component": "certificate", "host": "m1", "source": f"file:///pki/{name}.crt", "common_name": name
        }, {"enddate": at_s + days * 86400, "expiry": days * 86400})
          for name, days in (("broker", 300), ("deploy", 9))),
        ("service", _service("push", 8444), {
            "oal_deploy_connected_aps": 9 if n < READINGS - 20 else 3, "oal_deploy_known_aps": 4,
            "oal_deploy_events_pending": n % 3,
            "oal_deploy_kafka_lag_records": n % 5, "oal_deploy_bundles_sent_total": n,
            "oal_deploy_denied_total": n // 7, "oal_deploy_store_away_since_seconds": 0
        }),
        ("service", _service("push", 8444, reason="key"), {"oal_deploy_releases_refused_total": n // 20}),
        ("service", _service("trainer", 5002), {
            "oal_trainer_aps": 3, "oal_trainer_lag_items": n % 9, "oal_trainer_items_total": n * 300,
            "oal_trainer_fits_total": n * 30, "oal_trainer_fit_cpu_seconds_total": n * 0.2
        }),
        ("service", _service("model-registry", 5001),
         {"oal_registry_problems": 0, "oal_registry_last_reconcile_timestamp_seconds": at_s - n % 30}),
        ("service", _service("model-registry", 5001, result="failed"), {"oal_registry_reconciles_total": n // 25}),
        ("internal_agent", TELEGRAF, {"metrics_gathered": n * 700, "gather_errors": 0}),
        ("internal_memstats", TELEGRAF, {"sys_bytes": 6e7}),
        ("internal_write", {**TELEGRAF, "output": "http"}, {
            "metrics_written": n * 700, "metrics_dropped": n // 10, "metrics_rejected": 0, "buffer_size": 700,
            "buffer_limit": 100_000
        }),
    ]
    return said


def insert(server, now_s: int) -> None:
    """As Telegraf's output does it."""
    lines = []
    for n in range(READINGS):
        at_s = now_s - (READINGS - 1 - n) * STEP_S
        lines += [
            json.dumps({"name": name, "timestamp": at_s * 1000, "tags": tags, "fields": fields})
            for name, tags, fields in _reading(n, at_s)
        ]
    server.query("INSERT INTO oal.platform_metric (name, timestamp, tags, fields) FORMAT JSONEachRow",
                 data="\n".join(lines).encode(), input_format_json_read_objects_as_strings=1)
