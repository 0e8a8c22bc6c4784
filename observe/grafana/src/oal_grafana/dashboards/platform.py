"""Is the platform well?"""
from oal_grafana import panels as p
from oal_grafana.board import Board, ap_variables
from oal_grafana.colours import ALARM, MAGENTA, OK, PLAIN, TEAL, WARN
from oal_grafana.dashboards import platform_data
from oal_grafana.dashboards.platform_queries import LAST, TELEGRAF_AWAY, series, third
from oal_grafana.sql import FALSE_SENDER, FROM, RANGE, TO, known, last_of_range, may_be_empty


def verdicts() -> list:
    """The figures that answer the question."""
    return [
        p.number(
            "Components down",
            "Components that did not answer in the last readings shown. See *Components* below for which and what they"
            " said; then its log.",
            f"SELECT {known('countIf(last_up = 0)')} AS away FROM (SELECT component, instance,"
            " argMax(x.up, x.t) AS last_up FROM"
            f" oal.v_platform_health({LAST}) AS x GROUP BY component, instance)",
            "none",
            p.rising(1, 1),
            size=(3, 4),
            if_null=TELEGRAF_AWAY,
        ),
        p.number(
            "Rows behind Kafka",
            "Records in Kafka that do not stand in ClickHouse yet, largest topic; right also while the job is dead."
            " Growing for minutes: see *Flink tasks* (busy: add task slots; back-pressured: ClickHouse is slow).",
            f"SELECT {known('max(lag)')} AS records FROM (SELECT topic, argMax(x.lag_records, x.t) AS lag FROM"
            f" oal.v_platform_stored_lag({last_of_range('5 MINUTE')}) AS x GROUP BY topic)",
            "short",
            p.rising(10_000, 100_000),
            size=(3, 4),
            if_null=TELEGRAF_AWAY,
        ),
        p.number(
            "Checkpoints failed",
            "Failed in the time shown. Rows become visible at a checkpoint: while they fail, nothing new can be read."
            " The JobManager's log names the operator.",
            f"SELECT {known('sum(x.new_checkpoints_failed)')} AS failed FROM oal.v_platform_flink_job({RANGE}) AS x",
            "none",
            p.rising(1, 5),
            size=(3, 4),
            if_null=TELEGRAF_AWAY,
        ),
        p.number(
            "Job restarts",
            "Restarts of the Flink job in the time shown. Nothing is lost by one; several an hour have a cause in the"
            " TaskManager's log.",
            f"SELECT {known('sum(x.new_restarts)')} AS restarts FROM oal.v_platform_flink_job({RANGE}) AS x",
            "none",
            p.rising(1, 3),
            size=(3, 4),
            if_null=TELEGRAF_AWAY,
        ),
        p.number(
            "Most parts",
            "Most parts in a partition of a table. ClickHouse slows inserts down at 1,000 and refuses them at 3,000:"
            " inserts are too small or merges cannot keep up.",
            f"SELECT {known('max(x.parts_max_in_partition)')} AS parts FROM oal.v_platform_clickhouse({LAST}) AS x",
            "none",
            p.rising(300, 1000),
            size=(3, 4),
            if_null=TELEGRAF_AWAY,
        ),
        p.dial(
            "Fullest disk",
            "Of the hosts and of ClickHouse. Above 80 % shorten retention (`clickhouse/README.md`) or add disk: at 100"
            " % inserts stop and Kafka keeps the data only for its own retention.",
            f"""SELECT {known('max(used)')} AS used FROM (
  SELECT max(x.used_ratio) AS used FROM oal.v_platform_host_disk({LAST}) AS x \
UNION ALL SELECT max(x.used_ratio) AS used FROM oal.v_platform_clickhouse_disk({LAST}) AS x)""",
            "percentunit",
            p.rising(0.8, 0.9),
            0,
            1,
            size=(3, 4),
        ),
        p.number(
            "Certificate ends in",
            "Days that the first certificate to expire has left. Below 14: renew it (`platform/security/README.md`);"
            " access points renew their own.",
            f"SELECT {known('min(x.days_left)')} AS days FROM"
            f" oal.v_platform_certificate({last_of_range('1 HOUR')}) AS x",
            "suffix:d",
            p.falling(7, 14),
            size=(3, 4),
            decimals=0,
            if_null=TELEGRAF_AWAY,
        ),
        p.number(
            "False senders",
            "Batches refused because of who sent them, time shown. Not 0: see *Why records were refused* on *Is data"
            " arriving?*; someone writes as another, or keys are old.",
            f"SELECT countIf(reason IN {FALSE_SENDER}) AS refused FROM oal.dead_letter WHERE $__timeFilter(ts)",
            "none",
            p.rising(1, 10),
            size=(3, 4),
        ),
    ]


