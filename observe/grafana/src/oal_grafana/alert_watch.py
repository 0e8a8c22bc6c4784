"""Alert rules that watch what the others rest on, and copies: ClickHouse itself, replicas, backups, connections."""
from oal_grafana.alert_rule import NOW_UTC, Rule, views

WATCH = (
    # The one rule that fires when no query can be asked; the others are OK then, so that it is one alert. It asks where
    # the next one looks, so that one that cannot look is told of as well.
    Rule(
        "oal-clickhouse-away",
        "ClickHouse does not answer",
        "SELECT toFloat64(count() >= 0) AS answers FROM system.quota_usage",
        None,
        1,
        10,
        "1m",
        "critical",
        "ClickHouse does not answer Grafana: no dashboard has data, and no other alert can fire",
        "oal-platform",
        "Components",
        no_data="Alerting",
        fails="Alerting",
        always=True,
    ),
    # A query that fails while ClickHouse answers would be taken for well; its server counts it.
    Rule(
        "oal-rules-fail",
        "Alert rules cannot be evaluated",
        "SELECT toFloat64(ifNull(sum(errors), 0)) AS errors FROM system.quota_usage",
        10,
        None,
        60,
        "0m",
        "critical",
        "{{ printf \"%.0f\" .Values.A.Value }} queries of alert rules failed since the full hour:"
        " some alert cannot fire",
        "oal-platform",
        "Queries",
        always=True,
    ),
    Rule(
        "oal-push-connections",
        "Access points lose the push service",
        f"""SELECT toFloat64(lost) AS connections FROM (
  SELECT quantileExact(0.9)(m.connected) AS before, argMax(m.connected, m.minute) AS newest,
    if(before - newest >= greatest(2, 0.2 * before), before - newest, 0) AS lost
  FROM (
    SELECT minute, sum(i.connected) AS connected FROM (
      SELECT toStartOfMinute(x.t) AS minute, instance, max(x.aps_connected) AS connected
      FROM oal.v_platform_push({views(30)}) AS x GROUP BY minute, instance
    ) AS i GROUP BY minute
  ) AS m WHERE m.minute < toStartOfMinute({NOW_UTC})
) WHERE lost > 0""",
        0,
        None,
        30,
        "3m",
        "critical",
        "{{ printf \"%.0f\" .Values.A.Value }} access points have lost their connection to the push"
        " service in half an hour",
        "oal-platform",
        "Push service",
    ),
    Rule(
        "oal-job-down",
        "Stream job does not run",
        f"SELECT job, toFloat64(max(ifNull(x.uptime_s, 0))) AS uptime_s FROM oal.v_platform_flink_job({views(5)}) AS x"
        " GROUP BY job",
        None,
        1,
        5,
        "1m",
        "critical",
        "Stream job {{ .Labels.job }} has not run for five minutes: no row is written, and rows wait in Kafka",
        "oal-platform",
        "Job restarts",
        always=True,
    ),
    Rule(
        "oal-kafka-replicas",
        "Kafka lacks replicas",
        f"""SELECT instance,
  toFloat64(min(ifNull(x.under_replicated_partitions, 0) + ifNull(x.offline_partitions, 0))) AS partitions
FROM oal.v_platform_kafka({views(10)}) AS x GROUP BY instance""",
        0,
        None,
        10,
        "5m",
        "critical",
        "{{ printf \"%.0f\" .Values.A.Value }} partitions of broker {{ .Labels.instance }} lack a replica or"
        " are offline",
        "oal-platform",
        "Partitions without all replicas",
        always=True,
    ),
    Rule(
        "oal-clickhouse-replicas",
        "ClickHouse replica does not follow",
        f"""SELECT instance, if(read_only, 'takes no rows', 'is behind') AS what, \
toFloat64(if(read_only, greatest(behind, 301), behind)) AS behind_s
FROM (
  SELECT instance, min(ifNull(x.v['metric_ReadonlyReplica'], 0)) > 0 AS read_only,
    min(ifNull(x.v['replication_lag_s'], 0)) AS behind
  FROM oal.v_platform_reading(name = 'clickhouse', {views(10)}) AS x GROUP BY instance
)""",
        300,
        None,
        10,
        "5m",
        "critical",
        "ClickHouse at {{ .Labels.instance }} {{ .Labels.what }}: copies are {{ humanizeDuration .Values.A.Value }} or"
        " more old",
        "oal-platform",
        "Replicas of ClickHouse",
        always=True,
    ),
    Rule(
        "oal-backup-age",
        "Backup is old",
        """SELECT toFloat64(dateDiff('second', max(ts), now64(3, 'UTC'))) AS age_s
FROM oal.platform_metric WHERE name = 'backup' AND ts >= now() - INTERVAL 30 DAY
HAVING count() > 0 AND age_s > 36 * 3600""",
        36 * 3600,
        None,
        30 * 24 * 60,
        "10m",
        "critical",
        "The newest backup is {{ humanizeDuration .Values.A.Value }} old",
        "oal-platform",
        "Backups",
    ),
)
