-- How far the features of late are from those that a champion was trained on (model-registry's looks, once an hour). Columns are a
-- copy of schema/generated/clickhouse/feature_drift.columns.sql.

-- Read by model and time: what has moved, where, since when? 45 rows an AP and hour.
CREATE TABLE IF NOT EXISTS feature_drift
(
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the look, the model registry\'s clock; it sees the 24 h before',
    `model` LowCardinality(String) COMMENT 'Registered model',
    `version` UInt32 COMMENT 'Its version, champion then',
    `ap_id` LowCardinality(String) COMMENT 'Access point; empty: all that the version is for, together',
    `feature` LowCardinality(String) COMMENT 'Feature of its program',
    `psi` Float32 COMMENT 'Population stability index over tenths of the training items and a bin of missing values; below 0.1 the same, above 0.25 another population',
    `items` UInt32 COMMENT 'Complete items that were compared',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract'
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (model, ap_id, feature, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'How far a feature of late is from what a champion was trained on; a look has no row of what it could not know';