def board():
    b = Board(
        "oal-platform",
        "Kafka, Flink, ClickHouse, the services of the loop, and the machines: what is away, what is full, what is"
        " about to be.",
        time="now-3h",
        variables=ap_variables(hidden=True),
    )
    b.row("Is it good?")
    b.add(*verdicts()).add_firing()
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
            size=(16, 8),
            coloured={"is_up": p.falling(1, 1), "up_share": p.falling(0.9, 0.999)},
        ),
        p.series(
            "Time to answer",
            "Of each component's health question. A line that climbs is one that will be away soon.",
            series("health", "avg(latency_ms) AS latency", "component"),
            "ms",
            "time to answer",
            name="${__field.labels.component}",
            finest="10s",
            size=(8, 8),
        ),
    )
    platform_data.add(b)
    b.row("Services of the loop", collapsed=True)
    b.add(
        p.series(
            "Push service",
            "Access points connected, and events that wait to be told. A fall: see the push service's log, and the"
            " access points' certificates.",
            series(
                "push",
                "max(aps_connected) AS `connected`, max(aps_known) AS known, max(events_pending) AS `events waiting`",
            ),
            "none",
            "access points",
            colours={"connected": OK, "known": PLAIN, "events waiting": WARN},
            right={"events waiting": ("none", "events waiting")},
            finest="10s",
        ),
        p.series(
            "Push service: bundles and refusals",
            "Per second. *denied*: wrong certificate, or revoked; *refused releases*: the signature or the scope was"
            " wrong.",
            series(
                "push",
                "sum(bundles_sent_per_s) / uniqExact(t) AS `bundles sent`, sum(denied_per_s) / uniqExact(t) AS denied,"
                " sum(releases_refused_per_s) / uniqExact(t) AS `refused releases`, sum(errors_per_s) / uniqExact(t) AS"
                " errors",
            ),
            "count:/s",
            "rate",
            colours={"bundles sent": TEAL, "denied": WARN, "refused releases": MAGENTA, "errors": ALARM},
            finest="10s",
        ),
        p.series(
            "Trainer",
            "Items and fits per second, and the share of a core that fitting takes. Items fall while access points"
            " stay: the topic of training items is behind.",
            series(
                "trainer",
                "sum(items_per_s) / uniqExact(t) AS items, sum(fits_per_s) / uniqExact(t) AS fits, sum(fit_cpu_ratio) /"
                " uniqExact(t) AS `cores fitting`",
            ),
            "count:/s",
            "items, fits",
            colours={"items": TEAL, "fits": OK, "cores fitting": WARN},
            right={"cores fitting": ("percentunit", "of a core")},
            finest="10s",
        ),
        p.series(
            "Model registry",
            "Problems it has now (must be 0), its failed reconciliations, and the age of the last good one.",
            series(
                "registry",
                "max(problems) AS problems, sum(reconciles_failed_per_s) / uniqExact(t) AS `failed per second`,"
                " max(last_reconcile_age_s) AS `age of the last`",
            ),
            "none",
            "problems",
            colours={"problems": ALARM, "failed per second": WARN, "age of the last": PLAIN},
            right={"failed per second": ("count:/s", "failed"), "age of the last": ("s", "age of the last")},
            finest="10s",
        ),
    )
    b.add(
        p.rows(
            "Transactions that hung",
            "Ended by the service `transactions`. *lost*: nobody knew whether they had been committed, so readers of"
            " committed records never get them. Lost training items are missing for the online trainer alone: table"
            " `item` has them, so batch training and retraining learn from them.",
            may_be_empty("no transaction hung", f"""SELECT topic, partition, toString(outcome) AS ended, \
count() AS transactions, sum(s.records) AS records_at_most, max(s.ts) AS last_ended
FROM oal.settled_transaction AS s WHERE s.ts >= {FROM} AND s.ts <= {TO}
GROUP BY topic, partition, ended ORDER BY ended DESC, records_at_most DESC, topic, partition"""),
            {"last_ended": "dateTimeAsIso"},
            size=(24, 6),
        ),
    )
    b.row("Machines, backups and telemetry", collapsed=True)
    b.add(
        third(
            "CPU and memory of hosts",
            "Share in use. CPU near 1 for long: see which task is busy above; memory near 1: the kernel will end"
            " something.",
            series("host", "avg(cpu_ratio) AS cpu, avg(memory_used_ratio) AS memory", "host"),
            "percentunit",
            "share",
            name="${__field.name} ${__field.labels.host}",
            most=1,
            finest="10s",
        ),
        third(
            "Disks",
            "Share in use, by host and path. It never falls by itself: retention or more disk.",
            series("host_disk", "max(used_ratio) AS used", "host, path"),
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
            series(
                "telegraf",
                "sum(written_per_s) / uniqExact(t) AS written, sum(dropped_per_s) / uniqExact(t) AS dropped,"
                " max(buffer_ratio) AS `buffer full`",
            ),
            "count:/s",
            "readings",
            colours={"written": TEAL, "dropped": ALARM, "buffer full": WARN},
            right={"buffer full": ("percentunit", "buffer full")},
            finest="10s",
        ),
        p.rows(
            "Backups",
            "Backups that were made in the last 30 days, newest first (docs/backup.md). None for a day and a half: see"
            " the log of what makes them.",
            may_be_empty(
                "no backup was made yet",
                """SELECT ts AS made_at, host AS made_on, labels['backup'] AS backup, values['seconds'] AS took_s
FROM oal.platform_metric WHERE name = 'backup' AND ts >= now() - INTERVAL 30 DAY ORDER BY made_at DESC LIMIT 30""",
            ),
            {"made_at": "dateTimeAsIso", "took_s": "s"},
            size=(24, 6),
        ),
        p.rows(
            "Certificates",
            "The first to expire on top. Access points' own certificates are not among them: they renew by themselves,"
            " see *Is data arriving?*.",
            f"""SELECT source, subject, max(x.expires) AS expires_at, round(argMax(x.days_left, x.t), 1) AS days \
FROM oal.v_platform_certificate({last_of_range('1 HOUR')}) AS x
GROUP BY source, subject ORDER BY days, source LIMIT 50""",
            {"expires_at": "dateTimeAsIso", "days": "suffix:d"},
            size=(24, 8),
            coloured={"days": p.falling(7, 14)},
        ),
    )
    return b
