-- An access point's minute of control. Counters are kept at their largest, per incarnation of the exporter, so that within a row they never
-- restart; `_first` is where the minute began. A gauge's mean is its sum over `rows`: a row comes every second, whatever changes.

CREATE TABLE IF NOT EXISTS control_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    boot_id UInt64 COMMENT 'Incarnation of the exporter',
    backend UInt8 COMMENT 'Backend: 0 none, 1 shadow, 2 ovs, 3 bpf',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows: seconds with a policy in force',
    shadow_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Those in shadow mode',
    enforce_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Those in enforce mode',
    killed_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Those with a kill switch on',
    clamped_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Those in enforce mode with a flow clamped',
    clamps_sum SimpleAggregateFunction(sum, UInt64) COMMENT 'Flows clamped, added up over rows',
    clamps_max SimpleAggregateFunction(max, UInt32) COMMENT 'Flows clamped, largest value',
    capacity_kbps_sum SimpleAggregateFunction(sum, UInt64) COMMENT 'Capacity in use, added up over rows that know it [kbit/s]',
    capacity_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows in that sum',
    queue_us_sum SimpleAggregateFunction(sum, UInt64) COMMENT 'Standing queue, added up over rows [us]',
    queue_us_max SimpleAggregateFunction(max, UInt32) COMMENT 'Standing queue, largest value [us]',
    steps SimpleAggregateFunction(max, UInt64) COMMENT 'Steps of the control law, counter' CODEC(Delta(8), ZSTD(1)),
    steps_first SimpleAggregateFunction(min, UInt64) COMMENT 'Steps of the control law, smallest value' CODEC(Delta(8), ZSTD(1)),
    sets SimpleAggregateFunction(max, UInt64) COMMENT 'Windows set, changed or renewed, counter' CODEC(Delta(8), ZSTD(1)),
    sets_first SimpleAggregateFunction(min, UInt64) COMMENT 'Windows set, changed or renewed, smallest value' CODEC(Delta(8), ZSTD(1)),
    set_errors SimpleAggregateFunction(max, UInt64) COMMENT 'Of these, those that failed, counter' CODEC(Delta(8), ZSTD(1)),
    set_errors_first SimpleAggregateFunction(min, UInt64) COMMENT 'Of these, those that failed, smallest value' CODEC(Delta(8), ZSTD(1)),
    releases SimpleAggregateFunction(max, UInt64) COMMENT 'Clamps given up, counter' CODEC(Delta(8), ZSTD(1)),
    releases_first SimpleAggregateFunction(min, UInt64) COMMENT 'Clamps given up, smallest value' CODEC(Delta(8), ZSTD(1)),
    guard_reverts SimpleAggregateFunction(max, UInt64) COMMENT 'Times that the guard took all clamps back, counter' CODEC(Delta(8), ZSTD(1)),
    guard_reverts_first SimpleAggregateFunction(min, UInt64) COMMENT 'Times that the guard took all clamps back, smallest value' CODEC(Delta(8), ZSTD(1)),
    acks_seen SimpleAggregateFunction(max, UInt64) COMMENT 'ACKs seen by the data path, counter' CODEC(Delta(8), ZSTD(1)),
    acks_seen_first SimpleAggregateFunction(min, UInt64) COMMENT 'ACKs seen by the data path, smallest value' CODEC(Delta(8), ZSTD(1)),
    acks_clamped SimpleAggregateFunction(max, UInt64) COMMENT 'ACKs whose window was lowered, counter' CODEC(Delta(8), ZSTD(1)),
    acks_clamped_first SimpleAggregateFunction(min, UInt64) COMMENT 'ACKs whose window was lowered, smallest value' CODEC(Delta(8), ZSTD(1)),
    acks_skipped SimpleAggregateFunction(max, UInt64) COMMENT 'ACKs of clamped flows that were left alone, counter' CODEC(Delta(8), ZSTD(1)),
    acks_skipped_first SimpleAggregateFunction(min, UInt64) COMMENT 'ACKs of clamped flows that were left alone, smallest value' CODEC(Delta(8), ZSTD(1)),
    step_max_ns SimpleAggregateFunction(max, UInt32) COMMENT 'Longest step of the control law [ns]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, toDate(t), boot_id, backend, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An AP\'s minute of control - counters at their largest, gauges added up';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_control_1m TO control_1m AS
SELECT
    ap_id, toStartOfMinute(ts) AS t, boot_id, backend, count() AS rows,
    countIf(c.mode = 1) AS shadow_rows, countIf(c.mode = 2) AS enforce_rows, countIf(c.killed > 0) AS killed_rows, countIf(c.mode = 2 AND c.clamps > 0) AS clamped_rows,
    sum(c.clamps) AS clamps_sum, max(c.clamps) AS clamps_max, sum(c.capacity_kbps) AS capacity_kbps_sum, countIf(c.capacity_kbps > 0) AS capacity_rows,
    sum(c.queue_us) AS queue_us_sum, max(c.queue_us) AS queue_us_max,
    max(c.steps) AS steps, min(c.steps) AS steps_first, max(c.sets) AS sets, min(c.sets) AS sets_first, max(c.set_errors) AS set_errors, min(c.set_errors) AS set_errors_first,
    max(c.releases) AS releases, min(c.releases) AS releases_first, max(c.guard_reverts) AS guard_reverts, min(c.guard_reverts) AS guard_reverts_first,
    max(c.acks_seen) AS acks_seen, min(c.acks_seen) AS acks_seen_first, max(c.acks_clamped) AS acks_clamped, min(c.acks_clamped) AS acks_clamped_first,
    max(c.acks_skipped) AS acks_skipped, min(c.acks_skipped) AS acks_skipped_first, max(c.step_max_ns) AS step_max_ns
FROM control AS c
GROUP BY ap_id, t, boot_id, backend;

-- What a bundle is, by its number: rows of control and decisions name only that. One row a bundle and month of its releases.
CREATE TABLE IF NOT EXISTS bundle_release
(
    bundle UInt64 COMMENT 'Bundle, first 8 bytes of its hash without the highest bit',
    t Date COMMENT 'First day of the month of the release',
    last SimpleAggregateFunction(max, Tuple(ts DateTime64(6, 'UTC'), source Int8, model String, version UInt32, policy String, policy_version UInt32)) COMMENT 'Its last release'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (bundle, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Releases by bundle - model and policy that a bundle carries';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_bundle_release TO bundle_release AS
SELECT
    bundle, toStartOfMonth(r.ts) AS t,
    max(tuple(r.ts, toInt8(r.source), r.model, r.version, r.policy, r.policy_version)::Tuple(ts DateTime64(6, 'UTC'), source Int8, model String, version UInt32, policy String, policy_version UInt32)) AS last
FROM release AS r
WHERE bundle > 0
GROUP BY bundle, t;
