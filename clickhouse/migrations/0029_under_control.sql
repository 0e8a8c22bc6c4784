-- Labels under control: what an action prevented did not come true, and the model that foresaw it was not wrong. Such items and
-- predictions are not complete, so that nothing is trained on them or judged by them; rows of before do not know.
ALTER TABLE item ADD COLUMN IF NOT EXISTS `under_control` Enum8('unknown' = -1, 'no' = 0, 'yes' = 1) DEFAULT 'unknown' COMMENT 'Whether a policy acted on traffic of the AP from 1.8 s before ts to the end of the label window, or may have; then the class is that of the action too, and complete is 0. Rows older than the column are unknown' AFTER lacked_input;
ALTER TABLE prediction ADD COLUMN IF NOT EXISTS `under_control` Enum8('unknown' = -1, 'no' = 0, 'yes' = 1) DEFAULT 'unknown' COMMENT 'under_control of the item; unknown when no item came, and in rows older than the column' AFTER policy;
ALTER TABLE prediction_1m ADD COLUMN IF NOT EXISTS under_control SimpleAggregateFunction(sum, UInt64) COMMENT 'Those whose item was under control' AFTER features_lacked;

-- Made anew for the reason that 0007 says. Predictions inserted between the two statements would miss the rollup.
DROP VIEW IF EXISTS mv_prediction_1m;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_prediction_1m TO prediction_1m AS
SELECT
    ap_id, site, toStartOfMinute(ts) AS t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count() AS predictions, countIf(features_match = 'same') AS features_same, countIf(features_match = 'differ') AS features_differ,
    countIf(features_match = 'lacked input') AS features_lacked, countIf(p.under_control = 'yes') AS under_control,
    sum(p.eval_ns) AS eval_ns_sum, max(p.eval_ns) AS eval_ns_max
FROM prediction AS p
GROUP BY ap_id, site, t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille;

-- Predictions counted by model, classes and probabilities: whole minutes from the rollup, the ends of the range from the rows.
CREATE OR REPLACE VIEW v_prediction_counts AS
SELECT site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille, predictions, features_same, features_differ, features_lacked, under_control, eval_ns_sum, eval_ns_max
FROM prediction_1m
WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')} - toIntervalMicrosecond(1)) + toIntervalMinute(1) AND t < toStartOfMinute({to:DateTime64(6, 'UTC')})
UNION ALL
SELECT
    site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count(), countIf(features_match = 'same'), countIf(features_match = 'differ'), countIf(features_match = 'lacked input'), countIf(prediction.under_control = 'yes'), sum(eval_ns), max(eval_ns)
FROM prediction
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    AND (ts < toStartOfMinute({from:DateTime64(6, 'UTC')} - toIntervalMicrosecond(1)) + toIntervalMinute(1) OR ts >= toStartOfMinute({to:DateTime64(6, 'UTC')}))
GROUP BY site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille;

