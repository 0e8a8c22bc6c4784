"""Alert rules about the platform itself, as Telegraf sees it."""
from oal_grafana.alert_rule import NOW_UTC, Rule, views

PLATFORM = (
    Rule(
        "oal-telemetry-away",
        "Telemetry is away",
        f"SELECT toFloat64(count()) AS readings FROM oal.v_platform_health({views(10)})",
        None,
        1,
        10,
        "5m",
        "critical",
        "Telegraf has written nothing for ten minutes",
        "oal-platform",
        "Telegraf",
        no_data="Alerting",
        always=True,
    ),
    Rule(
        "oal-component-away",
        "Component is away",
        f"SELECT component, instance, toFloat64(1 - avg(x.up)) AS away_ratio FROM oal.v_platform_health({views(5)}) AS"
        " x GROUP BY component, instance",
        0.5,
        None,
        5,
        "2m",
        "critical",
        "{{ .Labels.component }} at {{ .Labels.instance }} does not answer",
        "oal-platform",
        "Components",
        always=True,
    ),
    Rule(
        "oal-kafka-lag",
        "Rows are behind Kafka",
        f"SELECT topic, toFloat64(min(x.lag_records)) AS records FROM oal.v_platform_stored_lag({views(10)}) AS x"
        " GROUP BY topic",
        50_000,
        None,
        10,
        "5m",
        "critical",
        '{{ printf "%.0f" .Values.A.Value }} records of {{ .Labels.topic }} have waited to be stored for '
        "ten minutes or more",
        "oal-platform",
        "Kafka records not yet in ClickHouse",
        always=True,
    ),
    Rule(
        "oal-stable-offset",
        "Committed readers wait",
        f"""SELECT topic, kafka_partition, toFloat64(min(lag)) AS records
FROM (
  SELECT x.labels['topic'] AS topic, x.labels['partition'] AS kafka_partition, x.v['LogEndOffset'] AS log_end,
    x.v['LastStableOffsetLag'] AS lag
  FROM oal.v_platform_reading(name = 'kafka_partition', {views(10)}) AS x
) GROUP BY topic, kafka_partition
HAVING records > 0 AND max(log_end) > min(log_end) AND max(lag) - min(lag) >= 0.9 * (max(log_end) - min(log_end))""",
        0,
        None,
        10,
        "1m",
        "critical",
        '{{ printf "%.0f" .Values.A.Value }} records of {{ .Labels.topic }}, partition {{ '
        ".Labels.kafka_partition }}, wait behind an open transaction",
        "oal-platform",
        "Transactions that hung",
    ),
    Rule(
        "oal-ap-throttled",
        "Access point is at its quota",
        f"""SELECT replaceOne(decodeURLComponent(x.labels['user']), 'ap:', '') AS ap_id, toFloat64(count()) AS readings
FROM oal.v_platform_reading(name = 'kafka_quota', {views(10)}) AS x \
WHERE x.v['throttle-time'] > 0 GROUP BY ap_id""",
        5,
        None,
        10,
        "2m",
        "warning",
        "Access point {{ .Labels.ap_id }} sends more to Kafka than its quota and is slowed down",
        "oal-platform",
        "Lag that consumers report",
    ),
    Rule(
        "oal-records-refused",
        "Releases are refused",
        f"""SELECT component, instance, toFloat64(sum(if(newest >= earlier, newest - earlier, newest))) AS records
FROM (
  SELECT x.component AS component, x.instance AS instance, toString(x.labels) AS series,
    ifNull(argMax(x.value, x.t), 0) AS newest,
    ifNull(argMaxIf(x.value, x.t, x.t < {NOW_UTC} - INTERVAL 15 MINUTE), 0) AS earlier
  FROM oal.v_platform_service_metric({views(20)}) AS x
  WHERE x.metric IN ('oal_deploy_releases_refused_total', 'oal_trainer_releases_refused_total',
    'oal_registry_records_refused_total')
  GROUP BY component, instance, series
) GROUP BY component, instance HAVING records > 0""",
        0,
        None,
        20,
        "0m",
        "critical",
        '{{ .Labels.component }} at {{ .Labels.instance }} refused {{ printf "%.0f" .Values.A.Value }} '
        "records of ap.bundles.v1 in a quarter of an hour",
        "oal-platform",
        "Push service: bundles and refusals",
    ),
    Rule(
        "oal-transaction-lost",
        "Records were lost in a transaction",
        """SELECT topic, toFloat64(sum(records)) AS records
FROM oal.settled_transaction WHERE ts >= now() - INTERVAL 60 MINUTE AND outcome = 'lost' GROUP BY topic""",
        0,
        None,
        60,
        "0m",
        "critical",
        'Up to {{ printf "%.0f" .Values.A.Value }} records of {{ .Labels.topic }} were aborted, because '
        "nobody knew whether they had been committed",
        "oal-platform",
        "Transactions that hung",
    ),
    Rule(
        "oal-trainer-behind",
        "Trainer is behind or stuck",
        f"""SELECT instance, toFloat64(min(x.lag_items) / greatest(ifNull(avg(x.items_per_s), 0), 0.01)) AS behind_s
FROM oal.v_platform_trainer({views(10)}) AS x GROUP BY instance""",
        120,
        None,
        10,
        "5m",
        "critical",
        "Trainer {{ .Labels.instance }} needs {{ humanizeDuration .Values.A.Value }} for the items that "
        "wait, at the rate of the last ten minutes",
        "oal-platform",
        "Trainer",
        always=True,
    ),
    Rule(
        "oal-job-restarts",
        "Job restarts",
        f"SELECT job, toFloat64(sum(x.new_restarts)) AS restarts FROM oal.v_platform_flink_job({views(15)}) AS x"
        " GROUP BY job",
        1,
        None,
        15,
        "0m",
        "critical",
        'Stream job {{ .Labels.job }} has restarted {{ printf "%.0f" .Values.A.Value }} times in a '
        "quarter of an hour",
        "oal-platform",
        "Job restarts",
        always=True,
    ),
    Rule(
        "oal-checkpoints",
        "Checkpoints fail",
        f"SELECT job, toFloat64(sum(x.new_checkpoints_failed)) AS failed FROM oal.v_platform_flink_job({views(10)}) AS"
        " x GROUP BY job",
        2,
        None,
        10,
        "2m",
        "critical",
        '{{ printf "%.0f" .Values.A.Value }} checkpoints of stream job {{ .Labels.job }} failed in ten '
        "minutes",
        "oal-platform",
        "Checkpoints",
        always=True,
    ),
    Rule(
        "oal-sink-retrying",
        "ClickHouse takes no rows",
        f"""SELECT instance, toFloat64(max(x.v['clickhouseRetryingSeconds'])) AS retrying_s
FROM oal.v_platform_reading(name = 'flink_gauge', {views(5)}) AS x \
WHERE mapContains(x.v, 'clickhouseRetryingSeconds') GROUP BY instance""",
        120,
        None,
        5,
        "2m",
        "critical",
        "The stream job has repeated one insert into ClickHouse for {{ humanizeDuration .Values.A.Value "
        "}} (TaskManager {{ .Labels.instance }})",
        "oal-platform",
        "Rows inserted",
        always=True,
    ),
    Rule(
        "oal-push-store",
        "Push service's store is away",
        f"""SELECT instance, toFloat64(argMax(if(x.value > 0, toUnixTimestamp(x.t) - x.value, 0), x.t)) AS away_s
FROM oal.v_platform_service_metric({views(5)}) AS x \
WHERE x.metric = 'oal_deploy_store_away_since_seconds' GROUP BY instance""",
        30,
        None,
        5,
        "1m",
        "critical",
        "The store of the push service at {{ .Labels.instance }} has not answered for {{ humanizeDuration"
        " .Values.A.Value }}",
        "oal-platform",
        "Push service",
        always=True,
    ),
    Rule(
        "oal-parts",
        "Parts explode",
        "SELECT table, toFloat64(max(x.parts_max_in_partition)) AS parts FROM"
        f" oal.v_platform_clickhouse_table({views(10)}) AS x GROUP BY table",
        500,
        None,
        10,
        "10m",
        "warning",
        "A partition of ClickHouse's table {{ .Labels.table }} has {{ printf \"%.0f\" .Values.A.Value }} "
        "parts",
        "oal-platform",
        "Tables",
        always=True,
    ),
    Rule(
        "oal-disk",
        "Disk is filling",
        f"""SELECT host, path, toFloat64(max(d.used)) AS used_ratio FROM (
  SELECT x.host AS host, x.path AS path, x.used_ratio AS used FROM oal.v_platform_host_disk({views(10)}) AS x
  UNION ALL
  SELECT y.instance AS host, concat('disk ', y.disk) AS path, y.used_ratio AS used
  FROM oal.v_platform_clickhouse_disk({views(10)}) AS y
) AS d WHERE isNotNull(d.used) GROUP BY host, path""",
        0.85,
        None,
        10,
        "10m",
        "critical",
        "{{ .Labels.path }} of {{ .Labels.host }} is {{ humanizePercentage .Values.A.Value }} full",
        "oal-platform",
        "Disks",
        always=True,
    ),
    Rule(
        "oal-certificates",
        "Certificate expires",
        "SELECT source, subject, toFloat64(argMax(x.days_left, x.t)) AS days FROM"
        f" oal.v_platform_certificate({views(60)}) AS x GROUP BY source, subject",
        None,
        14,
        60,
        "10m",
        "critical",
        'The certificate of {{ .Labels.subject }} ({{ .Labels.source }}) expires in {{ printf "%.0f" '
        ".Values.A.Value }} days",
        "oal-platform",
        "Certificates",
        always=True,
    ),
)
