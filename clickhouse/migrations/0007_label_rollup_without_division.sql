-- A label whose window_us is 0 must not stop an INSERT: with 0003's modulo, the rollup refused the whole block. Such a row is
-- counted as a window and is in no tile. The view is made anew, because one changed by MODIFY QUERY no longer recognised
-- repeated blocks once the server had restarted. Labels inserted between the two statements would miss the rollup.
DROP VIEW IF EXISTS mv_label_1m;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_label_1m TO label_1m AS
WITH l.window_us > 0 AND moduloOrZero(toUnixTimestamp64Micro(ts), l.window_us) = 0 AS tile
SELECT
    ap_id, site, toStartOfMinute(ts) AS t,
    count() AS windows, countIf(l.complete = 0) AS incomplete, countIf(l.class = 'Good') AS good,
    countIf(l.class = 'Acceptable') AS acceptable, countIf(l.class = 'Poor') AS poor, countIf(l.class = 'Bad') AS bad,
    countIf(tile) AS tiles, sumIf(l.offered_pkts, tile) AS offered_pkts, sumIf(l.offered_bytes, tile) AS offered_bytes,
    sumIf(l.lost_pkts, tile) AS lost_pkts, sumIf(l.lost_bytes, tile) AS lost_bytes,
    sumIf(l.mac_lost_pkts, tile) AS mac_lost_pkts, sumIf(l.congestion_lost_pkts, tile) AS congestion_lost_pkts,
    sumIf(l.queue_drop_pkts, tile) AS queue_drop_pkts
FROM label AS l
GROUP BY ap_id, site, t;

-- The same for the question that adds over tiles.
CREATE OR REPLACE VIEW v_worst_aps AS
SELECT
    site, ap_id, argMax(class, ts) AS class_now, round(countIf(class >= 'Poor') / count(), 4) AS poor_or_bad_share,
    round(sumIf(congestion_lost_pkts, tile) / nullIf(sumIf(l.offered_pkts, tile), 0), 4) AS congestion_loss_ratio,
    round(sumIf(mac_lost_pkts, tile) / nullIf(sumIf(l.offered_pkts, tile), 0), 4) AS mac_loss_ratio,
    sumIf(l.offered_pkts, tile) AS offered_pkts, max(l.flows) AS flows,
    countIf(complete = 0) AS incomplete_windows, dateDiff('second', max(ts), now64(6, 'UTC')) AS age_s
FROM
(
    SELECT *, window_us > 0 AND moduloOrZero(toUnixTimestamp64Micro(ts), window_us) = 0 AS tile
    FROM label
    WHERE ts >= now64(6, 'UTC') - toIntervalSecond({within_s:UInt32})
) AS l
GROUP BY site, ap_id
ORDER BY poor_or_bad_share DESC, congestion_loss_ratio DESC NULLS LAST, ap_id;
