-- Control on the access points: windows that were set and why, the control's own counters, and what access points were told of those
-- that share their channel. Column lists are copies of schema/generated/clickhouse/*.columns.sql.

-- Read by AP and time: what was clamped, and why. A few rows a second of an AP that acts, none of one that does not.
CREATE TABLE IF NOT EXISTS rewrite
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `flow_id` UInt64 COMMENT 'Flow: 64-bit FNV-1a as in FlowDictionary, without the highest bit' CODEC(ZSTD(1)),
    `backend` UInt8 COMMENT 'What carries it out: policy.rewrite_backends (1 shadow: nothing was written)' CODEC(ZSTD(1)),
    `mac` UInt64 COMMENT 'Station that carries the flow; 0 while unknown' CODEC(ZSTD(1)),
    `bundle` UInt64 COMMENT 'Bundle whose policy says so: first 8 bytes of its hash, big-endian, without the highest bit' CODEC(ZSTD(1)),
    `class` UInt8 COMMENT 'Predicted class at that moment: 0 Good … 3 Bad; 255: none' CODEC(ZSTD(1)),
    `reason` UInt8 COMMENT 'Why: policy.rewrite_reasons' CODEC(ZSTD(1)),
    `capacity_kbps` UInt32 COMMENT 'Capacity C(t) of the access point that was divided [kbit/s]' CODEC(ZSTD(1)),
    `share_kbps` UInt32 COMMENT 'The flow\'s share of it [kbit/s]' CODEC(ZSTD(1)),
    `rate_kbps` UInt32 COMMENT 'The flow\'s delivery rate [kbit/s]' CODEC(ZSTD(1)),
    `cwnd_bytes` UInt32 COMMENT 'The sender\'s congestion window as estimated [B]' CODEC(ZSTD(1)),
    `queue_us` UInt32 COMMENT 'Standing queue at that moment [us]' CODEC(ZSTD(1)),
    `window_bytes` UInt32 COMMENT 'Window that ACKs carry from here on, at most; 0: the clamp was given up [B]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A window that was set, changed by more than an eighth, or given up, and why. Renewals of the same window are not rows';

-- Read by AP and time; one row a second. Per minute through control_1m.
CREATE TABLE IF NOT EXISTS control
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `backend` UInt8 COMMENT 'Backend: policy.rewrite_backends' CODEC(ZSTD(1)),
    `mode` UInt8 COMMENT 'What is in force: 0 off, 1 shadow, 2 enforce; the least of policy, AP and kill switch' CODEC(ZSTD(1)),
    `killed` UInt8 COMMENT '1: a kill switch is on (push service\'s or the AP\'s)' CODEC(ZSTD(1)),
    `clamps` UInt32 COMMENT 'Flows clamped now' CODEC(T64, ZSTD(1)),
    `capacity_kbps` UInt32 COMMENT 'Capacity C(t) in use now; 0 unknown [kbit/s]' CODEC(T64, ZSTD(1)),
    `queue_us` UInt32 COMMENT 'Standing queue now [us]' CODEC(T64, ZSTD(1)),
    `steps` UInt64 COMMENT 'Steps of the control law' CODEC(Delta(8), ZSTD(1)),
    `sets` UInt64 COMMENT 'Windows set or changed, and renewed' CODEC(Delta(8), ZSTD(1)),
    `set_errors` UInt64 COMMENT 'Of these, those that the backend refused or that failed' CODEC(Delta(8), ZSTD(1)),
    `releases` UInt64 COMMENT 'Clamps given up' CODEC(Delta(8), ZSTD(1)),
    `guard_reverts` UInt64 COMMENT 'Times that the guard took all clamps back' CODEC(Delta(8), ZSTD(1)),
    `acks_seen` UInt64 COMMENT 'ACKs seen by the data path, where it counts them (bpf); 0 elsewhere [pkt]' CODEC(Delta(8), ZSTD(1)),
    `acks_clamped` UInt64 COMMENT 'ACKs whose window it lowered [pkt]' CODEC(Delta(8), ZSTD(1)),
    `acks_skipped` UInt64 COMMENT 'ACKs that it left alone although their flow was clamped [pkt]' CODEC(Delta(8), ZSTD(1)),
    `step_max_ns` UInt32 COMMENT 'Longest step of the control law in this second [ns]' CODEC(T64, ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'The control\'s and the rewrite\'s own counters, once a second while a policy is in force. They run since the exporter\'s start';

-- Read by AP and neighbour. A row of each neighbour in every batch: four a second.
CREATE TABLE IF NOT EXISTS neighbour_ap
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `neighbour` UInt64 COMMENT 'The neighbour: 64-bit FNV-1a over its ap_id, without the highest bit' CODEC(ZSTD(1)),
    `frequency_mhz` UInt16 COMMENT 'Its channel [MHz]' CODEC(ZSTD(1)),
    `stations` UInt16 COMMENT 'Stations that had traffic in the second that this is about' CODEC(T64, ZSTD(1)),
    `tx_kbps` UInt32 COMMENT 'Down-link rate [kbit/s]' CODEC(T64, ZSTD(1)),
    `tx_airtime_permille` UInt16 COMMENT 'Share of the air that it transmitted in [permille]' CODEC(T64, ZSTD(1)),
    `busy_permille` UInt16 COMMENT 'Share of the air that it saw busy [permille]' CODEC(T64, ZSTD(1)),
    `loss_permille` UInt16 COMMENT 'Congestion-loss ratio [permille]' CODEC(T64, ZSTD(1)),
    `backlog_bytes` UInt32 COMMENT 'Backlog of its queues [B]' CODEC(T64, ZSTD(1)),
    `age_ms` UInt32 COMMENT 'Age of these figures when they were told [ms]' CODEC(T64, ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfHour(ts), neighbour, frequency_mhz, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Access points of the same site on the same channel, as the platform told this one (topic ap.neighbours.v1)';

-- Which policy a bundle carries. Releases of before have none.
ALTER TABLE release ADD COLUMN IF NOT EXISTS `policy` LowCardinality(String) COMMENT 'Control policy in the bundle; empty for none' AFTER reason;
ALTER TABLE release ADD COLUMN IF NOT EXISTS `policy_version` UInt32 COMMENT 'Its version; 0 for none' AFTER policy;
