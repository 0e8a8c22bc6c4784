-- Questions about the learning loop. Two terms:
-- * A prediction is judged when its class came true without a gap (class known, complete = 1). All ratios are over those.
-- * An onset goes from Good or Acceptable (`class_now`) to Poor or Bad (`class`); it is judged on predictions whose class_now is
--   Good or Acceptable, as in training. Persistence is "the same class as now"; its score for onset is class_now itself.

-- Predictions counted by model, classes and probabilities: whole minutes from the rollup, the ends of the range from the rows.
CREATE OR REPLACE VIEW v_prediction_counts AS
SELECT site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille, predictions, features_same, features_differ, eval_ns_sum, eval_ns_max
FROM prediction_1m
WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')} - toIntervalMicrosecond(1)) + toIntervalMinute(1) AND t < toStartOfMinute({to:DateTime64(6, 'UTC')})
UNION ALL
SELECT
    site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count(), countIf(features_match = 'same'), countIf(features_match = 'differ'), sum(eval_ns), max(eval_ns)
FROM prediction
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    AND (ts < toStartOfMinute({from:DateTime64(6, 'UTC')} - toIntervalMicrosecond(1)) + toIntervalMinute(1) OR ts >= toStartOfMinute({to:DateTime64(6, 'UTC')}))
GROUP BY site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille;

-- Is the model right? `per` says of what a row tells: 'ap, bundle' of a bundle at an access point, 'ap' of all of a source at an
-- access point (the way to judge online trees, which are replaced all the time), 'bundle' of a bundle on all access points,
-- 'fleet' of all of a source. Average precision is exact (equal scores are one step), and null without an onset or without
-- anything else; macro F1 is over the classes that came true.
CREATE OR REPLACE VIEW v_quality AS
SELECT
    per, site, ap_id, source, version, bundle, decisions, matched, judged_predictions, onsets,
    round(arraySum(hits) / nullIf(judged_predictions, 0), 4) AS accuracy,
    if(judged_predictions > 0, round(arrayAvg(arrayMap(k -> 2 * hits[k] / (came[k] + said[k]), arrayFilter(k -> came[k] > 0, [1, 2, 3, 4]))), 4), NULL) AS macro_f1,
    round(onset_hits / nullIf(onset_alarms, 0), 4) AS onset_precision,
    round(onset_hits / nullIf(onsets, 0), 4) AS onset_recall,
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
        sumIf(n, calm) AS calm_predictions, sumIf(n, calm AND truth >= 2) AS onsets, sumIf(n, calm AND guess >= 2) AS onset_alarms, sumIf(n, calm AND truth >= 2 AND guess >= 2) AS onset_hits,
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

