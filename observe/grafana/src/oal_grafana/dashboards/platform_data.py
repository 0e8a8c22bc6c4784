"""The rows of "Is the platform well?" about what data pass through: Kafka, Flink, ClickHouse."""
from oal_grafana import panels as p
from oal_grafana.board import Board
from oal_grafana.colours import ALARM, OK, PLAIN, TEAL, WARN
from oal_grafana.dashboards.platform_queries import LAST, series, third
from oal_grafana.sql import RANGE, may_be_empty

#: A task is named after all its operators; the first words tell them apart.
SHORT_TASKS = f"""SELECT $__timeInterval(t) AS time, \
if(length(x.task) > 30, concat(substring(x.task, 1, 29), '…'), x.task) AS task,
  max(busy_ratio) AS busy, max(backpressured_ratio) AS `back-pressured`
FROM oal.v_platform_flink_task({RANGE}) AS x GROUP BY time, task ORDER BY time, task"""


def add(b: Board) -> None:
    """Put them on the board."""
    b.row("Kafka", collapsed=True)
    b.add(
        third(
            "Kafka records not yet in ClickHouse",
            "By topic. A saw-tooth of a second's records is the"
            " checkpoint; a slope is a stage that cannot keep up.",
            series("stored_lag", "max(lag_records) AS lag", "topic"),
            "short",
            "records",
            name="${__field.labels.topic}",
        ),
        third(
            "Lag that consumers report",
            "Of the stream job, the trainer and the push service. The trainer's may stand while it fits; it then"
            " skips.",
            series("lag", "sum(lag_records) / uniqExact(t) AS lag", "consumer"),
            "short",
            "records",
            name="${__field.labels.consumer}",
            finest="10s",
        ),
        third(
            "Bytes in, by topic",
            "What producers write. Compare with *Bytes per access point* on *Is data arriving?*.",
            series("kafka_topic", "sum(bytes_in_per_s) / uniqExact(t) AS bytes_in", "topic"),
            "Bps",
            "data rate",
            name="${__field.labels.topic}",
            stack=True,
            finest="10s",
        ),
        third(
            "Broker threads that are idle",
            "Share of time that request handlers and network threads are idle, the busiest broker. Below 30 %: the"
            " broker is full.",
            series("kafka", "min(handler_idle_ratio) AS `handlers idle`, min(network_idle_ratio) AS `network idle`"),
            "percentunit",
            "idle",
            colours={"handlers idle": OK, "network idle": TEAL},
            most=1,
            finest="10s",
        ),
        third(
            "Partitions without all replicas",
            "Partitions that lack a replica, and those that have no leader. Must be 0: a broker is down or cannot keep"
            " up; see *Components*.",
            series(
                "kafka",
                "sum(under_replicated_partitions) / uniqExact(t) AS `under-replicated`, sum(offline_partitions) /"
                " uniqExact(t) AS offline",
            ),
            "none",
            "partitions",
            colours={"under-replicated": WARN, "offline": ALARM},
            finest="10s",
        ),
        third(
            "Refused connections",
            "Clients that Kafka turned away. A steady rate: a client with an expired or foreign certificate tries again"
            " and again; the broker's log has its address.",
            series("kafka", "sum(auth_failed_per_s) / uniqExact(t) AS refused"),
            "count:/s",
            "rate",
            colours={"refused": ALARM},
            finest="10s",
        ),
        third(
            "Time of a request, p99",
            "By kind. Produce slow: disk; fetch waits for data, so its time says little.",
            series(
                "kafka_request",
                "max(p99_ms) AS p99",
                "request",
                "request IN ('Produce', 'FetchConsumer', 'FetchFollower')",
            ),
            "ms",
            "time",
            name="${__field.labels.request}",
            finest="10s",
            size=(24, 6),
        ),
    )
    b.row("Flink", collapsed=True)
    b.add(
        third(
            "Checkpoints",
            "Duration and failures. Rows become visible with each: a long one delays them, a failed one delays them"
            " until the next.",
            series("flink_job", "avg(checkpoint_ms) AS duration, sum(new_checkpoints_failed) AS failed"),
            "ms",
            "duration",
            colours={"duration": TEAL, "failed": ALARM},
            right={"failed": ("none", "failed")},
            finest="10s",
        ),
        p.series(
            "Flink tasks: busy and back-pressured",
            "Largest share of a second of any subtask. Busy near 1: that task is the limit, raise parallelism;"
            " back-pressured: the one after it is.",
            SHORT_TASKS,
            "percentunit",
            "share of time",
            name="${__field.labels.task} ${__field.name}",
            most=1,
            finest="10s",
            size=(16, 7),
            long_names=True,
        ),
        third(
            "Event time behind the clock",
            "How far event time lags behind the clock, by operator. One minute after a partition has fallen silent is"
            " normal; more holds labels back.",
            series("flink_operator", "max(watermark_lag_s) AS behind", "operator", "isNotNull(watermark_lag_s)"),
            "s",
            "behind",
            name="${__field.labels.operator}",
            finest="10s",
        ),
        third(
            "What the job refuses",
            "Per second, by our own counters. *forged*: an access point writes as another; *gaps* and *late*: see *Is"
            " data arriving?*.",
            series(
                "flink_counter",
                "sum(per_s) / uniqExact(t) AS rate",
                "counter",
                "counter IN ('refused', 'duplicates', 'gaps', 'late', 'unsigned', 'unknownKey', 'forged', 'revoked',"
                " 'clickhouseRetries')",
            ),
            "count:/s",
            "rate",
            name="${__field.labels.counter}",
            finest="10s",
        ),
        third(
            "Java processes: heap and collection",
            "Heap in use over its limit, and share of time in garbage collection. Heap near 1 with collection above"
            " 0.2: give it more memory.",
            series("jvm", "max(heap_used_ratio) AS heap, max(gc_ratio) AS collecting", "component"),
            "percentunit",
            "share",
            name="${__field.name} ${__field.labels.component}",
            most=1,
            finest="10s",
        ),
        third(
            "State of the stream job",
            "State that a full checkpoint holds. It should stand still with the number of access points.",
            series("flink_job", "max(checkpoint_full_bytes) AS state"),
            "bytes",
            "state",
            colours={"state": TEAL},
            finest="10s",
            size=(24, 6),
        ),
    )
    b.row("ClickHouse", collapsed=True)
    b.add(
        third(
            "Rows inserted",
            "Per second, and inserts that were delayed or refused (must be 0).",
            series(
                "clickhouse",
                "sum(inserted_rows_per_s) / uniqExact(t) AS rows, sum(delayed_inserts_per_s) AS `delayed inserts`,"
                " sum(rejected_inserts_per_s) AS `refused inserts`",
            ),
            "count:/s",
            "rate",
            colours={"rows": TEAL, "delayed inserts": WARN, "refused inserts": ALARM},
            finest="10s",
        ),
        third(
            "Queries",
            "Selects per second, and those that failed. Failures of a dashboard: run `observe/grafana/check`; of a"
            " person: their limits (`clickhouse/README.md`).",
            series(
                "clickhouse",
                "sum(selects_per_s) / uniqExact(t) AS selects, sum(failed_selects_per_s) / uniqExact(t) AS failed",
            ),
            "count:/s",
            "rate",
            colours={"selects": TEAL, "failed": ALARM},
            finest="10s",
        ),
        third(
            "Time of a query",
            "Mean time of selects and inserts. Inserts slow: disk or merges; selects slow: long ranges, or memory.",
            series("clickhouse", "avg(select_ms) AS selects, avg(insert_ms) AS inserts"),
            "ms",
            "time",
            colours={"selects": TEAL, "inserts": WARN},
            finest="10s",
        ),
        third(
            "Parts",
            "Most parts in one partition, and merges that run. Climbing towards 1,000: inserts are too small, or the"
            " disk cannot merge.",
            series("clickhouse", "max(parts_max_in_partition) AS `most in a partition`, max(merges) AS merges"),
            "none",
            "parts, merges",
            colours={"most in a partition": WARN, "merges": PLAIN},
            finest="10s",
        ),
        third(
            "Memory",
            "In use and the limit. At the limit queries fail, not inserts.",
            series("clickhouse", "max(memory_bytes) AS used, max(memory_limit_bytes) AS limit"),
            "bytes",
            "memory",
            colours={"used": TEAL, "limit": PLAIN},
            finest="10s",
        ),
        third(
            "Replicas of ClickHouse",
            "Replicas that take no rows (must be 0), and how far the slowest is behind. Zero and flat where there is"
            " one server a shard.",
            f"""SELECT $__timeInterval(t) AS time, max(ifNull(x.v['metric_ReadonlyReplica'], 0)) AS `read-only`, \
max(ifNull(x.v['replication_lag_s'], 0)) AS behind
FROM oal.v_platform_reading(name = 'clickhouse', {RANGE}) AS x GROUP BY time ORDER BY time""",
            "none",
            "replicas",
            colours={"read-only": ALARM, "behind": WARN},
            right={"behind": ("s", "behind")},
            finest="10s",
        ),
        p.rows(
            "Tables",
            "Largest first. What a table costs decides how long its rows can be kept: shorten the retention of the"
            " largest one when the disk fills.",
            f"""SELECT table, sum(s.rows_now) AS rows_now, sum(s.bytes_now) AS bytes_now, \
sum(s.parts_now) AS parts_now, max(s.most_in_partition) AS most_in_partition
FROM (
    SELECT table, instance, argMax(x.rows, x.t) AS rows_now, argMax(x.bytes, x.t) AS bytes_now, \
argMax(x.parts, x.t) AS parts_now, argMax(x.parts_max_in_partition, x.t) AS most_in_partition
    FROM oal.v_platform_clickhouse_table({LAST}) AS x GROUP BY table, instance
) AS s GROUP BY table ORDER BY bytes_now DESC LIMIT 40""",
            {"bytes_now": "bytes", "rows_now": "short"},
            size=(24, 7),
            coloured={"most_in_partition": p.rising(300, 1000)},
        ),
        p.rows(
            "Errors that ClickHouse counted",
            "New ones in the time shown, by name. Memory limits: long ranges; `TOO_MANY_PARTS`: see *Parts*. Without"
            " `TYPE_MISMATCH`, which the server counts whenever a view compares seconds with a range in microseconds,"
            " and answers all the same.",
            may_be_empty(
                "a healthy server counts no errors",
                f"""SELECT error, sum(x.new_errors) AS new FROM oal.v_platform_clickhouse_error({RANGE}) AS x \
WHERE x.new_errors > 0 AND error != 'TYPE_MISMATCH' GROUP BY error ORDER BY new DESC LIMIT 20""",
            ),
            {},
            size=(24, 5),
        ),
    )
