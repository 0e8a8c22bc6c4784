-- Truth at the drop. A loss is a row of its own, with the time and the place at which it was dropped, and labels are made of these;
-- what they were by the definition of before (in the window in which it was sent again) stays beside. Columns are a copy of
-- schema/generated/clickhouse.

-- Read by AP and time: where does this access point lose, and how long until the sender knew? A fiftieth of the packets.
CREATE TABLE IF NOT EXISTS loss_event
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the drop: the first step of the station\'s counters between seen and resent that explains no other loss; by stamped_by',
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `flow_id` UInt64 COMMENT 'Flow, as in the packet table',
    `station_mac` UInt64 COMMENT 'Station that carries the flow; 0 while unknown',
    `seen` DateTime64(6, 'UTC') COMMENT 'When the range was seen last before at the AP\'s tap',
    `resent` DateTime64(6, 'UTC') COMMENT 'When it was seen again',
    `seq` UInt32 COMMENT 'Sequence number of the segment that repeats it',
    `pkts` UInt32 COMMENT 'Segments of the range',
    `bytes` UInt32 COMMENT 'Its payload in bytes',
    `cause` Enum8('unknown' = 0, 'queue' = 1, 'air' = 2, 'both' = 3) COMMENT 'What grew between seen and resent: drops of the station\'s queue (its TXQ, the qdiscs of its interface), its MAC failures, both; unknown: neither, or they are not counted',
    `stamped_by` Enum8('first sight' = 0, 'counter' = 1) COMMENT 'What says when it was dropped: a counter\'s step; or nothing, then ts is seen, the earliest possible',
    `queue_counter` Enum8('none' = 0, 'txq' = 1, 'qdisc' = 2) COMMENT 'What counts drops of the station\'s queue: its own queue\'s counters, or the qdisc of its interface, which stations share',
    `queue_drop_pkts` Nullable(UInt32) COMMENT 'What they count in that time; null when there are none',
    `mac_failed_pkts` Nullable(UInt32) COMMENT 'Frames to the station that the MAC gave up in that time; null when nothing shows that it counts them',
    `congestion` UInt8 COMMENT '1 when it counts in labels as congestion: cause queue or both, or unknown where queue_counter is none',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per downlink retransmission of a sequence range that had not arrived - when and where it was dropped';