-- The same, per access point and model version.
CREATE OR REPLACE VIEW v_model_quality AS
SELECT * EXCEPT (per)
FROM {database}.v_quality(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
WHERE per = 'ap, bundle';

-- What is taken for what? The confusion matrix, a row per cell: `share` is of the predictions whose class came true, so that it
-- is the recall where both are the same.
CREATE OR REPLACE VIEW v_confusion AS
SELECT
    site, ap_id, source, version, class, predicted, sum(c.predictions) AS predictions,
    round(predictions / sum(predictions) OVER (PARTITION BY site, ap_id, source, version, class), 4) AS share
FROM {database}.v_prediction_counts(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS c
WHERE class != 'unknown' AND complete = 1
GROUP BY site, ap_id, source, version, class, predicted
ORDER BY site, ap_id, source, version, class, predicted;

-- Does the confidence say how often the model is right? Per tenth of the confidence.
CREATE OR REPLACE VIEW v_calibration AS
SELECT
    site, ap_id, source, version, least(intDiv(confidence_permille, 100), 9) / 10 AS confidence_from, sum(c.predictions) AS predictions,
    round(sum(c.predictions * confidence_permille) / 1000 / predictions, 4) AS confidence_avg,
    sumIf(c.predictions, toInt8(predicted) = toInt8(class)) AS correct, round(correct / predictions, 4) AS correct_ratio
FROM {database}.v_prediction_counts(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS c
WHERE class != 'unknown' AND complete = 1
GROUP BY site, ap_id, source, version, confidence_from
ORDER BY site, ap_id, source, version, confidence_from;

-- How early does the model warn? Congestion begins at the instant at which class_now turns from Good or Acceptable to Poor or Bad:
-- that is when persistence would say so. The warning is the unbroken run of decisions for Poor or Bad, within the calm before,
-- that lasts to the decision before that instant; the lead is from its first decision. Each onset counts for the model of that
-- last decision. A decision that is missing (250 ms without one) or that is not judged breaks calm and run.
CREATE OR REPLACE VIEW v_lead_time AS
SELECT
    site, ap_id, source_before AS source, version_before AS version, count() AS onsets, countIf(warned) AS onsets_warned, round(onsets_warned / onsets, 4) AS warned_ratio,
    if(onsets_warned > 0, round(quantileExactIf(0.5)(lead_us, warned) / 1000), NULL) AS lead_p50_ms, if(onsets_warned > 0, round(quantileExactIf(0.9)(lead_us, warned) / 1000), NULL) AS lead_p90_ms,
    if(onsets_warned > 0, round(maxIf(lead_us, warned) / 1000), NULL) AS lead_max_ms
FROM
(
    SELECT *, congested AND calm_before AND together AS onset, alarm_before AS warned, us - max(if(begins, us, 0)) OVER before AS lead_us
    FROM
    (
        SELECT
            *, us - us_before <= 250000 AS together, calm AND guess >= 2 AS alarm,
            lagInFrame(calm, 1, 0) OVER run AS calm_before, lagInFrame(alarm, 1, 0) OVER run AS alarm_before, lagInFrame(source, 1) OVER run AS source_before, lagInFrame(version, 1) OVER run AS version_before,
            alarm AND NOT (alarm_before AND together) AS begins
        FROM
        (
            SELECT
                site, ap_id, boot_id, source, version, toInt8(predicted) AS guess, complete = 1 AND toInt8(class_now) IN (0, 1) AS calm, complete = 1 AND toInt8(class_now) >= 2 AS congested,
                toUnixTimestamp64Micro(ts) AS us, lagInFrame(us, 1, 0) OVER (PARTITION BY ap_id, boot_id ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS us_before
            FROM prediction
            WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
        )
        WINDOW run AS (PARTITION BY ap_id, boot_id ORDER BY us ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
    )
    WINDOW before AS (PARTITION BY ap_id, boot_id ORDER BY us ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
WHERE onset
GROUP BY site, ap_id, source, version
ORDER BY site, ap_id, source, version;

-- Do access points compute the features that the stream job computes? `other_program`: judged by an item, but made by another
-- feature program than the stream job's.
CREATE OR REPLACE VIEW v_features_match AS
SELECT
    site, ap_id, source, sum(c.features_same) AS same, sum(c.features_differ) AS differ, sumIf(c.predictions, class != 'unknown') - same - differ AS other_program,
    sumIf(c.predictions, class = 'unknown') AS without_item, round(differ / nullIf(same + differ, 0), 6) AS differ_ratio
FROM {database}.v_prediction_counts(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS c
GROUP BY site, ap_id, source
ORDER BY differ_ratio DESC NULLS LAST, site, ap_id, source;

-- Which trees did the online trainer make, and why were they shipped or held back? Gains are the candidate's figure less the one
-- in force, over the trees that had both.
CREATE OR REPLACE VIEW v_tree_decisions AS
SELECT
    site, ap_id, action, reason, count() AS trees, round(avg(d.items)) AS items_avg, round(avg(d.test_onsets), 1) AS test_onsets_avg,
    round(avgOrNullIf(d.candidate_onset_ap, isFinite(d.candidate_onset_ap)), 4) AS onset_ap_avg,
    round(avgOrNullIf(d.candidate_onset_ap - d.in_force_onset_ap, isFinite(d.candidate_onset_ap - d.in_force_onset_ap)), 4) AS gain_on_in_force,
    round(avgOrNullIf(d.candidate_onset_ap - d.persistence_onset_ap, isFinite(d.candidate_onset_ap - d.persistence_onset_ap)), 4) AS gain_on_persistence,
    round(avg(d.nodes)) AS nodes_avg, round(avg(d.fit_us)) AS fit_us_avg, max(d.fit_us) AS fit_us_max, max(d.ts) AS last
FROM tree_decision AS d
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY site, ap_id, action, reason
ORDER BY site, ap_id, trees DESC, action, reason;

-- What was released, when and by whom, and which access points have taken it? Reports up to the next release into the same slot
-- and scope count; five seconds of grace for clocks that differ. An access point that has the bundle already reports nothing.
CREATE OR REPLACE VIEW v_releases AS
SELECT
    r.ts AS released, source, slot, scope, action, model, version, bundle, serial, bytes, nodes, reason,
    uniqExactIf(s.ap_id, s.state IN (1, 3) AND (r.bundle != 0 AND s.ts >= r.ts - toIntervalSecond(5) AND s.ts < r.until)) AS aps_applied, uniqExactIf(s.ap_id, s.state = 2 AND (r.bundle != 0 AND s.ts >= r.ts - toIntervalSecond(5) AND s.ts < r.until)) AS aps_rejected, minOrNullIf(s.ts, s.state IN (1, 3) AND (r.bundle != 0 AND s.ts >= r.ts - toIntervalSecond(5) AND s.ts < r.until)) AS first_applied,
    round(quantileExactOrNullIf(0.5)(greatest(0, dateDiff('millisecond', r.ts, s.ts)), s.state = 1 AND (r.bundle != 0 AND s.ts >= r.ts - toIntervalSecond(5) AND s.ts < r.until))) AS applied_after_p50_ms,
    round(maxOrNullIf(greatest(0, dateDiff('millisecond', r.ts, s.ts)), s.state = 1 AND (r.bundle != 0 AND s.ts >= r.ts - toIntervalSecond(5) AND s.ts < r.until))) AS applied_after_max_ms, run_id
FROM
(
    SELECT *, leadInFrame(ts, 1, toDateTime64('2100-01-01 00:00:00', 6, 'UTC')) OVER (PARTITION BY slot, scope ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS until
    FROM release
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
) AS r
LEFT JOIN
(
    SELECT ap_id, ts, bundle, state
    FROM bundle_status
    WHERE ts >= {from:DateTime64(6, 'UTC')} - toIntervalSecond(5)
) AS s ON r.bundle = s.bundle
GROUP BY r.ts, source, slot, scope, action, model, version, bundle, serial, bytes, nodes, reason, run_id, until
ORDER BY released, slot, scope;

-- Which bundle does each access point have now? From its last reports, as far back as bundle_status_1d goes.
CREATE OR REPLACE VIEW v_bundle_state AS
SELECT
    ap_id, nullIf(in_force.2, 0) AS bundle, transform(in_force.3, [1, 2], ['registry', 'online'], 'unknown') AS source, if(in_force.2 > 0, in_force.4, NULL) AS version, if(in_force.2 > 0, in_force.5, NULL) AS serial, if(in_force.2 > 0, in_force.1, NULL) AS since,
    rejected.1 > in_force.1 AS rejected_since, if(rejected.2 > 0, rejected.2, NULL) AS last_rejected,
    if(rejected.1 > toDateTime64(0, 6, 'UTC'), transform(rejected.6, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], ['none', 'oversized', 'malformed', 'unsigned', 'unknown_key', 'bad_signature', 'unsupported_format',
        'wrong_target', 'replayed', 'bad_program', 'bad_tree', 'bad_window_model', 'bad_policy', 'feature_mismatch', 'golden_mismatch', 'no_memory'], 'unknown'), NULL) AS last_reason,
    waiting.1 > in_force.1 AS waits_for_activation, reports_applied, reports_rejected, last_report
FROM
(
    SELECT
        ap_id, maxIf(d.last, state IN (1, 3)) AS in_force, maxIf(d.last, state = 2) AS rejected, maxIf(d.last, state = 4) AS waiting, sumIf(d.reports, state = 1) AS reports_applied,
        sumIf(d.reports, state = 2) AS reports_rejected, max(d.last.1) AS last_report
    FROM bundle_status_1d AS d
    GROUP BY ap_id
)
ORDER BY ap_id;
