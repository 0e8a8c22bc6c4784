-- "Now" is the broker's time, not that of an access point, whose clock may be off: until now one ten minutes behind was
-- silent for ever, and one over a day behind never.

-- Read by time: who sends, since when not, whose clock is off? A row a minute and AP, the minute being the broker's.
CREATE TABLE IF NOT EXISTS arrival_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    site LowCardinality(String) COMMENT 'Site of the access point',
    t DateTime('UTC') COMMENT 'Minute, the broker\'s clock' CODEC(Delta(4), ZSTD(1)),
    batches SimpleAggregateFunction(sum, UInt64) COMMENT 'Batches',
    ticks SimpleAggregateFunction(sum, UInt64) COMMENT 'Ticks covered',
    ticks_missed SimpleAggregateFunction(sum, UInt64) COMMENT 'Ticks on which nothing could be sampled',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows',
    bytes SimpleAggregateFunction(sum, UInt64) COMMENT 'Bytes before compression',
    received SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Time the broker took the last batch',
    last_sample SimpleAggregateFunction(max, DateTime64(6, 'UTC')) COMMENT 'First tick of the newest batch, the AP\'s clock',
    behind_ms SimpleAggregateFunction(min, Int64) COMMENT 'Broker\'s time less the AP\'s, of the batch that came soonest [ms]',
    latest AggregateFunction(argMax, Tuple(UInt64, UInt8, UInt32), DateTime64(3, 'UTC')) COMMENT 'boot_id, clock_state, clock_error_us of the last batch'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, site, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'What the broker took of an AP in a minute of the broker\'s clock';
CREATE MATERIALIZED VIEW IF NOT EXISTS mv_arrival_1m TO arrival_1m AS
SELECT
    ap_id, site, toStartOfMinute(toDateTime(kafka_ts, 'UTC')) AS t,
    count() AS batches, sum(b.ticks) AS ticks, sum(b.ticks_missed) AS ticks_missed, sum(b.rows) AS rows, sum(b.bytes) AS bytes,
    max(b.kafka_ts) AS received, max(b.ts) AS last_sample, min(toUnixTimestamp64Milli(b.kafka_ts) - intDiv(toUnixTimestamp64Micro(b.ts), 1000)) AS behind_ms,
    argMaxState((b.boot_id, b.clock_state, b.clock_error_us), b.kafka_ts) AS latest
FROM batch AS b
GROUP BY ap_id, site, t;

-- Who sends? `age_s` is since the broker took the last batch; `behind_s` is how far the AP's clock (or what it sends) is behind the broker's.
CREATE OR REPLACE VIEW v_aps AS
SELECT
    site, ap_id, max(a.last_sample) AS last_sample, dateDiff('second', max(a.received), now64(3, 'UTC')) AS age_s,
    argMaxMerge(a.latest).1 AS boot_id, argMaxMerge(a.latest).2 AS clock_state, argMaxMerge(a.latest).3 AS clock_error_us,
    round(sum(a.bytes) / 600) AS bytes_per_s, round(sum(a.rows) / 600) AS rows_per_s,
    round(argMin(a.behind_ms, (-toUnixTimestamp(a.t), a.behind_ms)) / 1000, 1) AS behind_s
FROM arrival_1m AS a
WHERE a.t > now('UTC') - INTERVAL 10 MINUTE
GROUP BY site, ap_id
ORDER BY site, ap_id;

-- The last within_s seconds of each AP by the broker's clock: of an AP whose clock is off by more than 5 s, by its own.
CREATE OR REPLACE VIEW v_worst_aps AS
WITH (
    SELECT mapFromArrays(groupArray(ap), groupArray(ms))
    FROM
    (
        SELECT toString(ap_id) AS ap, argMin(a.behind_ms, (-toUnixTimestamp(a.t), a.behind_ms)) AS ms
        FROM arrival_1m AS a
        WHERE a.t > now('UTC') - INTERVAL 1 HOUR
        GROUP BY ap_id
        HAVING abs(ms) > 5000
    )
) AS behind
SELECT
    site, ap_id, argMax(class, ts) AS class_now, round(countIf(class >= 'Poor') / count(), 4) AS poor_or_bad_share,
    round(sumIf(congestion_lost_pkts, tile) / nullIf(sumIf(l.offered_pkts, tile), 0), 4) AS congestion_loss_ratio,
    round(sumIf(mac_lost_pkts, tile) / nullIf(sumIf(l.offered_pkts, tile), 0), 4) AS mac_loss_ratio,
    sumIf(l.offered_pkts, tile) AS offered_pkts, max(l.flows) AS flows,
    countIf(complete = 0) AS incomplete_windows, intDiv(dateDiff('millisecond', max(ts), now64(6, 'UTC')) - any(behind_ms), 1000) AS age_s
FROM
(
    SELECT *, window_us > 0 AND moduloOrZero(toUnixTimestamp64Micro(ts), window_us) = 0 AS tile, behind[toString(ap_id)] AS behind_ms
    FROM label
    WHERE (ts >= now64(6, 'UTC') - toIntervalSecond({within_s:UInt32}) OR has(mapKeys(behind), toString(ap_id)))
        AND ts >= now64(6, 'UTC') - toIntervalSecond({within_s:UInt32}) - toIntervalMillisecond(behind[toString(ap_id)])
) AS l
GROUP BY site, ap_id
ORDER BY poor_or_bad_share DESC, congestion_loss_ratio DESC NULLS LAST, ap_id;