ALTER TABLE label MODIFY COLUMN `lost_pkts` UInt32 COMMENT 'Segments whose payload the AP had forwarded before, seen again in the window (retransmission by sequence space); the losses of the rows of loss_event stand where they were dropped';
ALTER TABLE label MODIFY COLUMN `congestion_lost_pkts` UInt32 COMMENT 'Segments that were dropped in the window by a queue, or by something unknown where no queue is counted (loss_event, congestion = 1). In rows whose stamped is resent: max(0, lost_pkts - mac_lost_pkts)';
ALTER TABLE label MODIFY COLUMN `loss_ratio` Float32 COMMENT 'congestion_lost_pkts / offered_pkts, at most 1; 0 when nothing was lost';
ALTER TABLE label MODIFY COLUMN `complete` UInt8 COMMENT '0 when a batch of the window or of the loss_wait_us after it is missing, the capture ring dropped packets, or nothing was sampled for half a decision interval';
ALTER TABLE label ADD COLUMN IF NOT EXISTS `stamped` Enum8('resent' = 0, 'drop' = 1) DEFAULT 'resent' COMMENT 'Where a loss counts: in the window in which it was seen again (rows older than the column), or in that in which it was dropped' AFTER complete;
ALTER TABLE label ADD COLUMN IF NOT EXISTS `air_lost_pkts` UInt32 DEFAULT 0 COMMENT 'Segments that the air lost in the window' AFTER stamped;
ALTER TABLE label ADD COLUMN IF NOT EXISTS `elsewhere_lost_pkts` UInt32 DEFAULT 0 COMMENT 'Segments of the window that were sent again although the station\'s counters, which exist, count no drop: lost behind the AP, or not lost' AFTER air_lost_pkts;
ALTER TABLE label ADD COLUMN IF NOT EXISTS `congestion_resent_pkts` UInt32 DEFAULT congestion_lost_pkts COMMENT 'The definition of before: max(0, lost_pkts - mac_lost_pkts), in the window in which they were seen again' AFTER elsewhere_lost_pkts;
ALTER TABLE label ADD COLUMN IF NOT EXISTS `loss_permille_resent` UInt16 DEFAULT toUInt16(least(1000, 1000 * loss_ratio)) COMMENT 'Loss by the definition of before, in permille, rounded down; it has a class by the same bounds' AFTER congestion_resent_pkts;
ALTER TABLE item ADD COLUMN IF NOT EXISTS `loss_permille_resent` Int16 DEFAULT -1 COMMENT 'Loss that came true by the definition of before (label.loss_permille_resent); -1: the row is older than the column, and class is of that definition' AFTER under_control;
ALTER TABLE item ADD COLUMN IF NOT EXISTS `loss_permille_now_resent` Int16 DEFAULT -1 COMMENT 'The same of the label window that ends at ts' AFTER loss_permille_resent;
ALTER TABLE item ADD COLUMN IF NOT EXISTS `since_drop_us` Int32 DEFAULT -1 COMMENT 'Time from the last congestion drop to ts in µs, if it was in the label window before ts; otherwise -1' AFTER loss_permille_now_resent;
ALTER TABLE item ADD COLUMN IF NOT EXISTS `until_drop_us` Int32 DEFAULT -1 COMMENT 'Time from ts to the first congestion drop in µs, if it comes before the end of the label window; otherwise -1' AFTER since_drop_us;
ALTER TABLE prediction ADD COLUMN IF NOT EXISTS `since_drop_us` Nullable(Int32) COMMENT 'since_drop_us of the item; null when no item came, and in rows older than the column' AFTER under_control;
ALTER TABLE prediction ADD COLUMN IF NOT EXISTS `until_drop_us` Nullable(Int32) COMMENT 'until_drop_us of the item; null when no item came, and in rows older than the column' AFTER since_drop_us;

-- Where do packets go, and how late does their sender learn of it? Segments by cause, of each access point; times are medians and
-- 90th percentiles over rows. Where neither counter exists (queue_counters, mac_counters: shares of rows), nothing is known.
CREATE OR REPLACE VIEW v_losses AS
SELECT
    l.site AS site, l.ap_id AS ap_id, sum(l.pkts) AS lost_pkts, sumIf(l.pkts, cause = 'queue') AS queue_pkts, sumIf(l.pkts, cause = 'air') AS air_pkts,
    sumIf(l.pkts, cause = 'both') AS both_pkts, sumIf(l.pkts, cause = 'unknown') AS unknown_pkts, sumIf(l.pkts, congestion = 1) AS congestion_pkts,
    round(countIf(queue_counter != 'none') / count(), 4) AS queue_counters, round(countIf(isNotNull(mac_failed_pkts)) / count(), 4) AS mac_counters,
    round(quantileExact(0.5)(dateDiff('microsecond', seen, ts)) / 1000) AS queued_p50_ms, round(quantileExact(0.9)(dateDiff('microsecond', seen, ts)) / 1000) AS queued_p90_ms,
    round(quantileExact(0.5)(dateDiff('microsecond', ts, resent)) / 1000) AS known_after_p50_ms, round(quantileExact(0.9)(dateDiff('microsecond', ts, resent)) / 1000) AS known_after_p90_ms
FROM loss_event AS l
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY l.site, l.ap_id
ORDER BY lost_pkts DESC, l.site, l.ap_id;

