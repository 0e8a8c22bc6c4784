-- The learning loop: what access points decided and which bundles they have, the trees that the online trainer made, releases,
-- rollouts, and TCP's state at senders. Column lists are copies of schema/generated/clickhouse/*.columns.sql.

-- Read by AP and time: what an AP predicted, and how long it took. Ten rows a second of each AP; judged rows are in prediction.
CREATE TABLE IF NOT EXISTS decision
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `bundle` UInt64 COMMENT 'Bundle in force: first 8 bytes of its hash, big-endian, without the highest bit' CODEC(ZSTD(1)),
    `source` UInt8 COMMENT 'Who made it: 1 registry, 2 online' CODEC(ZSTD(1)),
    `version` UInt32 COMMENT 'Version of the model' CODEC(ZSTD(1)),
    `instant_us` UInt64 COMMENT 'Decision instant, microseconds since 1970 [us]' CODEC(Delta(8), ZSTD(1)),
    `class` UInt8 COMMENT 'Predicted class: 0 Good, 1 Acceptable, 2 Poor, 3 Bad' CODEC(ZSTD(1)),
    `confidence_permille` UInt16 COMMENT 'Probability of the predicted class [permille]' CODEC(ZSTD(1)),
    `congested_permille` UInt16 COMMENT 'Probability of Poor or Bad [permille]' CODEC(ZSTD(1)),
    `leaf` UInt16 COMMENT 'Leaf of the tree: index of its node' CODEC(ZSTD(1)),
    `features_hash` UInt64 COMMENT '64-bit FNV-1a over the feature vector (big-endian 64-bit values), without the highest bit' CODEC(ZSTD(1)),
    `features_missing` UInt8 COMMENT 'Features that were missing' CODEC(ZSTD(1)),
    `eval_ns` UInt32 COMMENT 'Time that features and tree took [ns]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per decision instant: what the AP\'s tree said. The instant is up to a few ticks before the row\'s own time';

-- Read by AP and time, and by bundle: who has which bundle, since when. At most one row a second of each AP.
CREATE TABLE IF NOT EXISTS bundle_status
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `bundle` UInt64 COMMENT 'Bundle: first 8 bytes of its hash, big-endian, without the highest bit' CODEC(ZSTD(1)),
    `source` UInt8 COMMENT 'Who made it: 1 registry, 2 online; 0 when that could not be read' CODEC(ZSTD(1)),
    `version` UInt32 COMMENT 'Version of the model' CODEC(ZSTD(1)),
    `serial` UInt64 COMMENT 'Serial of the bundle; 0 when that could not be read [us]' CODEC(ZSTD(1)),
    `state` UInt8 COMMENT '1 applied, 2 rejected, 3 restored from flash after a start, 4 waiting for its activation time' CODEC(ZSTD(1)),
    `reason` UInt8 COMMENT 'Why it was rejected: settings.bundle_reasons, 0 for none' CODEC(ZSTD(1)),
    `bytes` UInt32 COMMENT 'Size of the signed bundle [B]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'What became of a bundle at the AP';

