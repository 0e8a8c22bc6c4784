-- Predictions per minute, without loss of what quality is computed from: rows that agree in model, classes and probabilities
-- are counted together. A tree has few leaves, so a minute of an AP's 600 rows becomes some tens. Exact: 0012 computes the
-- same figures from these counts as from the rows. A model that is replaced each second (online trees) compresses less.

CREATE TABLE IF NOT EXISTS prediction_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    site LowCardinality(String) COMMENT 'Site of the access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    source Enum8('unknown' = 0, 'registry' = 1, 'online' = 2) COMMENT 'Who made the model',
    version UInt32 COMMENT 'Version of the model',
    bundle UInt64 COMMENT 'Bundle in force',
    class_now Enum8('unknown' = -1, 'Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class of the label window that ends at the instant',
    class Enum8('unknown' = -1, 'Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class that came true',
    complete UInt8 COMMENT 'complete of the item; 0 when no item came',
    predicted Enum8('Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class that the AP predicted',
    confidence_permille UInt16 COMMENT 'Probability of the predicted class in permille',
    congested_permille UInt16 COMMENT 'Probability of Poor or Bad in permille',
    predictions SimpleAggregateFunction(sum, UInt64) COMMENT 'Predictions with all of the above',
    features_same SimpleAggregateFunction(sum, UInt64) COMMENT 'Those whose feature vector was the same at the AP and in the stream job',
    features_differ SimpleAggregateFunction(sum, UInt64) COMMENT 'Those whose feature vectors differed',
    eval_ns_sum SimpleAggregateFunction(sum, UInt64) COMMENT 'Time that features and tree took at the AP, added up [ns]',
    eval_ns_max SimpleAggregateFunction(max, UInt32) COMMENT 'The longest of them [ns]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, site, t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An AP\'s minute of predictions, counted by model, classes and probabilities';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_prediction_1m TO prediction_1m AS
SELECT
    ap_id, site, toStartOfMinute(ts) AS t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count() AS predictions, countIf(features_match = 'same') AS features_same, countIf(features_match = 'differ') AS features_differ,
    sum(p.eval_ns) AS eval_ns_sum, max(p.eval_ns) AS eval_ns_max
FROM prediction AS p
GROUP BY ap_id, site, t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille;

-- The last report of each kind on a day: which AP has which bundle must not cost reading half a year of reports.

CREATE TABLE IF NOT EXISTS bundle_status_1d
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t Date COMMENT 'Day',
    state UInt8 COMMENT '1 applied, 2 rejected, 3 restored from flash after a start, 4 waiting for its activation time',
    reports SimpleAggregateFunction(sum, UInt64) COMMENT 'Reports',
    last SimpleAggregateFunction(max, Tuple(ts DateTime64(6, 'UTC'), bundle UInt64, source UInt8, version UInt32, serial UInt64, reason UInt8)) COMMENT 'The last of them'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, t, state)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An AP\'s day of reports on bundles, per state';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_bundle_status_1d TO bundle_status_1d AS
SELECT
    ap_id, toDate(ts) AS t, state, count() AS reports,
    max(tuple(s.ts, s.bundle, s.source, s.version, s.serial, s.reason)::Tuple(ts DateTime64(6, 'UTC'), bundle UInt64, source UInt8, version UInt32, serial UInt64, reason UInt8)) AS last
FROM bundle_status AS s
GROUP BY ap_id, t, state;
