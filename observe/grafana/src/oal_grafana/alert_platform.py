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
        "Look at Telegraf's log, then at ClickHouse. No other alert of this group can fire until it is back.",
        "oal-platform",
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
        "See what it said on the dashboard and in its log.",
        "oal-platform",
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
        "{{ .Values.A }} records of {{ .Labels.topic }} wait to be stored, for ten minutes at least",
        "See which Flink task is busy (raise parallelism) or whether ClickHouse is slow (parts, disk, memory). Data are"
        " lost when Kafka's retention ends.",
        "oal-platform",
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
        "{{ .Values.A }} records of {{ .Labels.topic }}-{{ .Labels.kafka_partition }} wait behind a transaction",
        "The last stable offset stands while records arrive: readers of committed ones, as the trainer, get nothing."
        " See the log of the service `transactions`, which ends what hangs (platform/kafka/README.md).",
        "oal-platform",
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
        "{{ .Labels.ap_id }} sends more to Kafka than it may, and waits",
        "Somebody else may use its certificate: look where it connects from, and `oal-deploy ctl revoke` it. If it is"
        " as busy as that, or plays several, give it more (platform/kafka/quotas.py); what its buffer does not hold is"
        " lost meanwhile.",
        "oal-platform",
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
        "{{ .Labels.component }} at {{ .Labels.instance }} refused {{ .Values.A }} records of ap.bundles.v1 in a"
        " quarter of an hour",
        "They are not signed by a trusted key, by one that may not sign such, or not readable: its log says which and"
        " why. Who may write the topic is in platform/kafka/topics.yaml; a key that was used is replaced"
        " (docs/upgrade.md).",
        "oal-platform",
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
        "Up to {{ .Values.A }} records of {{ .Labels.topic }} were aborted, because nobody knew whether they had been"
        " committed",
        "Items that `training.items.v1` lacks are in table `item`: batch training has them, the online trainer"
        " missed them. Look for what fenced the broker.",
        "oal-platform",
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
        "The trainer {{ .Labels.instance }} needs {{ .Values.A }} s for what waits, at the rate of ten minutes",
        "Stuck: see *Committed readers wait* and its log. Behind: add a replica, or fit less often"
        " (training/README.md).",
        "oal-platform",
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
        "{{ .Labels.job }} has restarted {{ .Values.A }} times in a quarter of an hour",
        "The JobManager's log names the exception; rows wait in Kafka meanwhile.",
        "oal-platform",
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
        "{{ .Values.A }} checkpoints of {{ .Labels.job }} failed in ten minutes",
        "No new row can be read while they fail. The JobManager's log names the operator; often ClickHouse or the"
        " checkpoint store is away.",
        "oal-platform",
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
        "The stream job has repeated an insert for {{ .Values.A }} s ({{ .Labels.instance }})",
        "The TaskManager's log has ClickHouse's words: a full disk, too many parts, a replica that is read-only, a"
        " server that is down. Rows wait in Kafka meanwhile and are lost when its retention ends. Errors 33, 246, 27"
        " after a full disk: free space, then restart ClickHouse at once (docs/troubleshoot.md).",
        "oal-platform",
        always=True,
    ),
    Rule(
        "oal-push-store", "Push service's store is away",
        f"""SELECT instance, toFloat64(argMax(if(x.value > 0, toUnixTimestamp(x.t) - x.value, 0), x.t)) AS away_s
FROM oal.v_platform_service_metric({views(5)}) AS x \
WHERE x.metric = 'oal_deploy_store_away_since_seconds' GROUP BY instance""", 30, None, 5, "1m", "critical",
        "The store of the push service at {{ .Labels.instance }} has not answered for {{ .Values.A }} s",
        "Look at PostgreSQL, or at the disk of an embedded store. Access points are served from memory; kills and"
        " revocations work, but `ctl kills` shows which are not stored and end with the replica's process. Nothing else"
        " can be changed (deploy/README.md, *When the store is away*).", "oal-platform", always=True
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
        "A partition of {{ .Labels.table }} has {{ .Values.A }} parts",
        "Inserts are delayed from 1,000 on. Lengthen the checkpoint interval, or see why merges do not keep up (disk).",
        "oal-platform",
        always=True,
    ),
    Rule(
        "oal-disk",
        "Disk is filling",
        f"""SELECT host, path, toFloat64(max(x.used_ratio)) AS used FROM oal.v_platform_host_disk({views(10)}) AS x \
GROUP BY host, path""",
        0.85,
        None,
        10,
        "10m",
        "critical",
        "{{ .Labels.path }} of {{ .Labels.host }} is {{ .Values.A }} full",
        "Shorten retention of the largest tables (*Tables*), or add disk. When it is full, inserts stop and Kafka's"
        " retention is all the time that is left.",
        "oal-platform",
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
        "The certificate of {{ .Labels.subject }} ({{ .Labels.source }}) expires in {{ .Values.A }} days",
        "Issue a new one (`platform/security/README.md`) and restart the service; access points renew theirs by"
        " themselves.",
        "oal-platform",
        always=True,
    ),
)
