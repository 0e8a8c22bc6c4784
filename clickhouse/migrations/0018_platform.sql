-- How the platform itself is: what Telegraf reads of every part of it (observe/telegraf), and of ClickHouse what it holds of Kafka.

-- A row is a reading: everything that one input said of one thing at one moment. Telegraf sends name, timestamp [ms], tags and fields; the rest follows
-- from these. Figures are kept by name in a map, because each input has its own and gets new ones with its version. Read by name and time, one series
-- after the other; `instance` is what was asked (host:port), or the machine where nothing was asked over a network.
CREATE TABLE IF NOT EXISTS platform_metric
(
    `ts` DateTime64(3, 'UTC') DEFAULT fromUnixTimestamp64Milli(timestamp, 'UTC') COMMENT 'Time of the reading' CODEC(DoubleDelta, ZSTD(1)),
    `name` LowCardinality(String) COMMENT 'What was read: kafka, jvm, health, …',
    `component` LowCardinality(String) DEFAULT tags['component'] COMMENT 'Part of the platform: kafka, jobmanager, taskmanager, clickhouse, mlflow, trainer, model-registry, push, grafana, host, certificate, telegraf',
    `instance` LowCardinality(String) DEFAULT coalesce(nullIf(extract(concat(tags['jolokia_agent_url'], tags['url'], tags['server']), '^[a-z]+://([^/]+)'), ''), tags['host']) COMMENT 'Which one: host:port that was asked, or the machine',
    `host` LowCardinality(String) DEFAULT tags['host'] COMMENT 'Machine that Telegraf ran on',
    `labels` Map(LowCardinality(String), String) DEFAULT mapFilter((k, v) -> k NOT IN ('component', 'host', 'jolokia_agent_url', 'url', 'server'), tags) COMMENT 'What tells the series of a name and instance apart: topic, task, device, …' CODEC(ZSTD(3)),
    `values` Map(LowCardinality(String), Float64) DEFAULT CAST(JSONExtractKeysAndValues(fields, 'Float64'), 'Map(LowCardinality(String), Float64)') COMMENT 'Figures by name, as the input calls them; true is 1' CODEC(ZSTD(3)),
    `texts` Map(LowCardinality(String), String) DEFAULT mapFilter((k, v) -> NOT mapContains(values, k), CAST(JSONExtractKeysAndValues(fields, 'String'), 'Map(LowCardinality(String), String)')) COMMENT 'What is no figure' CODEC(ZSTD(3)),
    `timestamp` Int64 EPHEMERAL COMMENT 'As Telegraf sends it [ms]',
    `tags` Map(String, String) EPHEMERAL COMMENT 'As Telegraf sends them',
    `fields` String EPHEMERAL COMMENT 'As Telegraf sends them, JSON',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row' CODEC(Delta(8), ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (name, toStartOfHour(ts), component, instance, cityHash64(toString(labels)), ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'What Telegraf reads of every part of the platform';

-- How far each partition of Kafka is stored, by minute of the insertion. From this and the broker's log ends follows the lag, whatever the stream job says.
CREATE TABLE IF NOT EXISTS stored_offset_1m
(
    topic LowCardinality(String) COMMENT 'Kafka topic',
    kafka_partition UInt16 COMMENT 'Partition',
    t DateTime('UTC') COMMENT 'Minute of the insertion' CODEC(Delta(4), ZSTD(1)),
    next_offset SimpleAggregateFunction(max, UInt64) COMMENT 'One more than the largest offset that became a row or a dead letter' CODEC(Delta(8), ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (topic, kafka_partition, t)
TTL t + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'How far each partition of Kafka is stored';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_stored_offset_1m_of_batches TO stored_offset_1m AS
SELECT topic, kafka_partition, toStartOfMinute(now('UTC')) AS t, max(kafka_offset) + 1 AS next_offset FROM batch GROUP BY topic, kafka_partition;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_stored_offset_1m_of_dead_letters TO stored_offset_1m AS
SELECT topic, kafka_partition, toStartOfMinute(now('UTC')) AS t, max(kafka_offset) + 1 AS next_offset FROM dead_letter GROUP BY topic, kafka_partition;

-- Every view below is of the time between `from` and `to`, to exclusive; a row is a reading.

-- Any figure, one a row: v_platform_metric(from = …, to = …, name = 'jvm').
CREATE OR REPLACE VIEW v_platform_metric AS
SELECT ts AS t, component, instance, host, labels, field, value
FROM platform_metric
ARRAY JOIN mapKeys(values) AS field, mapValues(values) AS value
WHERE name = {name:String} AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')};

-- The readings of a name with what they grew by since the series' reading before: `v`, `grown` and `per_s` by field, NULL for a field that is not there
-- and, of the latter two, at a reading that follows none of the last five minutes. What became smaller began again from 0.
CREATE OR REPLACE VIEW v_platform_reading AS
SELECT
    t, component, instance, host, labels, texts, CAST(now, 'Map(String, Nullable(Float64))') AS v,
    CAST(mapApply((k, x) -> (k, if(x >= before[k], x - before[k], x)), mapFilter((k, x) -> span_s > 0 AND span_s <= 300 AND mapContains(before, k), now)), 'Map(String, Nullable(Float64))') AS grown,
    mapApply((k, x) -> (k, x / span_s), grown) AS per_s
FROM
(
    SELECT
        ts AS t, component, instance, host, labels, texts, values AS now, lagInFrame(values) OVER series AS before,
        dateDiff('millisecond', lagInFrame(ts) OVER series, ts) / 1000 AS span_s
    FROM platform_metric
    WHERE name = {name:String} AND ts >= {from:DateTime64(6, 'UTC')} - INTERVAL 5 MINUTE AND ts < {to:DateTime64(6, 'UTC')}
    WINDOW series AS (PARTITION BY component, instance, host, toString(labels) ORDER BY ts)
)
WHERE t >= {from:DateTime64(6, 'UTC')};

-- Is each part there, and how long did it take to say so? `said` is the HTTP status, or what went wrong.
CREATE OR REPLACE VIEW v_platform_health AS
SELECT
    ts AS t, component, instance, toUInt8(mapContains(values, 'result_code') AND values['result_code'] = 0) AS up,
    if(mapContains(values, 'response_time'), round(values['response_time'] * 1000, 3), NULL) AS latency_ms,
    if(up OR texts['result_type'] IN ('response_status_code_mismatch', ''), toString(toUInt16(values['http_response_code'])), texts['result_type']) AS said
FROM platform_metric
WHERE name = 'health' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')};

-- The same now: of each part that was asked in the last ten minutes, the newest answer.
CREATE OR REPLACE VIEW v_platform_health_now AS
SELECT component, instance, last.2 AS up, last.3 AS latency_ms, last.4 AS said, last.1 AS last_reading, dateDiff('second', last_reading, now64(3, 'UTC')) AS age_s, up_ratio_10m
FROM
(
    SELECT component, instance, max(tuple(t, h.up, h.latency_ms, h.said)) AS last, round(avg(h.up), 4) AS up_ratio_10m
    FROM {database}.v_platform_health(from = now() - INTERVAL 10 MINUTE, to = now() + INTERVAL 1 MINUTE) AS h
    GROUP BY component, instance
)
ORDER BY up, component, instance;

-- Brokers.
CREATE OR REPLACE VIEW v_platform_kafka AS
SELECT
    r.t AS t, r.instance AS instance, r.per_s['MessagesInPerSec'] AS messages_in_per_s, r.per_s['BytesInPerSec'] AS bytes_in_per_s, r.per_s['BytesOutPerSec'] AS bytes_out_per_s,
    q.requests AS requests_per_s, r.per_s['FailedProduceRequestsPerSec'] AS produce_failed_per_s, r.per_s['FailedFetchRequestsPerSec'] AS fetch_failed_per_s,
    r.v['UnderReplicatedPartitions'] AS under_replicated_partitions, r.v['UnderMinIsrPartitionCount'] AS under_min_isr_partitions, r.v['OfflinePartitionsCount'] AS offline_partitions,
    r.v['ActiveControllerCount'] AS active_controllers, r.v['PartitionCount'] AS partitions, r.v['RequestHandlerAvgIdlePercent'] AS handler_idle_ratio,
    r.v['NetworkProcessorAvgIdlePercent'] AS network_idle_ratio, r.v['RequestQueueSize'] AS request_queue_size, l.refused AS auth_failed_per_s, l.open AS connections
FROM {database}.v_platform_reading(name = 'kafka', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS r
LEFT JOIN
(
    SELECT t, instance, sum(per_s['Count']) AS requests
    FROM {database}.v_platform_reading(name = 'kafka_request', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) GROUP BY t, instance
) AS q ON r.t = q.t AND r.instance = q.instance
LEFT JOIN
(
    SELECT t, instance, sum(per_s['failed-authentication-total']) AS refused, sum(v['connection-count']) AS open
    FROM {database}.v_platform_reading(name = 'kafka_listener', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) GROUP BY t, instance
) AS l ON r.t = l.t AND r.instance = l.instance;

-- Time of requests, since the broker's start with the newest weighing most; a fetch waits for data.
CREATE OR REPLACE VIEW v_platform_kafka_request AS
SELECT t, instance, labels['request'] AS request, per_s['Count'] AS requests_per_s, v['Mean'] AS mean_ms, v['99thPercentile'] AS p99_ms, v['Max'] AS max_ms
FROM {database}.v_platform_reading(name = 'kafka_request', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')});

-- Topics, on each broker; a topic that nobody has used since the broker's start has a log and no traffic.
CREATE OR REPLACE VIEW v_platform_kafka_topic AS
SELECT
    p.t AS t, p.instance AS instance, p.topic AS topic, r.messages_in_per_s AS messages_in_per_s, r.bytes_in_per_s AS bytes_in_per_s, r.bytes_out_per_s AS bytes_out_per_s,
    p.log_bytes AS log_bytes, p.log_end_offset AS log_end_offset
FROM
(
    SELECT ts AS t, instance, labels['topic'] AS topic, sum(values['Size']) AS log_bytes, sum(values['LogEndOffset']) AS log_end_offset
    FROM platform_metric
    WHERE name = 'kafka_partition' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY t, instance, topic
) AS p
LEFT JOIN
(
    SELECT
        t, instance, labels['topic'] AS topic, per_s['MessagesInPerSec'] AS messages_in_per_s, per_s['BytesInPerSec'] AS bytes_in_per_s, per_s['BytesOutPerSec'] AS bytes_out_per_s
    FROM {database}.v_platform_reading(name = 'kafka_topic', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
) AS r ON p.t = r.t AND p.instance = r.instance AND p.topic = r.topic;

-- Lag as each consumer says it; one that is dead says nothing.
CREATE OR REPLACE VIEW v_platform_lag AS
SELECT
    t, 'stream-jobs' AS consumer, instance, transform(operator, ['Source-_kafka-_batches', 'Source-_kafka-_platform_events', 'Source-_kafka-_access'],
        ['ap.samples.v1, ap.packets.v1, ap.events.v1', 'platform.events.v1', 'ap.access.v1'], operator) AS topic, sum(pending) AS lag_records
FROM
(
    SELECT ts AS t, instance, labels['operator_name'] AS operator, values['pendingRecords'] AS pending
    FROM platform_metric
    WHERE name = 'flink_operator' AND mapContains(values, 'pendingRecords') AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
)
GROUP BY t, instance, operator
UNION ALL
SELECT
    ts AS t, component AS consumer, instance, transform(field, ['oal_deploy_kafka_lag_records', 'oal_deploy_neighbour_lag_records', 'oal_deploy_access_lag_records', 'oal_trainer_lag_items'],
        ['ap.bundles.v1', 'ap.neighbours.v1', 'ap.access.v1', 'training.items.v1'], '') AS topic, value AS lag_records
FROM platform_metric
ARRAY JOIN mapKeys(values) AS field, mapValues(values) AS value
WHERE name = 'service' AND field IN ('oal_deploy_kafka_lag_records', 'oal_deploy_neighbour_lag_records', 'oal_deploy_access_lag_records', 'oal_trainer_lag_items') AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')};

-- Lag of what access points send, by minute: what the broker holds and no table does. True also while the job is dead.
CREATE OR REPLACE VIEW v_platform_stored_lag AS
SELECT t, topic, sum(log_end) AS log_end_offset, sum(least(stored, log_end)) AS stored_offset, sum(log_end - least(log_end, greatest(stored, log_start))) AS lag_records
FROM
(
    SELECT topic, kafka_partition, t, read, log_end, log_start, max(next_offset) OVER (PARTITION BY topic, kafka_partition ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS stored
    FROM
    (
        SELECT topic, kafka_partition, t, max(read) AS read, max(log_end) AS log_end, max(log_start) AS log_start, max(next_offset) AS next_offset
        FROM
        (
            SELECT labels['topic'] AS topic, toUInt16(labels['partition']) AS kafka_partition, toStartOfMinute(toDateTime(ts, 'UTC')) AS t, 1 AS read,
                toUInt64(values['LogEndOffset']) AS log_end, toUInt64(values['LogStartOffset']) AS log_start, toUInt64(0) AS next_offset
            FROM platform_metric
            WHERE name = 'kafka_partition' AND labels['topic'] IN ('ap.samples.v1', 'ap.packets.v1', 'ap.events.v1') AND ts >= toStartOfMinute({from:DateTime64(6, 'UTC')}) AND ts < {to:DateTime64(6, 'UTC')}
            UNION ALL
            SELECT topic, kafka_partition, greatest(t, toStartOfMinute(toDateTime({from:DateTime64(6, 'UTC')}, 'UTC'))) AS t, 0, toUInt64(0), toUInt64(0), s.next_offset
            FROM stored_offset_1m AS s
            WHERE t < {to:DateTime64(6, 'UTC')}
        )
        GROUP BY topic, kafka_partition, t
    )
)
WHERE read
GROUP BY t, topic
ORDER BY t, topic;

-- The job and the cluster it runs on. `uptime_s` is 0 while the job restarts.
CREATE OR REPLACE VIEW v_platform_flink_job AS
SELECT
    r.t AS t, r.instance AS instance, r.labels['job_name'] AS job, r.v['numRestarts'] AS restarts, r.grown['numRestarts'] AS new_restarts, r.v['uptime'] / 1000 AS uptime_s,
    r.v['numberOfCompletedCheckpoints'] AS checkpoints_completed, r.grown['numberOfCompletedCheckpoints'] AS new_checkpoints_completed,
    r.v['numberOfFailedCheckpoints'] AS checkpoints_failed, r.grown['numberOfFailedCheckpoints'] AS new_checkpoints_failed, r.v['numberOfInProgressCheckpoints'] AS checkpoints_in_progress,
    r.v['lastCheckpointDuration'] AS checkpoint_ms, r.v['lastCheckpointSize'] AS checkpoint_bytes, r.v['lastCheckpointFullSize'] AS checkpoint_full_bytes,
    c.v['numRegisteredTaskManagers'] AS taskmanagers, c.v['taskSlotsTotal'] AS slots, c.v['taskSlotsAvailable'] AS slots_free
FROM {database}.v_platform_reading(name = 'flink_job', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS r
LEFT JOIN {database}.v_platform_reading(name = 'flink_cluster', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS c ON r.t = c.t AND r.instance = c.instance;

-- What tasks do with their time: a task that is back-pressured waits for one further down that is busy.
CREATE OR REPLACE VIEW v_platform_flink_task AS
SELECT
    t, instance, labels['task_name'] AS task, toUInt16OrZero(labels['subtask_index']) AS subtask, v['busyTimeMsPerSecond'] / 1000 AS busy_ratio, v['backPressuredTimeMsPerSecond'] / 1000 AS backpressured_ratio,
    v['idleTimeMsPerSecond'] / 1000 AS idle_ratio, per_s['numRecordsIn'] AS records_in_per_s, per_s['numRecordsOut'] AS records_out_per_s,
    per_s['numBytesIn'] AS bytes_in_per_s, per_s['numBytesOut'] AS bytes_out_per_s, v['checkpointAlignmentTime'] / 1e6 AS checkpoint_alignment_ms
FROM {database}.v_platform_reading(name = 'flink_task', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')});

-- Operators. A watermark is NULL before the first. `event_time_lag_s` is the age of what the source gave out last; `pending_records` is in Kafka and not read.
CREATE OR REPLACE VIEW v_platform_flink_operator AS
SELECT
    t, instance, labels['operator_name'] AS operator, toUInt16OrZero(labels['subtask_index']) AS subtask, per_s['numRecordsIn'] AS records_in_per_s, per_s['numRecordsOut'] AS records_out_per_s,
    if(v['currentOutputWatermark'] > 0 AND v['currentOutputWatermark'] < 4e12, fromUnixTimestamp64Milli(toInt64(ifNull(v['currentOutputWatermark'], 0)), 'UTC'), NULL) AS watermark,
    dateDiff('millisecond', watermark, t) / 1000 AS watermark_lag_s, if(v['currentEmitEventTimeLag'] >= 0, v['currentEmitEventTimeLag'] / 1000, NULL) AS event_time_lag_s,
    v['pendingRecords'] AS pending_records, c.late AS late_records, per_s['numRecordsInErrors'] AS errors_per_s
FROM {database}.v_platform_reading(name = 'flink_operator', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS r
LEFT JOIN
(
    SELECT ts, instance, labels['operator_name'] AS operator, labels['subtask_index'] AS subtask, if(mapContains(values, 'late'), values['late'], NULL) AS late
    FROM platform_metric
    WHERE name = 'flink_counter' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
) AS c ON r.t = c.ts AND r.instance = c.instance AND r.labels['operator_name'] = c.operator AND r.labels['subtask_index'] = c.subtask;

-- What the job counts itself, over all subtasks; of `revokedAps` and `macKeys` every subtask says the same. `per_s` is NULL for a gauge.
CREATE OR REPLACE VIEW v_platform_flink_counter AS
SELECT t, operator, counter, if(counter IN ('revokedAps', 'macKeys'), max(value), sum(value)) AS value, sum(rate) AS per_s
FROM
(
    SELECT t, labels['operator_name'] AS operator, counter, value, per_s[counter] AS rate
    FROM {database}.v_platform_reading(name = 'flink_counter', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
    ARRAY JOIN mapKeys(v) AS counter, mapValues(v) AS value
    UNION ALL
    SELECT t, labels['operator_name'] AS operator, counter, value, NULL AS rate
    FROM {database}.v_platform_reading(name = 'flink_gauge', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
    ARRAY JOIN mapKeys(v) AS counter, mapValues(v) AS value
)
GROUP BY t, operator, counter;

-- JVMs of Kafka and Flink.
CREATE OR REPLACE VIEW v_platform_jvm AS
SELECT
    j.t AS t, j.component AS component, j.instance AS instance, j.v['HeapMemoryUsage.used'] AS heap_used_bytes, j.v['HeapMemoryUsage.max'] AS heap_max_bytes,
    heap_used_bytes / nullIf(heap_max_bytes, 0) AS heap_used_ratio, j.v['NonHeapMemoryUsage.used'] AS non_heap_used_bytes, g.gc_ratio AS gc_ratio, g.gcs_per_s AS gcs_per_s, j.v['ThreadCount'] AS threads,
    j.per_s['ProcessCpuTime'] / 1e9 AS cpu_ratio, j.v['OpenFileDescriptorCount'] AS open_files, j.v['MaxFileDescriptorCount'] AS open_files_max
FROM {database}.v_platform_reading(name = 'jvm', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS j
LEFT JOIN
(
    SELECT t, component, instance, sum(per_s['CollectionTime']) / 1000 AS gc_ratio, sum(per_s['CollectionCount']) AS gcs_per_s
    FROM {database}.v_platform_reading(name = 'jvm_gc', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) GROUP BY t, component, instance
) AS g ON j.t = g.t AND j.component = g.component AND j.instance = g.instance;

-- ClickHouse servers. Times are means over what ended since the reading before.
CREATE OR REPLACE VIEW v_platform_clickhouse AS
SELECT
    r.t AS t, r.instance AS instance, per_s['event_Query'] AS queries_per_s, per_s['event_SelectQuery'] AS selects_per_s, per_s['event_InsertQuery'] AS inserts_per_s,
    per_s['event_InsertedRows'] AS inserted_rows_per_s, per_s['event_InsertedBytes'] AS inserted_bytes_per_s, per_s['event_FailedQuery'] AS failed_queries_per_s,
    per_s['event_FailedSelectQuery'] AS failed_selects_per_s, per_s['event_FailedInsertQuery'] AS failed_inserts_per_s, per_s['event_DelayedInserts'] AS delayed_inserts_per_s,
    per_s['event_RejectedInserts'] AS rejected_inserts_per_s, grown['event_SelectQueryTimeMicroseconds'] / nullIf(grown['event_SelectQuery'], 0) / 1000 AS select_ms,
    grown['event_InsertQueryTimeMicroseconds'] / nullIf(grown['event_InsertQuery'], 0) / 1000 AS insert_ms, v['metric_Query'] AS running_queries, v['metric_Merge'] AS merges,
    per_s['event_MergedRows'] AS merged_rows_per_s, p.parts AS parts, p.parts_max_in_partition AS parts_max_in_partition, v['metric_MemoryTracking'] AS memory_bytes,
    nullIf(v['memory_limit_bytes'], 0) AS memory_limit_bytes, v['uptime_s'] AS uptime_s, v['metric_HTTPConnection'] + v['metric_TCPConnection'] AS connections
FROM {database}.v_platform_reading(name = 'clickhouse', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS r
LEFT JOIN
(
    SELECT ts, instance, sum(values['parts']) AS parts, max(values['parts_max_in_partition']) AS parts_max_in_partition
    FROM platform_metric
    WHERE name = 'clickhouse_table' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY ts, instance
) AS p ON r.t = p.ts AND r.instance = p.instance;

CREATE OR REPLACE VIEW v_platform_clickhouse_table AS
SELECT
    ts AS t, instance, labels['table'] AS table, values['parts'] AS parts, values['parts_max_in_partition'] AS parts_max_in_partition, values['partitions'] AS partitions, values['rows'] AS rows,
    values['bytes'] AS bytes
FROM platform_metric
WHERE name = 'clickhouse_table' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')};

CREATE OR REPLACE VIEW v_platform_clickhouse_disk AS
SELECT ts AS t, instance, labels['disk'] AS disk, values['total_bytes'] AS total_bytes, values['free_bytes'] AS free_bytes, 1 - free_bytes / nullIf(total_bytes, 0) AS used_ratio
FROM platform_metric
WHERE name = 'clickhouse_disk' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')};

CREATE OR REPLACE VIEW v_platform_clickhouse_error AS
SELECT t, instance, labels['error'] AS error, v['total'] AS total, grown['total'] AS new_errors
FROM {database}.v_platform_reading(name = 'clickhouse_error', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')});

CREATE OR REPLACE VIEW v_platform_clickhouse_mutation AS
SELECT t, instance, v['mutations'] AS mutations, v['mutations_failed'] AS mutations_failed, v['metric_ReadonlyReplica'] AS replicas_readonly, v['replication_lag_s'] AS replication_lag_s
FROM {database}.v_platform_reading(name = 'clickhouse', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')});

-- Machines. Telegraf says the parts of one reading in several rows.
CREATE OR REPLACE VIEW v_platform_host AS
SELECT
    ts AS t, host, figures['usage_active'] / 100 AS cpu_ratio, figures['usage_iowait'] / 100 AS cpu_iowait_ratio, figures['n_cpus'] AS cpus, figures['load1'] AS load1,
    figures['mem.total'] AS memory_total_bytes, figures['mem.available'] AS memory_available_bytes, 1 - memory_available_bytes / nullIf(memory_total_bytes, 0) AS memory_used_ratio,
    figures['swap.used'] AS swap_used_bytes, figures['uptime'] AS uptime_s
FROM
(
    SELECT ts, host, CAST(maxMap(mapApply((k, x) -> (if(name IN ('mem', 'swap'), concat(toString(name), '.', toString(k)), toString(k)), x), values)), 'Map(String, Nullable(Float64))') AS figures
    FROM platform_metric
    WHERE name IN ('cpu', 'mem', 'swap', 'system') AND component = 'host' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY ts, host
);

CREATE OR REPLACE VIEW v_platform_host_disk AS
SELECT
    ts AS t, host, labels['path'] AS path, labels['device'] AS device, values['total'] AS total_bytes, values['used'] AS used_bytes, values['free'] AS free_bytes,
    used_bytes / nullIf(used_bytes + free_bytes, 0) AS used_ratio, values['inodes_used_percent'] / 100 AS inodes_used_ratio
FROM platform_metric
WHERE name = 'disk' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')};

CREATE OR REPLACE VIEW v_platform_host_io AS
SELECT
    t, host, labels['name'] AS device, per_s['read_bytes'] AS read_bytes_per_s, per_s['write_bytes'] AS written_bytes_per_s, per_s['reads'] AS reads_per_s, per_s['writes'] AS writes_per_s,
    per_s['io_time'] / 1000 AS busy_ratio
FROM {database}.v_platform_reading(name = 'diskio', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')});

CREATE OR REPLACE VIEW v_platform_host_net AS
SELECT
    t, host, labels['interface'] AS interface, per_s['bytes_recv'] AS rx_bytes_per_s, per_s['bytes_sent'] AS tx_bytes_per_s, per_s['drop_in'] AS rx_drops_per_s, per_s['drop_out'] AS tx_drops_per_s,
    per_s['err_in'] AS rx_errors_per_s, per_s['err_out'] AS tx_errors_per_s
FROM {database}.v_platform_reading(name = 'net', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')});

-- Every figure of the services that speak Prometheus' text: push, trainer, model-registry.
CREATE OR REPLACE VIEW v_platform_service_metric AS
SELECT t, component, instance, metric, labels, value, per_s[metric] AS per_s
FROM {database}.v_platform_reading(name = 'service', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
ARRAY JOIN mapKeys(v) AS metric, mapValues(v) AS value;

-- The push service; a counter with labels is the sum over them.
CREATE OR REPLACE VIEW v_platform_push AS
SELECT
    t, instance, v['oal_deploy_connected_aps'] AS aps_connected, v['oal_deploy_known_aps'] AS aps_known, v['oal_deploy_ap_connections'] AS connections, v['oal_deploy_kills'] AS kills,
    v['oal_deploy_killed_aps'] AS killed_aps, v['oal_deploy_killed_aps_unheard'] AS killed_aps_unheard, v['oal_deploy_leader'] AS leader, v['oal_deploy_rollouts_active'] AS rollouts_active,
    rate['oal_deploy_bundles_sent_total'] AS bundles_sent_per_s, rate['oal_deploy_bundle_bytes_sent_total'] AS bundle_bytes_sent_per_s, rate['oal_deploy_denied_total'] AS denied_per_s,
    rate['oal_deploy_releases_refused_total'] AS releases_refused_per_s, rate['oal_deploy_errors_total'] AS errors_per_s, v['oal_deploy_events_pending'] AS events_pending,
    v['oal_deploy_revoked_aps'] AS revoked_aps, v['oal_deploy_ap_certificates_ending'] AS ap_certificates_ending,
    if(v['oal_deploy_ap_certificate_first_not_after_seconds'] > 0, toDateTime(toUInt32(ifNull(v['oal_deploy_ap_certificate_first_not_after_seconds'], 0)), 'UTC'), NULL) AS first_ap_certificate_expires,
    v['oal_deploy_access_pending'] AS access_pending, v['oal_deploy_open_tickets'] AS open_tickets, rate['oal_deploy_admin_refused_total'] AS admin_refused_per_s,
    v['oal_deploy_kafka_lag_records'] AS kafka_lag_records, v['process_resident_memory_bytes'] AS memory_bytes, rate['process_cpu_seconds_total'] AS cpu_ratio
FROM
(
    SELECT t, instance, CAST(sumMap(m.values), 'Map(String, Nullable(Float64))') AS v, CAST(sumMap(m.rates), 'Map(String, Nullable(Float64))') AS rate
    FROM
    (
        SELECT t, instance, CAST(r.v, 'Map(String, Float64)') AS values, CAST(r.per_s, 'Map(String, Float64)') AS rates
        FROM {database}.v_platform_reading(name = 'service', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS r
        WHERE component = 'push'
    ) AS m
    GROUP BY t, instance
);

CREATE OR REPLACE VIEW v_platform_trainer AS
SELECT
    t, instance, v['oal_trainer_aps'] AS aps, v['oal_trainer_window_items'] AS window_items, v['oal_trainer_lag_items'] AS lag_items, v['oal_trainer_tick_seconds'] AS tick_s,
    rate['oal_trainer_items_total'] AS items_per_s, rate['oal_trainer_fits_total'] AS fits_per_s, rate['oal_trainer_fit_cpu_seconds_total'] AS fit_cpu_ratio,
    rate['oal_trainer_decisions_total'] AS decisions_per_s, v['oal_trainer_ships_total'] AS ships, more['oal_trainer_ships_total'] AS new_ships, v['oal_trainer_policies_wrong'] AS policies_wrong,
    v['oal_trainer_releases_refused_total'] AS releases_refused, rate['oal_trainer_mlflow_dropped_total'] AS mlflow_dropped_per_s
FROM
(
    SELECT t, instance, CAST(sumMap(m.values), 'Map(String, Nullable(Float64))') AS v, CAST(sumMap(m.rates), 'Map(String, Nullable(Float64))') AS rate, CAST(sumMap(m.increases), 'Map(String, Nullable(Float64))') AS more
    FROM
    (
        SELECT t, instance, CAST(r.v, 'Map(String, Float64)') AS values, CAST(r.per_s, 'Map(String, Float64)') AS rates, CAST(r.grown, 'Map(String, Float64)') AS increases
        FROM {database}.v_platform_reading(name = 'service', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS r
        WHERE component = 'trainer'
    ) AS m
    GROUP BY t, instance
);

CREATE OR REPLACE VIEW v_platform_registry AS
SELECT
    t, instance, max(v['oal_registry_problems']) AS problems, sum(v['oal_registry_releases_total']) AS releases, sum(grown['oal_registry_releases_total']) AS new_releases,
    max(v['oal_registry_refused_versions_total']) AS refused_versions, max(v['oal_registry_retrain_running']) AS retrain_running,
    sumIf(v['oal_registry_retrains_total'], labels['result'] = 'failed') AS retrains_failed,
    sumIf(per_s['oal_registry_reconciles_total'], labels['result'] NOT IN ('', 'done')) AS reconciles_failed_per_s,
    sumIf(per_s['oal_registry_webhooks_total'], labels['result'] NOT IN ('', 'accepted')) AS webhooks_refused_per_s,
    toUnixTimestamp64Milli(t) / 1000 - nullIf(max(v['oal_registry_last_reconcile_timestamp_seconds']), 0) AS last_reconcile_age_s
FROM {database}.v_platform_reading(name = 'service', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
WHERE component = 'model-registry'
GROUP BY t, instance;

-- When certificates end: files, and what listeners show.
CREATE OR REPLACE VIEW v_platform_certificate AS
SELECT
    ts AS t, labels['source'] AS source, labels['common_name'] AS subject, toDateTime(toUInt32(values['enddate']), 'UTC') AS expires,
    round(dateDiff('second', toDateTime(ts, 'UTC'), expires) / 86400, 3) AS days_left
FROM platform_metric
WHERE name = 'x509_cert' AND ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')};

CREATE OR REPLACE VIEW v_platform_certificate_now AS
SELECT source, subject, argMax(c.expires, c.t) AS expires, argMax(c.days_left, c.t) AS days_left
FROM {database}.v_platform_certificate(from = now() - INTERVAL 1 HOUR, to = now() + INTERVAL 1 MINUTE) AS c
GROUP BY source, subject
ORDER BY days_left;

-- Telegraf itself: rows that it dropped are missing in all of the above.
CREATE OR REPLACE VIEW v_platform_telegraf AS
SELECT
    a.t AS t, a.host AS host, a.per_s['metrics_gathered'] AS gathered_per_s, w.per_s['metrics_written'] AS written_per_s, w.per_s['metrics_dropped'] AS dropped_per_s,
    w.v['metrics_dropped'] AS dropped, w.v['metrics_rejected'] AS rejected, a.per_s['gather_errors'] AS gather_errors_per_s, w.v['buffer_size'] AS buffer_rows, w.v['buffer_limit'] AS buffer_limit,
    buffer_rows / nullIf(buffer_limit, 0) AS buffer_ratio, m.v['sys_bytes'] AS memory_bytes
FROM {database}.v_platform_reading(name = 'internal_agent', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS a
LEFT JOIN {database}.v_platform_reading(name = 'internal_write', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS w ON a.t = w.t AND a.host = w.host
LEFT JOIN {database}.v_platform_reading(name = 'internal_memstats', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS m ON a.t = m.t AND a.host = m.host;

CREATE OR REPLACE VIEW v_platform_telegraf_input AS
SELECT t, host, labels['input'] AS input, per_s['metrics_gathered'] AS gathered_per_s, v['gather_time_ns'] / 1e6 AS gather_ms, per_s['errors'] AS errors_per_s
FROM {database}.v_platform_reading(name = 'internal_gather', from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')});