-- Read by AP and time: is the model right? Ten rows a second of each AP; per minute through prediction_1m.
CREATE TABLE IF NOT EXISTS prediction
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Decision instant' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `bundle` UInt64 COMMENT 'Bundle in force, first 8 bytes of its hash without the highest bit',
    `source` Enum8('unknown' = 0, 'registry' = 1, 'online' = 2) COMMENT 'Who made the model',
    `version` UInt32 COMMENT 'Version of the model',
    `predicted` Enum8('Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class that the AP predicted for the label window that starts at ts + horizon',
    `confidence_permille` UInt16 COMMENT 'Probability that the tree gave the predicted class in permille',
    `congested_permille` UInt16 COMMENT 'Probability that the tree gave to Poor or Bad in permille',
    `leaf` UInt16 COMMENT 'Leaf of the tree',
    `features_missing` UInt8 COMMENT 'Features that were missing at the AP',
    `eval_ns` UInt32 COMMENT 'Time that features and tree took at the AP in ns',
    `class_now` Enum8('unknown' = -1, 'Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class of the label window that ends at ts; unknown when no item came',
    `class` Enum8('unknown' = -1, 'Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class that came true; unknown when no item came',
    `complete` UInt8 COMMENT 'complete of the item; 0 when no item came',
    `features_match` Enum8('unknown' = -1, 'differ' = 0, 'same' = 1) COMMENT 'Whether AP and stream job computed the same feature vector; unknown when no item came or the feature programs differ',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per AP and decision instant - what the AP predicted, with the class that came true';

-- Read by AP and time: which trees were shipped or held back, and why. At most one row a second of each AP.
CREATE TABLE IF NOT EXISTS tree_decision
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the decision, the trainer\'s clock' CODEC(Delta(8), ZSTD(1)),
    `trainer` LowCardinality(String) COMMENT 'Which trainer',
    `action` Enum8('held' = 0, 'shipped' = 1) COMMENT 'What was decided',
    `reason` LowCardinality(String) COMMENT 'Why',
    `items` UInt32 COMMENT 'Items in the AP\'s window',
    `train_items` UInt32 COMMENT 'Items that the candidate was fitted on',
    `test_items` UInt32 COMMENT 'Later items that it was scored on',
    `test_onsets` UInt32 COMMENT 'Onsets among them',
    `train_until` DateTime64(6, 'UTC') COMMENT 'Instant of the last item fitted on' CODEC(Delta(8), ZSTD(1)),
    `test_until` DateTime64(6, 'UTC') COMMENT 'Instant of the last item scored on' CODEC(Delta(8), ZSTD(1)),
    `candidate_onset_ap` Float32 COMMENT 'Average precision of onset, candidate; NaN when there is none',
    `in_force_onset_ap` Float32 COMMENT 'The same of the tree in force',
    `persistence_onset_ap` Float32 COMMENT 'The same of persistence',
    `candidate_macro_f1` Float32 COMMENT 'Macro F1 of the four classes, candidate',
    `in_force_macro_f1` Float32 COMMENT 'The same of the tree in force',
    `persistence_macro_f1` Float32 COMMENT 'The same of persistence',
    `drift` Float32 COMMENT 'Statistic of the drift detector',
    `nodes` UInt16 COMMENT 'Nodes of the candidate',
    `fit_us` UInt32 COMMENT 'CPU time of the fit in µs',
    `bundle` UInt64 COMMENT 'Bundle shipped; 0 when held',
    `version` UInt32 COMMENT 'Its number among those of the AP; 0 when held',
    `in_force` UInt64 COMMENT 'Bundle in force before; 0 for none',
    `feature_hash` UInt64 COMMENT 'First 8 bytes of the feature program\'s hash',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per tree that the online trainer fitted - shipped or not, why, and the numbers compared';

-- Read by time: the history of releases. Those of online trees are as many as trees shipped; a month is a partition.
CREATE TABLE IF NOT EXISTS release
(
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the release, the releaser\'s clock' CODEC(Delta(8), ZSTD(1)),
    `source` Enum8('unknown' = 0, 'registry' = 1, 'online' = 2) COMMENT 'Who released it',
    `slot` Enum8('champion' = 1, 'canary' = 2, 'challenger' = 3, 'online' = 4) COMMENT 'What it is released as',
    `scope` String COMMENT 'fleet, site/SITE or ap/AP_ID',
    `action` Enum8('release' = 1, 'withdraw' = 2) COMMENT 'What was done',
    `model` LowCardinality(String) COMMENT 'Registered model',
    `version` UInt32 COMMENT 'Its version',
    `bundle` UInt64 COMMENT 'Bundle, first 8 bytes of its hash without the highest bit; 0 when withdrawn',
    `serial` Int64 COMMENT 'Serial of the bundle',
    `bytes` UInt32 COMMENT 'Size of the signed bundle',
    `nodes` UInt16 COMMENT 'Nodes of the tree',
    `feature_hash` UInt64 COMMENT 'First 8 bytes of the feature program\'s hash',
    `run_id` String COMMENT 'MLflow run of the model',
    `reason` String COMMENT 'Why',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (source, slot, scope, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per bundle released to APs, or withdrawn';

-- Read by rollout and time: its steps. A handful of rows a release.
CREATE TABLE IF NOT EXISTS rollout
(
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the step, the push service\'s clock' CODEC(Delta(8), ZSTD(1)),
    `rollout` String COMMENT 'Name of the rollout',
    `slot` Enum8('champion' = 1, 'canary' = 2, 'challenger' = 3, 'online' = 4) COMMENT 'Slot of the release',
    `scope` String COMMENT 'Scope of the release',
    `bundle` UInt64 COMMENT 'Bundle that is rolled out',
    `step` Enum8('started' = 1, 'soaking' = 2, 'expanded' = 3, 'completed' = 4, 'aborted' = 5, 'superseded' = 6) COMMENT 'Step',
    `aps` UInt32 COMMENT 'APs that have the bundle as their desired state',
    `applied` UInt32 COMMENT 'APs that applied it',
    `rejected` UInt32 COMMENT 'APs that rejected it',
    `metric` LowCardinality(String) COMMENT 'Abort metric; empty for none',
    `value` Float64 COMMENT 'Its value; NaN when not measured',
    `limit` Float64 COMMENT 'Its limit; NaN for none',
    `detail` String COMMENT 'Explanation',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (rollout, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per step of a rollout';

-- Read by flow and time, as truth for the window model: joined with packet and flow by flow_id. Lab traffic only; ports and no addresses.
CREATE TABLE IF NOT EXISTS sender_tcp
(
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the sample, the sender\'s clock' CODEC(Delta(8), ZSTD(1)),
    `host` LowCardinality(String) COMMENT 'Sender',
    `flow_id` UInt64 COMMENT 'Flow, as in the packet table',
    `server_port` UInt16 COMMENT 'Port of the sender',
    `client_port` UInt16 COMMENT 'Port of the station',
    `congestion_control` LowCardinality(String) COMMENT 'Congestion control of the sender',
    `state` UInt8 COMMENT 'TCP state',
    `cwnd_bytes` UInt32 COMMENT 'Congestion window times MSS in bytes' CODEC(T64, ZSTD(1)),
    `ssthresh_bytes` UInt32 COMMENT 'Slow start threshold times MSS in bytes; 4294967295 while infinite',
    `mss_bytes` UInt16 COMMENT 'Sending MSS in bytes',
    `unacked_pkts` UInt32 COMMENT 'Segments in flight' CODEC(T64, ZSTD(1)),
    `rtt_us` UInt32 COMMENT 'Smoothed round trip in µs' CODEC(T64, ZSTD(1)),
    `min_rtt_us` UInt32 COMMENT 'Smallest round trip in µs',
    `delivery_rate_bps` UInt64 COMMENT 'Delivery rate in bit/s',
    `pacing_rate_bps` UInt64 COMMENT 'Pacing rate in bit/s; 18446744073709551615 while unlimited',
    `bytes_acked` UInt64 COMMENT 'Bytes acknowledged' CODEC(Delta(8), ZSTD(1)),
    `retrans_pkts` UInt32 COMMENT 'Segments retransmitted in all' CODEC(Delta(4), ZSTD(1)),
    `lost_pkts` UInt32 COMMENT 'Segments taken for lost now',
    `clock_offset_us` Int64 COMMENT 'This host\'s clock minus the AP\'s, estimated, in µs',
    `clock_offset_error_us` UInt32 COMMENT 'Bound of the estimate\'s error in µs',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (host, flow_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'TCP state of a flow at its sender (inet_diag) - the truth for the window model. Made in the lab';