-- What differs when a loss counts where it was dropped, not where it was sent again? Complete windows by both classes.
CREATE OR REPLACE VIEW v_label_definitions AS
SELECT
    l.site AS site, l.ap_id AS ap_id, class AS class_at_drop,
    multiIf(loss_permille_resent < 10, 'Good', loss_permille_resent < 50, 'Acceptable', loss_permille_resent < 120, 'Poor', 'Bad')::Enum8('Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) AS class_at_repetition,
    count() AS windows, round(windows / sum(windows) OVER (PARTITION BY site, ap_id), 4) AS share
FROM label AS l
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')} AND complete = 1 AND stamped = 'drop'
GROUP BY l.site, l.ap_id, class_at_drop, class_at_repetition
ORDER BY site, ap_id, class_at_drop, class_at_repetition;

-- How long before the first drop was a prediction? Of those whose second before was without a drop, counted by 10 ms.
ALTER TABLE prediction_1m ADD COLUMN IF NOT EXISTS leads SimpleAggregateFunction(sumMap, Map(UInt16, UInt64)) COMMENT 'Predictions in calm with no drop in the second before and one to come, by the time until it [ms, rounded down to 10]; empty in rows older than the column' AFTER under_control;

-- Made anew for the reason that 0007 says. Predictions inserted between the two statements would miss the rollup.
DROP VIEW IF EXISTS mv_prediction_1m;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_prediction_1m TO prediction_1m AS
SELECT
    ap_id, site, toStartOfMinute(ts) AS t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count() AS predictions, countIf(features_match = 'same') AS features_same, countIf(features_match = 'differ') AS features_differ,
    countIf(features_match = 'lacked input') AS features_lacked, countIf(p.under_control = 'yes') AS under_control,
    sumMap(if(class_now IN ('Good', 'Acceptable') AND since_drop_us = -1 AND until_drop_us >= 0, map(toUInt16(intDiv(assumeNotNull(until_drop_us), 10000) * 10), toUInt64(1)), map())) AS leads,
    sum(p.eval_ns) AS eval_ns_sum, max(p.eval_ns) AS eval_ns_max
FROM prediction AS p
GROUP BY ap_id, site, t, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille;

-- Predictions counted by model, classes and probabilities: whole minutes from the rollup, the ends of the range from the rows.
CREATE OR REPLACE VIEW v_prediction_counts AS
SELECT site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille, predictions, features_same, features_differ, features_lacked, under_control, leads, eval_ns_sum, eval_ns_max
FROM prediction_1m
WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')} - toIntervalMicrosecond(1)) + toIntervalMinute(1) AND t < toStartOfMinute({to:DateTime64(6, 'UTC')})
UNION ALL
SELECT
    site, ap_id, source, version, bundle, class_now, class, complete, predicted, confidence_permille, congested_permille,
    count(), countIf(features_match = 'same'), countIf(features_match = 'differ'), countIf(features_match = 'lacked input'), countIf(prediction.under_control = 'yes'),
    sumMap(if(class_now IN ('Good', 'Acceptable') AND since_drop_us = -1 AND until_drop_us >= 0, map(toUInt16(intDiv(assumeNotNull(until_drop_us), 10000) * 10), toUInt64(1)), map())), sum(eval_ns), max(eval_ns)
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
-- Lead: of the judged predictions in calm before an onset with no drop in the second before (first_drops), the time to the first drop,
-- in steps of 10 ms: the median of those foreseen, and of all, where 0 stands for not foreseen.
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
    round(eval_ns_total / decisions) AS eval_ns_avg, eval_ns_max,
    arraySum(mapValues(first_leads)) AS first_drops, arraySum(mapValues(foreseen_leads)) AS first_drops_foreseen,
    if(first_drops_foreseen > 0, mapKeys(foreseen_leads)[indexOf(arrayMap(n -> 2 * n >= first_drops_foreseen, arrayCumSum(mapValues(foreseen_leads))), 1)], NULL) AS lead_p50_ms,
    multiIf(first_drops = 0, NULL, 2 * first_drops_foreseen <= first_drops, 0,
        mapKeys(foreseen_leads)[indexOf(arrayMap(n -> 2 * (n + first_drops - first_drops_foreseen) >= first_drops, arrayCumSum(mapValues(foreseen_leads))), 1)]) AS lead_all_p50_ms
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
        sumIf(n * pow(c.congested_permille / 1000 - (truth >= 2), 2), judged) AS brier_sum, sum(c.eval_ns_sum) AS eval_ns_total, max(c.eval_ns_max) AS eval_ns_max,
        sumMapIf(c.leads, calm AND truth >= 2) AS first_leads, sumMapIf(c.leads, calm AND truth >= 2 AND guess >= 2) AS foreseen_leads
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