-- Is the model right? `per` says of what a row tells: 'ap, bundle' of a bundle at an access point, 'ap' of all of a source at an
-- access point (the way to judge online trees, which are replaced all the time), 'bundle' of a bundle on all access points,
-- 'fleet' of all of a source. Average precision is exact (equal scores are one step), and null without an onset or without
-- anything else; macro F1 is over the classes that came true.
-- What came true under control is the action's doing too, and nothing is judged by it. Of an alarm that was acted upon nobody can
-- know what it foresaw: `acted_alarms`. For recall it counts as right, since otherwise only what was not foreseen would be left;
-- where acted alarms are most, recall says little.
CREATE OR REPLACE VIEW v_quality AS
SELECT
    per, site, ap_id, source, version, bundle, decisions, matched, judged_predictions, onsets, acted_alarms,
    round(arraySum(hits) / nullIf(judged_predictions, 0), 4) AS accuracy,
    if(judged_predictions > 0, round(arrayAvg(arrayMap(k -> 2 * hits[k] / (came[k] + said[k]), arrayFilter(k -> came[k] > 0, [1, 2, 3, 4]))), 4), NULL) AS macro_f1,
    round(onset_hits / nullIf(onset_alarms, 0), 4) AS onset_precision,
    round((onset_hits + acted_alarms) / nullIf(onsets + acted_alarms, 0), 4) AS onset_recall,
    if(onsets > 0 AND onsets < calm_predictions, round(arraySum((t, h, a) -> t * h / a, arrayReverse(steps.3), arrayCumSum(arrayReverse(steps.3)), arrayCumSum(arrayReverse(steps.2))) / onsets, 4), NULL) AS onset_average_precision,
    round(brier_sum / nullIf(judged_predictions, 0), 4) AS congested_brier,
    round(arraySum(same) / nullIf(judged_predictions, 0), 4) AS persistence_accuracy,
    if(judged_predictions > 0, round(arrayAvg(arrayMap(k -> 2 * same[k] / (came[k] + was[k]), arrayFilter(k -> came[k] > 0, [1, 2, 3, 4]))), 4), NULL) AS persistence_macro_f1,
    if(onsets > 0 AND onsets < calm_predictions, round(arraySum((t, h, a) -> t * h / a, arrayReverse(now_steps.3), arrayCumSum(arrayReverse(now_steps.3)), arrayCumSum(arrayReverse(now_steps.2))) / onsets, 4), NULL) AS persistence_onset_average_precision,
    round(eval_ns_total / decisions) AS eval_ns_avg, eval_ns_max
FROM
(
    SELECT
        multiIf(grouping(bundle) = 0 AND grouping(ap_id) = 0, 'ap, bundle', grouping(ap_id) = 0, 'ap', grouping(bundle) = 0, 'bundle', 'fleet') AS per,
        site, ap_id, source, version, bundle, sum(n) AS decisions, sumIf(n, truth >= 0) AS matched, sumIf(n, judged) AS judged_predictions,
        sumIf(n, calm) AS calm_predictions, sumIf(n, calm AND truth >= 2) AS onsets, sumIf(n, calm AND guess >= 2) AS onset_alarms, sumIf(n, calm AND truth >= 2 AND guess >= 2) AS onset_hits, sumIf(c.under_control, now IN (0, 1) AND guess >= 2) AS acted_alarms,
        sumForEachIf(arrayMap(k -> if(guess = k AND truth = k, n, 0), [0, 1, 2, 3]), judged) AS hits, sumForEachIf(arrayMap(k -> if(truth = k, n, 0), [0, 1, 2, 3]), judged) AS came,
        sumForEachIf(arrayMap(k -> if(guess = k, n, 0), [0, 1, 2, 3]), judged) AS said, sumForEachIf(arrayMap(k -> if(now = k AND truth = k, n, 0), [0, 1, 2, 3]), judged) AS same,
        sumForEachIf(arrayMap(k -> if(now = k, n, 0), [0, 1, 2, 3]), judged) AS was,
        sumMapIf([c.congested_permille], [n], [if(truth >= 2, n, 0)], calm) AS steps, sumMapIf([now], [n], [if(truth >= 2, n, 0)], calm) AS now_steps,
        sumIf(n * pow(c.congested_permille / 1000 - (truth >= 2), 2), judged) AS brier_sum, sum(c.eval_ns_sum) AS eval_ns_total, max(c.eval_ns_max) AS eval_ns_max
    FROM
    (
        SELECT
            *, predictions AS n, toInt8(class) AS truth, toInt8(class_now) AS now, toInt8(predicted) AS guess,
            truth >= 0 AND complete = 1 AS judged, judged AND now IN (0, 1) AS calm
        FROM {database}.v_prediction_counts(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
    ) AS c
    GROUP BY GROUPING SETS ((site, ap_id, source, version, bundle), (site, ap_id, source), (source, version, bundle), (source))
)
ORDER BY per, site, ap_id, source, version, bundle;
