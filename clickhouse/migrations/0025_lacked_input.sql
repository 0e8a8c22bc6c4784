-- Whether a vector lacked input: batches that the access point had did not come to the job. Then features that differ say nothing
-- against the programs. Items of before are unknown; their `complete` says all that is known of them.
ALTER TABLE item ADD COLUMN IF NOT EXISTS `lacked_input` Enum8('unknown' = -1, 'no' = 0, 'yes' = 1) DEFAULT 'unknown' COMMENT 'Whether the features remember a time of which batches did not come, so that they may differ from the AP\'s; then complete is 0. Rows older than the column are unknown, and complete says all that is known of them' AFTER policy;
ALTER TABLE prediction MODIFY COLUMN `features_match` Enum8('unknown' = -1, 'differ' = 0, 'same' = 1, 'lacked input' = 2) COMMENT 'Whether AP and stream job computed the same feature vector; lacked input when they differ because batches did not come to the job; unknown when no item came or the feature programs differ';
ALTER TABLE prediction_1m ADD COLUMN IF NOT EXISTS features_lacked SimpleAggregateFunction(sum, UInt64) COMMENT 'Those whose feature vectors differed because the stream job lacked input' AFTER features_differ;

-- Made anew for the reason that 0007 says. Predictions inserted between the two statements would miss the rollup.
DROP VIEW IF EXISTS mv_prediction_1m;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_prediction_1m TO prediction_1m AS
SELECT
    ap_id, site, toStartOfMinute(ts) AS t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count() AS predictions, countIf(features_match = 'same') AS features_same, countIf(features_match = 'differ') AS features_differ,
    countIf(features_match = 'lacked input') AS features_lacked, sum(p.eval_ns) AS eval_ns_sum, max(p.eval_ns) AS eval_ns_max
FROM prediction AS p
GROUP BY ap_id, site, t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille;

-- Predictions counted by model, classes and probabilities: whole minutes from the rollup, the ends of the range from the rows.
CREATE OR REPLACE VIEW v_prediction_counts AS
SELECT site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille, predictions, features_same, features_differ, features_lacked, eval_ns_sum, eval_ns_max
FROM prediction_1m
WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')} - toIntervalMicrosecond(1)) + toIntervalMinute(1) AND t < toStartOfMinute({to:DateTime64(6, 'UTC')})
UNION ALL
SELECT
    site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count(), countIf(features_match = 'same'), countIf(features_match = 'differ'), countIf(features_match = 'lacked input'), sum(eval_ns), max(eval_ns)
FROM prediction
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    AND (ts < toStartOfMinute({from:DateTime64(6, 'UTC')} - toIntervalMicrosecond(1)) + toIntervalMinute(1) OR ts >= toStartOfMinute({to:DateTime64(6, 'UTC')}))
GROUP BY site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille;

-- Do access points compute the features that the stream job computes? `lacked_input`: they differ, and the job had not all batches
-- that the access point had. `other_program`: judged by an item, but made by another feature program than the stream job's.
CREATE OR REPLACE VIEW v_features_match AS
SELECT
    site, ap_id, source, sum(c.features_same) AS same, sum(c.features_differ) AS differ, sum(c.features_lacked) AS lacked_input,
    sumIf(c.predictions, class != 'unknown') - same - differ - lacked_input AS other_program,
    sumIf(c.predictions, class = 'unknown') AS without_item, round(differ / nullIf(same + differ, 0), 6) AS differ_ratio
FROM {database}.v_prediction_counts(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS c
GROUP BY site, ap_id, source
ORDER BY differ_ratio DESC NULLS LAST, site, ap_id, source;
