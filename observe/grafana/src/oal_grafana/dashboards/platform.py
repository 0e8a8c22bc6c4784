"""Is the platform well?"""
from functools import partial

from oal_grafana import panels as p
from oal_grafana.board import Board
from oal_grafana.colours import ALARM, MAGENTA, OK, PLAIN, TEAL, WARN
from oal_grafana.sql import FALSE_SENDER, RANGE, last_of_range, may_be_empty

LAST = last_of_range("10 MINUTE")  # the newest reading of each counts, also where Telegraf is late
TELEGRAF_AWAY = "no data: is Telegraf running?"

third = partial(p.series, size=(8, 7))  # of a screen


def _series(view: str, select: str, group: str = "", where: str = "1") -> str:
    labels = f", {group}" if group else ""
    return (
        f"SELECT $__timeInterval(t) AS time{labels}, {select}\nFROM oal.v_platform_{view}({RANGE}) AS x WHERE {where}"
        f" GROUP BY time{labels} ORDER BY time{labels}"
    )


def board():
    b = Board(
        "oal-platform",
        "Kafka, Flink, ClickHouse, the services of the loop, and the machines: what is away, what is full, what is"
        " about to be.",
        time="now-3h",
    )
    b.row("Is it good?")
    b.add(
        p.number(
            "Away",
            "Components that did not answer in the last readings shown. See *Components* below for which and what they"
            " said; then its log.",
            "SELECT countIf(last_up = 0) AS away FROM (SELECT component, instance, argMax(x.up, x.t) AS last_up FROM"
            f" oal.v_platform_health({LAST}) AS x GROUP BY component, instance)",
            "none",
            p.rising(1, 1),
            size=(3, 4),
            no_value=TELEGRAF_AWAY,
        ),
        p.number(
            "Rows behind Kafka",
            "Records in Kafka that do not stand in ClickHouse yet, largest topic; right also while the job is dead."
            " Growing for minutes: see *Flink tasks* (busy: add task slots; back-pressured: ClickHouse is slow).",
            "SELECT max(lag) AS records FROM (SELECT topic, argMax(x.lag_records, x.t) AS lag FROM"
            f" oal.v_platform_stored_lag({last_of_range('5 MINUTE')}) AS x GROUP BY topic)",
            "short",
            p.rising(10_000, 100_000),
            size=(3, 4),
            no_value=TELEGRAF_AWAY,
        ),
        p.number(
            "Checkpoints failed",
            "Failed in the time shown. Rows become visible at a checkpoint: while they fail, nothing new can be read."
            " The JobManager's log names the operator.",
            f"SELECT sum(x.new_checkpoints_failed) AS failed FROM oal.v_platform_flink_job({RANGE}) AS x",
            "none",
            p.rising(1, 5),
            size=(3, 4),
            no_value=TELEGRAF_AWAY,
        ),
        p.number(
            "Job restarts",
            "Restarts of the Flink job in the time shown. Nothing is lost by one; several an hour have a cause in the"
            " TaskManager's log.",
            f"SELECT sum(x.new_restarts) AS restarts FROM oal.v_platform_flink_job({RANGE}) AS x",
            "none",
            p.rising(1, 3),
            size=(3, 4),
            no_value=TELEGRAF_AWAY,
        ),
        p.number(
            "Parts in a partition",
            "Most parts in a partition of a table. ClickHouse slows inserts down at 1,000 and refuses them at 3,000:"
            " inserts are too small or merges cannot keep up.",
            f"SELECT max(x.parts_max_in_partition) AS parts FROM oal.v_platform_clickhouse({LAST}) AS x",
            "none",
            p.rising(300, 1000),
            size=(3, 4),
            no_value=TELEGRAF_AWAY,
        ),
        p.dial(
            "Fullest disk",
            "Of the hosts and of ClickHouse. Above 80 % shorten retention (`clickhouse/README.md`) or add disk: at 100"
            " % inserts stop and Kafka keeps the data only for its own retention.",
            f"""SELECT max(used) AS used FROM (
  SELECT max(x.used_ratio) AS used FROM oal.v_platform_host_disk({LAST}) AS x \
UNION ALL SELECT max(x.used_ratio) AS used FROM oal.v_platform_clickhouse_disk({LAST}) AS x)""",
            "percentunit",
            p.rising(0.8, 0.9),
            0,
            1,
            size=(3, 4),
        ),
        p.number(
            "Certificate expires in",
            "Days that the first certificate to expire has left. Below 14: renew it (`platform/security/README.md`);"
            " access points renew their own.",
            f"SELECT min(x.days_left) AS days FROM oal.v_platform_certificate({last_of_range('1 HOUR')}) AS x",
            "d",
            p.falling(7, 14),
            size=(3, 4),
            decimals=0,
            no_value=TELEGRAF_AWAY,
        ),
        p.number(
            "Forged or unsigned",
            "Batches refused because of who sent them, time shown. Not 0: see *Why records were refused* on *Is data"
            " arriving?*; someone writes as another, or keys are old.",
            f"SELECT countIf(reason IN {FALSE_SENDER}) AS refused FROM oal.dead_letter WHERE $__timeFilter(ts)",
            "none",
            p.rising(1, 10),
            size=(3, 4),
        ),
    )
    b.row("Components")
    b.add(
        p.rows(
            "Components",
            "What each said when it was asked last. *timeout*, *connection_failed*: it is down or cut off;"
            " *body_mismatch*: it is up and not well.",
            f"""SELECT component, instance, argMax(x.up, x.t) AS is_up, argMax(x.said, x.t) AS last_said, \
round(avg(x.up), 3) AS up_share, round(avg(x.latency_ms), 1) AS mean_latency, max(x.t) AS last_asked
FROM oal.v_platform_health({RANGE}) AS x GROUP BY component, instance ORDER BY is_up, component, instance""",
            {"up_share": "percentunit", "mean_latency": "ms", "last_asked": "dateTimeAsIso"},
            size=(12, 8),
            coloured={"is_up": p.falling(1, 1), "up_share": p.falling(0.9, 0.999)},
        ),
        p.series(
            "Time to answer",
            "Of each component's health question. A line that climbs is one that will be away soon.",
            _series("health", "avg(latency_ms) AS latency", "component"),
            "ms",
            "time to answer",
            name="${__field.labels.component}",
            finest="10s",
        ),
    )
    b.row("Kafka")
    b.add(
        third(
            "Behind",
            "Records that stand in Kafka and not in ClickHouse, by topic. A saw-tooth of a second's records is the"
            " checkpoint; a slope is a stage that cannot keep up.",
            _series("stored_lag", "max(lag_records) AS lag", "topic"),
            "short",
            "records",
            name="${__field.labels.topic}",
        ),
        third(
            "Lag that consumers report",
            "Of the stream job, the trainer and the push service. The trainer's may stand while it fits; it then"
            " skips.",
            _series("lag", "sum(lag_records) / uniqExact(t) AS lag", "consumer"),
            "short",
            "records",
            name="${__field.labels.consumer}",
            finest="10s",
        ),
        third(
            "Bytes in, by topic",
            "What producers write. Compare with *Bytes per access point* on *Is data arriving?*.",
            _series("kafka_topic", "sum(bytes_in_per_s) / uniqExact(t) AS bytes_in", "topic"),
            "Bps",
            "bytes per second",
            name="${__field.labels.topic}",
            stack=True,
            finest="10s",
        ),
        third(
            "Broker",
            "Idle share of request handlers (below 0.3: the broker is full), and partitions without a full set of"
            " replicas (must be 0).",
            _series(
                "kafka",
                "min(handler_idle_ratio) AS `handlers idle`, min(network_idle_ratio) AS `network idle`,"
                " sum(under_replicated_partitions) / uniqExact(t) AS `under-replicated`, sum(offline_partitions) /"
                " uniqExact(t) AS offline",
            ),
            "none",
            "share, partitions",
            colours={"handlers idle": OK, "network idle": TEAL, "under-replicated": WARN, "offline": ALARM},
            finest="10s",
        ),
        third(
            "Refused connections",
            "Clients that Kafka turned away. A steady rate: a client with an expired or foreign certificate tries again"
            " and again; the broker's log has its address.",
            _series("kafka", "sum(auth_failed_per_s) / uniqExact(t) AS refused"),
            "cps",
            "per second",
            colours={"refused": ALARM},
            finest="10s",
        ),
        third(
            "Time of a request, p99",
            "By kind. Produce slow: disk; fetch waits for data, so its time says little.",
            _series(
                "kafka_request",
                "max(p99_ms) AS p99",
                "request",
                "request IN ('Produce', 'FetchConsumer', 'FetchFollower')",
            ),
            "ms",
            "time",
            name="${__field.labels.request}",
            finest="10s",
        ),
    )
    b.row("Flink")
    b.add(
        third(
            "Checkpoints",
            "Duration and failures. Rows become visible with each: a long one delays them, a failed one delays them"
            " until the next.",
            _series("flink_job", "avg(checkpoint_ms) AS duration, sum(new_checkpoints_failed) AS failed"),
            "ms",
            "time; failures",
            colours={"duration": TEAL, "failed": ALARM},
            finest="10s",
        ),
        third(
            "Flink tasks: busy and back-pressured",
            "Largest share of a second of any subtask. Busy near 1: that task is the limit, raise parallelism;"
            " back-pressured: the one after it is.",
            _series("flink_task", "max(busy_ratio) AS busy, max(backpressured_ratio) AS `back-pressured`", "task"),
            "percentunit",
            "share of time",
            name="${__field.name} ${__field.labels.task}",
            most=1,
            finest="10s",
        ),
        third(
            "Watermark behind",
            "How far event time lags behind the clock, by operator. One minute after a partition has fallen silent is"
            " normal; more holds labels back.",
            _series("flink_operator", "max(watermark_lag_s) AS behind", "operator", "isNotNull(watermark_lag_s)"),
            "s",
            "seconds",
            name="${__field.labels.operator}",
            finest="10s",
        ),
        third(
            "What the job refuses",
            "Per second, by our own counters. *forged*: an access point writes as another; *gaps* and *late*: see *Is"
            " data arriving?*.",
            _series(
                "flink_counter",
                "sum(per_s) / uniqExact(t) AS rate",
                "counter",
                "counter IN ('refused', 'duplicates', 'gaps', 'late', 'unsigned', 'unknownKey', 'forged', 'revoked',"
                " 'clickhouseRetries')",
            ),
            "cps",
            "per second",
            name="${__field.labels.counter}",
            finest="10s",
        ),
        third(
            "Java processes: heap and collection",
            "Heap in use over its limit, and share of time in garbage collection. Heap near 1 with collection above"
            " 0.2: give it more memory.",
            _series("jvm", "max(heap_used_ratio) AS heap, max(gc_ratio) AS collecting", "component"),
            "percentunit",
            "share",
            name="${__field.name} ${__field.labels.component}",
            most=1,
            finest="10s",
        ),
        third(
            "Job size",
            "State that a full checkpoint holds. It should stand still with the number of access points.",
            _series("flink_job", "max(checkpoint_full_bytes) AS state"),
            "bytes",
            "bytes",
            colours={"state": TEAL},
            finest="10s",
        ),
    )
    b.row("ClickHouse")
    b.add(
        third(
            "Rows inserted",
            "Per second, and inserts that were delayed or refused (must be 0).",
            _series(
                "clickhouse",
                "sum(inserted_rows_per_s) / uniqExact(t) AS rows, sum(delayed_inserts_per_s) AS `delayed inserts`,"
                " sum(rejected_inserts_per_s) AS `refused inserts`",
            ),
            "cps",
            "per second",
            colours={"rows": TEAL, "delayed inserts": WARN, "refused inserts": ALARM},
            finest="10s",
        ),
        third(
            "Queries",
            "Selects per second, and those that failed. Failures of a dashboard: run `observe/grafana/check`; of a"
            " person: their limits (`clickhouse/README.md`).",
            _series(
                "clickhouse",
                "sum(selects_per_s) / uniqExact(t) AS selects, sum(failed_selects_per_s) / uniqExact(t) AS failed",
            ),
            "cps",
            "per second",
            colours={"selects": TEAL, "failed": ALARM},
            finest="10s",
        ),
        third(
            "Time of a query",
            "Mean time of selects and inserts. Inserts slow: disk or merges; selects slow: long ranges, or memory.",
            _series("clickhouse", "avg(select_ms) AS selects, avg(insert_ms) AS inserts"),
            "ms",
            "time",
            colours={"selects": TEAL, "inserts": WARN},
            finest="10s",
        ),
        third(
            "Parts",
            "Most parts in one partition, and merges that run. Climbing towards 1,000: inserts are too small, or the"
            " disk cannot merge.",
            _series("clickhouse", "max(parts_max_in_partition) AS `most in a partition`, max(merges) AS merges"),
            "none",
            "parts, merges",
            colours={"most in a partition": WARN, "merges": PLAIN},
            finest="10s",
        ),
        third(
            "Memory",
            "In use and the limit. At the limit queries fail, not inserts.",
            _series("clickhouse", "max(memory_bytes) AS used, max(memory_limit_bytes) AS limit"),
            "bytes",
            "bytes",
            colours={"used": TEAL, "limit": PLAIN},
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
            size=(8, 7),
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
    b.row("Services of the loop")
    b.add(
        p.series(
            "Push service",
            "Access points connected, and events that wait to be told. A fall: see the push service's log, and the"
            " access points' certificates.",
            _series(
                "push",
                "max(aps_connected) AS `connected`, max(aps_known) AS known, max(events_pending) AS `events waiting`",
            ),
            "none",
            "access points, events",
            colours={"connected": OK, "known": PLAIN, "events waiting": WARN},
            finest="10s",
        ),
        p.series(
            "Push service: bundles and refusals",
            "Per second. *denied*: wrong certificate, or revoked; *refused releases*: the signature or the scope was"
            " wrong.",
            _series(
                "push",
                "sum(bundles_sent_per_s) / uniqExact(t) AS `bundles sent`, sum(denied_per_s) / uniqExact(t) AS denied,"
                " sum(releases_refused_per_s) / uniqExact(t) AS `refused releases`, sum(errors_per_s) / uniqExact(t) AS"
                " errors",
            ),
            "cps",
            "per second",
            colours={"bundles sent": TEAL, "denied": WARN, "refused releases": MAGENTA, "errors": ALARM},
            finest="10s",
        ),
        p.series(
            "Trainer",
            "Items and fits per second, and the share of a core that fitting takes. Items fall while access points"
            " stay: the topic of training items is behind.",
            _series(
                "trainer",
                "sum(items_per_s) / uniqExact(t) AS items, sum(fits_per_s) / uniqExact(t) AS fits, sum(fit_cpu_ratio) /"
                " uniqExact(t) AS `cores fitting`",
            ),
            "none",
            "per second; cores",
            colours={"items": TEAL, "fits": OK, "cores fitting": WARN},
            finest="10s",
        ),
        p.series(
            "Model registry",
            "Problems it has now (must be 0), its failed reconciliations, and the age of the last good one.",
            _series(
                "registry",
                "max(problems) AS problems, sum(reconciles_failed_per_s) / uniqExact(t) AS `failed per second`,"
                " max(last_reconcile_age_s) AS `age of the last [s]`",
            ),
            "none",
            "count; seconds",
            colours={"problems": ALARM, "failed per second": WARN, "age of the last [s]": PLAIN},
            finest="10s",
        ),
    )
    b.row("Machines and telemetry")
    b.add(
        third(
            "CPU and memory of hosts",
            "Share in use. CPU near 1 for long: see which task is busy above; memory near 1: the kernel will end"
            " something.",
            _series("host", "avg(cpu_ratio) AS cpu, avg(memory_used_ratio) AS memory", "host"),
            "percentunit",
            "share",
            name="${__field.name} ${__field.labels.host}",
            most=1,
            finest="10s",
        ),
        third(
            "Disks",
            "Share in use, by host and path. It never falls by itself: retention or more disk.",
            _series("host_disk", "max(used_ratio) AS used", "host, path"),
            "percentunit",
            "share",
            name="${__field.labels.host} ${__field.labels.path}",
            most=1,
            finest="10s",
        ),
        third(
            "Telegraf",
            "Readings written and dropped per second, and how full its buffer is. Dropped: ClickHouse was away longer"
            " than the buffer lasts.",
            _series(
                "telegraf",
                "sum(written_per_s) / uniqExact(t) AS written, sum(dropped_per_s) / uniqExact(t) AS dropped,"
                " max(buffer_ratio) AS `buffer full`",
            ),
            "none",
            "per second; share",
            colours={"written": TEAL, "dropped": ALARM, "buffer full": WARN},
            finest="10s",
        ),
        p.rows(
            "Certificates",
            "The first to expire on top. Access points' own certificates are not among them: they renew by themselves,"
            " see *Is data arriving?*.",
            f"""SELECT source, subject, max(x.expires) AS expires_at, round(argMax(x.days_left, x.t), 1) AS days \
FROM oal.v_platform_certificate({last_of_range('1 HOUR')}) AS x
GROUP BY source, subject ORDER BY days, source LIMIT 50""",
            {"expires_at": "dateTimeAsIso", "days": "d"},
            size=(24, 8),
            coloured={"days": p.falling(7, 14)},
        ),
    )
    return b
