-- Rollups per second and per minute, filled by materialised views as rows come in.
--
-- Counters. Raw counters are cumulative, restart (a station associates anew, the AP reboots) and wrap (32 bits). A rollup
-- keeps the largest value of its second or minute; the views of 0004 take the difference to the entity's bucket before:
-- negative by more than 2^31 in a 32-bit counter is a wrap, negative otherwise a restart whose increase is the new value
-- (the rule of schema/README.md). A largest value does not depend on the order in which blocks arrive. What is lost: when
-- a counter restarts and passes its old value within one bucket, the old value; of an entity's first bucket, the first
-- second (`_first` in the per-minute tables is where its minute began). What a counter gained between a restart or wrap
-- and the end of that bucket shows in the next bucket.
--
-- Gauges. Rows are sent when something changes, so a mean over rows would be a mean over busy moments. A mean here is over
-- time: each value counts for the microseconds it was held, that is until the entity's next row of the same batch, or to
-- the end of the batch (252 ms after the entity's first row in it: settings batch_ticks * tick_us). `*_us` columns hold
-- value times microseconds, `held_us` the microseconds: mean = sum(x_us) / sum(held_us). A row counts in the bucket in
-- which it starts, so up to 252 ms of a value stand in the bucket before. Two runs of one entity in one batch are one.
--
-- The per-minute tables are filled from the blocks of the per-second ones. Every target has the deduplication window of
-- the raw tables: a repeated INSERT reaches them too, and would be counted twice in the sums.

CREATE TABLE IF NOT EXISTS station_1s
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Second' CODEC(Delta(4), ZSTD(1)),
    mac UInt64 COMMENT 'Station',
    device LowCardinality(String) COMMENT 'Interface it is associated with',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    rx_bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Bytes received from the station, counter [B]' CODEC(Delta(8), ZSTD(1)),
    tx_bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Bytes sent to the station, counter [B]' CODEC(Delta(8), ZSTD(1)),
    rx_pkts SimpleAggregateFunction(max, UInt32) COMMENT 'Packets received from the station, counter' CODEC(Delta(4), ZSTD(1)),
    tx_pkts SimpleAggregateFunction(max, UInt32) COMMENT 'Packets sent to the station, counter' CODEC(Delta(4), ZSTD(1)),
    tx_retries SimpleAggregateFunction(max, UInt32) COMMENT 'Retransmissions by the MAC, counter' CODEC(Delta(4), ZSTD(1)),
    tx_failed SimpleAggregateFunction(max, UInt32) COMMENT 'Frames that the MAC gave up, counter' CODEC(Delta(4), ZSTD(1)),
    rx_drop_misc SimpleAggregateFunction(max, UInt64) COMMENT 'Received frames dropped for unspecified reasons, counter' CODEC(Delta(8), ZSTD(1)),
    tx_airtime_us SimpleAggregateFunction(max, UInt64) COMMENT 'Airtime spent sending to the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    rx_airtime_us SimpleAggregateFunction(max, UInt64) COMMENT 'Airtime spent receiving from the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    signal_dbm_us SimpleAggregateFunction(sum, Int64) COMMENT 'Signal, times time held [dBm us]',
    signal_dbm_min SimpleAggregateFunction(min, Int8) COMMENT 'Signal, smallest value sent [dBm]',
    tx_bitrate_kbps_us SimpleAggregateFunction(sum, UInt64) COMMENT 'PHY rate to the station, times time held [kbit/s us]',
    rx_bitrate_kbps_us SimpleAggregateFunction(sum, UInt64) COMMENT 'PHY rate from the station, times time held [kbit/s us]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, toStartOfHour(t), mac, device, t)
TTL t + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A station\'s second - counters at their largest, gauges times time';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_station_1s TO station_1s AS
SELECT
    ap_id, toStartOfSecond(ts) AS t, mac, device,
    count() AS rows, sum(held) AS held_us, max(r.rx_bytes) AS rx_bytes, max(r.tx_bytes) AS tx_bytes,
    max(r.rx_pkts) AS rx_pkts, max(r.tx_pkts) AS tx_pkts, max(r.tx_retries) AS tx_retries,
    max(r.tx_failed) AS tx_failed, max(r.rx_drop_misc) AS rx_drop_misc, max(r.tx_airtime_us) AS tx_airtime_us,
    max(r.rx_airtime_us) AS rx_airtime_us, sum(r.signal_dbm * toInt64(held)) AS signal_dbm_us,
    min(r.signal_dbm) AS signal_dbm_min, sum(r.tx_bitrate_kbps * held) AS tx_bitrate_kbps_us,
    sum(r.rx_bitrate_kbps * held) AS rx_bitrate_kbps_us
FROM
(
    SELECT *, toUInt64(greatest(if(next_us = 0, opened_us + 252000, next_us) - us, 0)) AS held
    FROM
    (
        SELECT
            ap_id, ts, mac, device, rx_bytes, tx_bytes, rx_pkts, tx_pkts, tx_retries, tx_failed, rx_drop_misc,
            tx_airtime_us, rx_airtime_us, signal_dbm, tx_bitrate_kbps, rx_bitrate_kbps,
            toUnixTimestamp64Micro(ts) AS us, leadInFrame(us, 1, 0) OVER entity AS next_us, min(us) OVER entity AS opened_us
        FROM station
        WINDOW entity AS (PARTITION BY ap_id, boot_id, batch_seq, mac, device ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
) AS r
GROUP BY ap_id, t, mac, device;

CREATE TABLE IF NOT EXISTS station_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    mac UInt64 COMMENT 'Station',
    device LowCardinality(String) COMMENT 'Interface it is associated with',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    rx_bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Bytes received from the station, counter [B]' CODEC(Delta(8), ZSTD(1)),
    rx_bytes_first SimpleAggregateFunction(min, UInt64) COMMENT 'Bytes received from the station, smallest of its seconds [B]' CODEC(Delta(8), ZSTD(1)),
    tx_bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Bytes sent to the station, counter [B]' CODEC(Delta(8), ZSTD(1)),
    tx_bytes_first SimpleAggregateFunction(min, UInt64) COMMENT 'Bytes sent to the station, smallest of its seconds [B]' CODEC(Delta(8), ZSTD(1)),
    rx_pkts SimpleAggregateFunction(max, UInt32) COMMENT 'Packets received from the station, counter' CODEC(Delta(4), ZSTD(1)),
    rx_pkts_first SimpleAggregateFunction(min, UInt32) COMMENT 'Packets received from the station, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    tx_pkts SimpleAggregateFunction(max, UInt32) COMMENT 'Packets sent to the station, counter' CODEC(Delta(4), ZSTD(1)),
    tx_pkts_first SimpleAggregateFunction(min, UInt32) COMMENT 'Packets sent to the station, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    tx_retries SimpleAggregateFunction(max, UInt32) COMMENT 'Retransmissions by the MAC, counter' CODEC(Delta(4), ZSTD(1)),
    tx_retries_first SimpleAggregateFunction(min, UInt32) COMMENT 'Retransmissions by the MAC, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    tx_failed SimpleAggregateFunction(max, UInt32) COMMENT 'Frames that the MAC gave up, counter' CODEC(Delta(4), ZSTD(1)),
    tx_failed_first SimpleAggregateFunction(min, UInt32) COMMENT 'Frames that the MAC gave up, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    rx_drop_misc SimpleAggregateFunction(max, UInt64) COMMENT 'Received frames dropped for unspecified reasons, counter' CODEC(Delta(8), ZSTD(1)),
    rx_drop_misc_first SimpleAggregateFunction(min, UInt64) COMMENT 'Received frames dropped for unspecified reasons, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    tx_airtime_us SimpleAggregateFunction(max, UInt64) COMMENT 'Airtime spent sending to the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    tx_airtime_us_first SimpleAggregateFunction(min, UInt64) COMMENT 'Airtime spent sending to the station, smallest of its seconds [us]' CODEC(Delta(8), ZSTD(1)),
    rx_airtime_us SimpleAggregateFunction(max, UInt64) COMMENT 'Airtime spent receiving from the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    rx_airtime_us_first SimpleAggregateFunction(min, UInt64) COMMENT 'Airtime spent receiving from the station, smallest of its seconds [us]' CODEC(Delta(8), ZSTD(1)),
    signal_dbm_us SimpleAggregateFunction(sum, Int64) COMMENT 'Signal, times time held [dBm us]',
    signal_dbm_min SimpleAggregateFunction(min, Int8) COMMENT 'Signal, smallest value sent [dBm]',
    tx_bitrate_kbps_us SimpleAggregateFunction(sum, UInt64) COMMENT 'PHY rate to the station, times time held [kbit/s us]',
    rx_bitrate_kbps_us SimpleAggregateFunction(sum, UInt64) COMMENT 'PHY rate from the station, times time held [kbit/s us]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, toDate(t), mac, device, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A station\'s minute - counters at their largest, gauges times time';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_station_1m TO station_1m AS
SELECT
    ap_id, toStartOfMinute(s.t) AS t, mac, device,
    sum(s.rows) AS rows, sum(s.held_us) AS held_us, max(s.rx_bytes) AS rx_bytes, min(s.rx_bytes) AS rx_bytes_first,
    max(s.tx_bytes) AS tx_bytes, min(s.tx_bytes) AS tx_bytes_first, max(s.rx_pkts) AS rx_pkts,
    min(s.rx_pkts) AS rx_pkts_first, max(s.tx_pkts) AS tx_pkts, min(s.tx_pkts) AS tx_pkts_first,
    max(s.tx_retries) AS tx_retries, min(s.tx_retries) AS tx_retries_first, max(s.tx_failed) AS tx_failed,
    min(s.tx_failed) AS tx_failed_first, max(s.rx_drop_misc) AS rx_drop_misc,
    min(s.rx_drop_misc) AS rx_drop_misc_first, max(s.tx_airtime_us) AS tx_airtime_us,
    min(s.tx_airtime_us) AS tx_airtime_us_first, max(s.rx_airtime_us) AS rx_airtime_us,
    min(s.rx_airtime_us) AS rx_airtime_us_first, sum(s.signal_dbm_us) AS signal_dbm_us,
    min(s.signal_dbm_min) AS signal_dbm_min, sum(s.tx_bitrate_kbps_us) AS tx_bitrate_kbps_us,
    sum(s.rx_bitrate_kbps_us) AS rx_bitrate_kbps_us
FROM station_1s AS s
GROUP BY ap_id, t, mac, device;

-- tx_bytes has 32 bits and can wrap more than once a minute on a fast link, so station_ac_1m does without (station_1m has 64).
CREATE TABLE IF NOT EXISTS station_ac_1s
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Second' CODEC(Delta(4), ZSTD(1)),
    mac UInt64 COMMENT 'Station',
    device LowCardinality(String) COMMENT 'Interface it is associated with',
    ac UInt8 COMMENT 'Access category: 0 VO, 1 VI, 2 BE, 3 BK',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    msdu_pkts SimpleAggregateFunction(max, UInt64) COMMENT 'MSDUs given to the MAC, counter' CODEC(Delta(8), ZSTD(1)),
    msdu_retries SimpleAggregateFunction(max, UInt64) COMMENT 'MSDU retries, counter' CODEC(Delta(8), ZSTD(1)),
    msdu_failed SimpleAggregateFunction(max, UInt64) COMMENT 'MSDUs that the MAC gave up, counter' CODEC(Delta(8), ZSTD(1)),
    drops SimpleAggregateFunction(max, UInt32) COMMENT 'Packets that CoDel dropped, counter' CODEC(Delta(4), ZSTD(1)),
    ecn_marks SimpleAggregateFunction(max, UInt32) COMMENT 'Packets that CoDel marked, counter' CODEC(Delta(4), ZSTD(1)),
    overlimit SimpleAggregateFunction(max, UInt32) COMMENT 'Times that the queue was cut for being over its limit, counter' CODEC(Delta(4), ZSTD(1)),
    tx_bytes SimpleAggregateFunction(max, UInt32) COMMENT 'Bytes taken from the queue, counter of 32 bits [B]' CODEC(Delta(4), ZSTD(1)),
    tx_pkts SimpleAggregateFunction(max, UInt32) COMMENT 'Packets taken from the queue, counter' CODEC(Delta(4), ZSTD(1)),
    backlog_bytes_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Bytes waiting, times time held [B us]',
    backlog_bytes_max SimpleAggregateFunction(max, UInt32) COMMENT 'Bytes waiting, largest value sent [B]',
    backlog_pkts_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets waiting, times time held [pkt us]',
    backlog_pkts_max SimpleAggregateFunction(max, UInt32) COMMENT 'Packets waiting, largest value sent [pkt]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, toStartOfHour(t), mac, device, ac, t)
TTL t + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An access category\'s second at a station - counters at their largest, backlog times time';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_station_ac_1s TO station_ac_1s AS
SELECT
    ap_id, toStartOfSecond(ts) AS t, mac, device, ac,
    count() AS rows, sum(held) AS held_us, max(r.msdu_pkts) AS msdu_pkts, max(r.msdu_retries) AS msdu_retries,
    max(r.msdu_failed) AS msdu_failed, max(r.drops) AS drops, max(r.ecn_marks) AS ecn_marks,
    max(r.overlimit) AS overlimit, max(r.tx_bytes) AS tx_bytes, max(r.tx_pkts) AS tx_pkts,
    sum(r.backlog_bytes * held) AS backlog_bytes_us, max(r.backlog_bytes) AS backlog_bytes_max,
    sum(r.backlog_pkts * held) AS backlog_pkts_us, max(r.backlog_pkts) AS backlog_pkts_max
FROM
(
    SELECT *, toUInt64(greatest(if(next_us = 0, opened_us + 252000, next_us) - us, 0)) AS held
    FROM
    (
        SELECT
            ap_id, ts, mac, device, ac, msdu_pkts, msdu_retries, msdu_failed, drops, ecn_marks, overlimit, tx_bytes,
            tx_pkts, backlog_bytes, backlog_pkts,
            toUnixTimestamp64Micro(ts) AS us, leadInFrame(us, 1, 0) OVER entity AS next_us, min(us) OVER entity AS opened_us
        FROM station_ac
        WINDOW entity AS (PARTITION BY ap_id, boot_id, batch_seq, mac, device, ac ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
) AS r
GROUP BY ap_id, t, mac, device, ac;

CREATE TABLE IF NOT EXISTS station_ac_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    mac UInt64 COMMENT 'Station',
    device LowCardinality(String) COMMENT 'Interface it is associated with',
    ac UInt8 COMMENT 'Access category: 0 VO, 1 VI, 2 BE, 3 BK',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    msdu_pkts SimpleAggregateFunction(max, UInt64) COMMENT 'MSDUs given to the MAC, counter' CODEC(Delta(8), ZSTD(1)),
    msdu_pkts_first SimpleAggregateFunction(min, UInt64) COMMENT 'MSDUs given to the MAC, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    msdu_retries SimpleAggregateFunction(max, UInt64) COMMENT 'MSDU retries, counter' CODEC(Delta(8), ZSTD(1)),
    msdu_retries_first SimpleAggregateFunction(min, UInt64) COMMENT 'MSDU retries, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    msdu_failed SimpleAggregateFunction(max, UInt64) COMMENT 'MSDUs that the MAC gave up, counter' CODEC(Delta(8), ZSTD(1)),
    msdu_failed_first SimpleAggregateFunction(min, UInt64) COMMENT 'MSDUs that the MAC gave up, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    drops SimpleAggregateFunction(max, UInt32) COMMENT 'Packets that CoDel dropped, counter' CODEC(Delta(4), ZSTD(1)),
    drops_first SimpleAggregateFunction(min, UInt32) COMMENT 'Packets that CoDel dropped, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    ecn_marks SimpleAggregateFunction(max, UInt32) COMMENT 'Packets that CoDel marked, counter' CODEC(Delta(4), ZSTD(1)),
    ecn_marks_first SimpleAggregateFunction(min, UInt32) COMMENT 'Packets that CoDel marked, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    overlimit SimpleAggregateFunction(max, UInt32) COMMENT 'Times that the queue was cut for being over its limit, counter' CODEC(Delta(4), ZSTD(1)),
    overlimit_first SimpleAggregateFunction(min, UInt32) COMMENT 'Times that the queue was cut for being over its limit, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    tx_pkts SimpleAggregateFunction(max, UInt32) COMMENT 'Packets taken from the queue, counter' CODEC(Delta(4), ZSTD(1)),
    tx_pkts_first SimpleAggregateFunction(min, UInt32) COMMENT 'Packets taken from the queue, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    backlog_bytes_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Bytes waiting, times time held [B us]',
    backlog_bytes_max SimpleAggregateFunction(max, UInt32) COMMENT 'Bytes waiting, largest value sent [B]',
    backlog_pkts_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets waiting, times time held [pkt us]',
    backlog_pkts_max SimpleAggregateFunction(max, UInt32) COMMENT 'Packets waiting, largest value sent [pkt]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, toDate(t), mac, device, ac, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An access category\'s minute at a station';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_station_ac_1m TO station_ac_1m AS
SELECT
    ap_id, toStartOfMinute(s.t) AS t, mac, device, ac,
    sum(s.rows) AS rows, sum(s.held_us) AS held_us, max(s.msdu_pkts) AS msdu_pkts,
    min(s.msdu_pkts) AS msdu_pkts_first, max(s.msdu_retries) AS msdu_retries,
    min(s.msdu_retries) AS msdu_retries_first, max(s.msdu_failed) AS msdu_failed,
    min(s.msdu_failed) AS msdu_failed_first, max(s.drops) AS drops, min(s.drops) AS drops_first,
    max(s.ecn_marks) AS ecn_marks, min(s.ecn_marks) AS ecn_marks_first, max(s.overlimit) AS overlimit,
    min(s.overlimit) AS overlimit_first, max(s.tx_pkts) AS tx_pkts, min(s.tx_pkts) AS tx_pkts_first,
    sum(s.backlog_bytes_us) AS backlog_bytes_us, max(s.backlog_bytes_max) AS backlog_bytes_max,
    sum(s.backlog_pkts_us) AS backlog_pkts_us, max(s.backlog_pkts_max) AS backlog_pkts_max
FROM station_ac_1s AS s
GROUP BY ap_id, t, mac, device, ac;

CREATE TABLE IF NOT EXISTS queue_1s
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Second' CODEC(Delta(4), ZSTD(1)),
    device LowCardinality(String) COMMENT 'Interface',
    handle UInt32 COMMENT 'Handle of the qdisc',
    parent UInt32 COMMENT 'Handle of its parent class',
    kind LowCardinality(String) COMMENT 'Kind: fq_codel, pfifo_fast, mac80211, …',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Bytes sent, counter [B]' CODEC(Delta(8), ZSTD(1)),
    pkts SimpleAggregateFunction(max, UInt64) COMMENT 'Packets sent, counter' CODEC(Delta(8), ZSTD(1)),
    drops SimpleAggregateFunction(max, UInt32) COMMENT 'Packets dropped, counter' CODEC(Delta(4), ZSTD(1)),
    overlimits SimpleAggregateFunction(max, UInt32) COMMENT 'Times the queue was over a limit, counter' CODEC(Delta(4), ZSTD(1)),
    requeues SimpleAggregateFunction(max, UInt32) COMMENT 'Packets requeued, counter' CODEC(Delta(4), ZSTD(1)),
    ecn_marks SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets marked with ECN, counter; NULL where the queue has no such counter' CODEC(Delta(4), ZSTD(1)),
    backlog_bytes_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Bytes waiting, times time held [B us]',
    backlog_bytes_max SimpleAggregateFunction(max, UInt32) COMMENT 'Bytes waiting, largest value sent [B]',
    qlen_pkts_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets waiting, times time held [pkt us]',
    qlen_pkts_max SimpleAggregateFunction(max, UInt32) COMMENT 'Packets waiting, largest value sent [pkt]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, device, handle, parent, kind, t)
TTL t + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A queue\'s second - counters at their largest, backlog times time';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_queue_1s TO queue_1s AS
SELECT
    ap_id, toStartOfSecond(ts) AS t, device, handle, parent, kind,
    count() AS rows, sum(held) AS held_us, max(r.bytes) AS bytes, max(r.pkts) AS pkts, max(r.drops) AS drops,
    max(r.overlimits) AS overlimits, max(r.requeues) AS requeues, max(r.ecn_marks) AS ecn_marks,
    sum(r.backlog_bytes * held) AS backlog_bytes_us, max(r.backlog_bytes) AS backlog_bytes_max,
    sum(r.qlen_pkts * held) AS qlen_pkts_us, max(r.qlen_pkts) AS qlen_pkts_max
FROM
(
    SELECT *, toUInt64(greatest(if(next_us = 0, opened_us + 252000, next_us) - us, 0)) AS held
    FROM
    (
        SELECT
            ap_id, ts, device, handle, parent, kind, bytes, pkts, drops, overlimits, requeues, ecn_marks,
            backlog_bytes, qlen_pkts,
            toUnixTimestamp64Micro(ts) AS us, leadInFrame(us, 1, 0) OVER entity AS next_us, min(us) OVER entity AS opened_us
        FROM queue
        WINDOW entity AS (PARTITION BY ap_id, boot_id, batch_seq, device, handle, parent, kind ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
) AS r
GROUP BY ap_id, t, device, handle, parent, kind;

CREATE TABLE IF NOT EXISTS queue_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    device LowCardinality(String) COMMENT 'Interface',
    handle UInt32 COMMENT 'Handle of the qdisc',
    parent UInt32 COMMENT 'Handle of its parent class',
    kind LowCardinality(String) COMMENT 'Kind: fq_codel, pfifo_fast, mac80211, …',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Bytes sent, counter [B]' CODEC(Delta(8), ZSTD(1)),
    bytes_first SimpleAggregateFunction(min, UInt64) COMMENT 'Bytes sent, smallest of its seconds [B]' CODEC(Delta(8), ZSTD(1)),
    pkts SimpleAggregateFunction(max, UInt64) COMMENT 'Packets sent, counter' CODEC(Delta(8), ZSTD(1)),
    pkts_first SimpleAggregateFunction(min, UInt64) COMMENT 'Packets sent, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    drops SimpleAggregateFunction(max, UInt32) COMMENT 'Packets dropped, counter' CODEC(Delta(4), ZSTD(1)),
    drops_first SimpleAggregateFunction(min, UInt32) COMMENT 'Packets dropped, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    overlimits SimpleAggregateFunction(max, UInt32) COMMENT 'Times the queue was over a limit, counter' CODEC(Delta(4), ZSTD(1)),
    overlimits_first SimpleAggregateFunction(min, UInt32) COMMENT 'Times the queue was over a limit, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    requeues SimpleAggregateFunction(max, UInt32) COMMENT 'Packets requeued, counter' CODEC(Delta(4), ZSTD(1)),
    requeues_first SimpleAggregateFunction(min, UInt32) COMMENT 'Packets requeued, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    ecn_marks SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets marked with ECN, counter; NULL where the queue has no such counter' CODEC(Delta(4), ZSTD(1)),
    ecn_marks_first SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Packets marked with ECN, smallest of its seconds; NULL where the queue has no such counter' CODEC(Delta(4), ZSTD(1)),
    backlog_bytes_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Bytes waiting, times time held [B us]',
    backlog_bytes_max SimpleAggregateFunction(max, UInt32) COMMENT 'Bytes waiting, largest value sent [B]',
    qlen_pkts_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets waiting, times time held [pkt us]',
    qlen_pkts_max SimpleAggregateFunction(max, UInt32) COMMENT 'Packets waiting, largest value sent [pkt]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, device, handle, parent, kind, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A queue\'s minute';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_queue_1m TO queue_1m AS
SELECT
    ap_id, toStartOfMinute(s.t) AS t, device, handle, parent, kind,
    sum(s.rows) AS rows, sum(s.held_us) AS held_us, max(s.bytes) AS bytes, min(s.bytes) AS bytes_first,
    max(s.pkts) AS pkts, min(s.pkts) AS pkts_first, max(s.drops) AS drops, min(s.drops) AS drops_first,
    max(s.overlimits) AS overlimits, min(s.overlimits) AS overlimits_first, max(s.requeues) AS requeues,
    min(s.requeues) AS requeues_first, max(s.ecn_marks) AS ecn_marks, min(s.ecn_marks) AS ecn_marks_first,
    sum(s.backlog_bytes_us) AS backlog_bytes_us, max(s.backlog_bytes_max) AS backlog_bytes_max,
    sum(s.qlen_pkts_us) AS qlen_pkts_us, max(s.qlen_pkts_max) AS qlen_pkts_max
FROM queue_1s AS s
GROUP BY ap_id, t, device, handle, parent, kind;

CREATE TABLE IF NOT EXISTS channel_1s
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Second' CODEC(Delta(4), ZSTD(1)),
    device LowCardinality(String) COMMENT 'Interface',
    frequency_mhz UInt16 COMMENT 'Centre of the primary channel [MHz]',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    active_ms SimpleAggregateFunction(max, UInt64) COMMENT 'Time the radio was on the channel, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    busy_ms SimpleAggregateFunction(max, UInt64) COMMENT 'Time the primary channel was sensed busy, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    ext_busy_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time the extension channel was sensed busy, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    rx_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time spent receiving, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    tx_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time spent sending, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    scan_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time spent scanning, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    noise_dbm_us SimpleAggregateFunction(sum, Int64) COMMENT 'Noise floor, times time held [dBm us]',
    noise_dbm_held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by noise_dbm_us [us]',
    noise_dbm_max SimpleAggregateFunction(max, Nullable(Int8)) COMMENT 'Noise floor, largest value sent [dBm]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, device, frequency_mhz, t)
TTL t + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A channel\'s second - times at their largest, noise times time';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_channel_1s TO channel_1s AS
SELECT
    ap_id, toStartOfSecond(ts) AS t, device, frequency_mhz,
    count() AS rows, sum(held) AS held_us, max(r.active_ms) AS active_ms, max(r.busy_ms) AS busy_ms,
    max(r.ext_busy_ms) AS ext_busy_ms, max(r.rx_ms) AS rx_ms, max(r.tx_ms) AS tx_ms, max(r.scan_ms) AS scan_ms,
    sum(ifNull(r.noise_dbm, 0) * toInt64(held)) AS noise_dbm_us,
    sumIf(held, isNotNull(r.noise_dbm)) AS noise_dbm_held_us, max(r.noise_dbm) AS noise_dbm_max
FROM
(
    SELECT *, toUInt64(greatest(if(next_us = 0, opened_us + 252000, next_us) - us, 0)) AS held
    FROM
    (
        SELECT
            ap_id, ts, device, frequency_mhz, active_ms, busy_ms, ext_busy_ms, rx_ms, tx_ms, scan_ms, noise_dbm,
            toUnixTimestamp64Micro(ts) AS us, leadInFrame(us, 1, 0) OVER entity AS next_us, min(us) OVER entity AS opened_us
        FROM channel
        WINDOW entity AS (PARTITION BY ap_id, boot_id, batch_seq, device, frequency_mhz ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
) AS r
GROUP BY ap_id, t, device, frequency_mhz;

CREATE TABLE IF NOT EXISTS channel_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    device LowCardinality(String) COMMENT 'Interface',
    frequency_mhz UInt16 COMMENT 'Centre of the primary channel [MHz]',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by the *_us sums [us]',
    active_ms SimpleAggregateFunction(max, UInt64) COMMENT 'Time the radio was on the channel, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    active_ms_first SimpleAggregateFunction(min, UInt64) COMMENT 'Time the radio was on the channel, smallest of its seconds [ms]' CODEC(Delta(8), ZSTD(1)),
    busy_ms SimpleAggregateFunction(max, UInt64) COMMENT 'Time the primary channel was sensed busy, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    busy_ms_first SimpleAggregateFunction(min, UInt64) COMMENT 'Time the primary channel was sensed busy, smallest of its seconds [ms]' CODEC(Delta(8), ZSTD(1)),
    ext_busy_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time the extension channel was sensed busy, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    ext_busy_ms_first SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'Time the extension channel was sensed busy, smallest of its seconds [ms]' CODEC(Delta(8), ZSTD(1)),
    rx_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time spent receiving, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    rx_ms_first SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'Time spent receiving, smallest of its seconds [ms]' CODEC(Delta(8), ZSTD(1)),
    tx_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time spent sending, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    tx_ms_first SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'Time spent sending, smallest of its seconds [ms]' CODEC(Delta(8), ZSTD(1)),
    scan_ms SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Time spent scanning, counter [ms]' CODEC(Delta(8), ZSTD(1)),
    scan_ms_first SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'Time spent scanning, smallest of its seconds [ms]' CODEC(Delta(8), ZSTD(1)),
    noise_dbm_us SimpleAggregateFunction(sum, Int64) COMMENT 'Noise floor, times time held [dBm us]',
    noise_dbm_held_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time covered by noise_dbm_us [us]',
    noise_dbm_max SimpleAggregateFunction(max, Nullable(Int8)) COMMENT 'Noise floor, largest value sent [dBm]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, device, frequency_mhz, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A channel\'s minute';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_channel_1m TO channel_1m AS
SELECT
    ap_id, toStartOfMinute(s.t) AS t, device, frequency_mhz,
    sum(s.rows) AS rows, sum(s.held_us) AS held_us, max(s.active_ms) AS active_ms,
    min(s.active_ms) AS active_ms_first, max(s.busy_ms) AS busy_ms, min(s.busy_ms) AS busy_ms_first,
    max(s.ext_busy_ms) AS ext_busy_ms, min(s.ext_busy_ms) AS ext_busy_ms_first, max(s.rx_ms) AS rx_ms,
    min(s.rx_ms) AS rx_ms_first, max(s.tx_ms) AS tx_ms, min(s.tx_ms) AS tx_ms_first, max(s.scan_ms) AS scan_ms,
    min(s.scan_ms) AS scan_ms_first, sum(s.noise_dbm_us) AS noise_dbm_us,
    sum(s.noise_dbm_held_us) AS noise_dbm_held_us, max(s.noise_dbm_max) AS noise_dbm_max
FROM channel_1s AS s
GROUP BY ap_id, t, device, frequency_mhz;

-- Events are added up. No addresses here: these outlive the packets.
CREATE TABLE IF NOT EXISTS packet_1s
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Second' CODEC(Delta(4), ZSTD(1)),
    direction UInt8 COMMENT '0 down (server to station), 1 up (station to server)',
    pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'TCP packets',
    payload_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with payload',
    payload_bytes SimpleAggregateFunction(sum, UInt64) COMMENT 'Payload [B]',
    syn_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with SYN',
    rst_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with RST',
    sack_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with SACK blocks',
    zero_window_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with a window of 0 and no SYN or RST',
    ce_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these marked Congestion Experienced'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, direction, t)
TTL t + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An AP\'s TCP packets per second and direction';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_packet_1s TO packet_1s AS
SELECT
    ap_id, toStartOfSecond(ts) AS t, direction,
    count() AS pkts, countIf(p.payload_bytes > 0) AS payload_pkts, sum(p.payload_bytes) AS payload_bytes,
    countIf(bitTest(p.flags, 1)) AS syn_pkts, countIf(bitTest(p.flags, 2)) AS rst_pkts,
    countIf(p.sack_blocks > 0) AS sack_pkts,
    countIf(p.window_raw = 0 AND NOT bitTest(p.flags, 1) AND NOT bitTest(p.flags, 2)) AS zero_window_pkts,
    countIf(p.ip_ecn = 3) AS ce_pkts
FROM packet AS p
GROUP BY ap_id, t, direction;

CREATE TABLE IF NOT EXISTS packet_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    direction UInt8 COMMENT '0 down (server to station), 1 up (station to server)',
    pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'TCP packets',
    payload_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with payload',
    payload_bytes SimpleAggregateFunction(sum, UInt64) COMMENT 'Payload [B]',
    syn_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with SYN',
    rst_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with RST',
    sack_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with SACK blocks',
    zero_window_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with a window of 0 and no SYN or RST',
    ce_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these marked Congestion Experienced'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, direction, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An AP\'s TCP packets per minute and direction';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_packet_1m TO packet_1m AS
SELECT
    ap_id, toStartOfMinute(s.t) AS t, direction,
    sum(s.pkts) AS pkts, sum(s.payload_pkts) AS payload_pkts, sum(s.payload_bytes) AS payload_bytes,
    sum(s.syn_pkts) AS syn_pkts, sum(s.rst_pkts) AS rst_pkts, sum(s.sack_pkts) AS sack_pkts,
    sum(s.zero_window_pkts) AS zero_window_pkts, sum(s.ce_pkts) AS ce_pkts
FROM packet_1s AS s
GROUP BY ap_id, t, direction;

CREATE TABLE IF NOT EXISTS drop_event_1s
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Second' CODEC(Delta(4), ZSTD(1)),
    device LowCardinality(String) COMMENT 'Interface',
    cause UInt8 COMMENT '1 station queue (CoDel), 2 station queue (over limit), 3 qdisc or interface queue, 4 MAC failure',
    events SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows',
    pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets lost'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, device, cause, t)
TTL t + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Loss that an AP\'s own counters admit, per second and cause';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_drop_event_1s TO drop_event_1s AS
SELECT
    ap_id, toStartOfSecond(ts) AS t, device, cause,
    count() AS events, sum(e.count) AS pkts
FROM drop_event AS e
GROUP BY ap_id, t, device, cause;

CREATE TABLE IF NOT EXISTS drop_event_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    device LowCardinality(String) COMMENT 'Interface',
    cause UInt8 COMMENT '1 station queue (CoDel), 2 station queue (over limit), 3 qdisc or interface queue, 4 MAC failure',
    events SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows',
    pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets lost'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, device, cause, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Loss that an AP\'s own counters admit, per minute and cause';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_drop_event_1m TO drop_event_1m AS
SELECT
    ap_id, toStartOfMinute(s.t) AS t, device, cause,
    sum(s.events) AS events, sum(s.pkts) AS pkts
FROM drop_event_1s AS s
GROUP BY ap_id, t, device, cause;

-- A flow has a row per decision interval in which something changed, so a mean of its round trips is a mean over its active time.
-- Addresses: as short-lived as the raw rows.
CREATE TABLE IF NOT EXISTS flow_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    flow_id UInt64 COMMENT 'Flow',
    direction UInt8 COMMENT 'Direction of the data: 0 down, 1 up',
    client_addr IPv6 COMMENT 'Address on the Wi-Fi side',
    server_addr IPv6 COMMENT 'Address on the wired side',
    client_port UInt16 COMMENT 'Port on the Wi-Fi side',
    server_port UInt16 COMMENT 'Port on the wired side',
    station_mac SimpleAggregateFunction(max, UInt64) COMMENT 'Station that carries the flow; 0 while unknown',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    sent_bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Payload bytes seen, counter [B]',
    sent_pkts SimpleAggregateFunction(max, UInt64) COMMENT 'Segments with payload, counter',
    retrans_bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Payload bytes seen again, counter [B]',
    retrans_pkts SimpleAggregateFunction(max, UInt64) COMMENT 'Segments that repeat payload, counter',
    delivered_bytes SimpleAggregateFunction(max, UInt64) COMMENT 'Bytes acknowledged, counter [B]',
    dup_acks SimpleAggregateFunction(max, UInt64) COMMENT 'Duplicate ACKs, counter',
    unacked_bytes_max SimpleAggregateFunction(max, UInt32) COMMENT 'Bytes seen and not yet acknowledged, largest value [B]',
    delivery_rate_kbps_max SimpleAggregateFunction(max, UInt32) COMMENT 'Delivery rate, largest value [kbit/s]',
    rtt_down_us_min SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Round trip AP to receiver and back, smallest value [us]; NULL before the first sample',
    rtt_down_us_max SimpleAggregateFunction(max, UInt32) COMMENT 'Round trip AP to receiver and back, largest value [us]',
    rtt_down_us_sum SimpleAggregateFunction(sum, UInt64) COMMENT 'Round trip AP to receiver and back, sum over rows [us]',
    rtt_down_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows in that sum',
    rtt_up_us_min SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Round trip AP to sender and back, smallest value [us]; NULL before the first sample',
    rtt_up_us_max SimpleAggregateFunction(max, UInt32) COMMENT 'Round trip AP to sender and back, largest value [us]',
    rtt_up_us_sum SimpleAggregateFunction(sum, UInt64) COMMENT 'Round trip AP to sender and back, sum over rows [us]',
    rtt_up_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows in that sum'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, toStartOfHour(t), flow_id, direction, client_addr, server_addr, client_port, server_port, t)
TTL t + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A flow\'s minute - counters at their largest, round trips';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_flow_1m TO flow_1m AS
SELECT
    ap_id, toStartOfMinute(ts) AS t, flow_id, direction, client_addr, server_addr, client_port, server_port,
    max(f.station_mac) AS station_mac, count() AS rows, max(f.sent_bytes) AS sent_bytes,
    max(f.sent_pkts) AS sent_pkts, max(f.retrans_bytes) AS retrans_bytes, max(f.retrans_pkts) AS retrans_pkts,
    max(f.delivered_bytes) AS delivered_bytes, max(f.dup_acks) AS dup_acks,
    max(f.unacked_bytes) AS unacked_bytes_max, max(f.delivery_rate_kbps) AS delivery_rate_kbps_max,
    min(nullIf(f.rtt_down_us, 0)) AS rtt_down_us_min, max(f.rtt_down_us) AS rtt_down_us_max,
    sum(f.rtt_down_us) AS rtt_down_us_sum, countIf(f.rtt_down_us > 0) AS rtt_down_rows,
    min(nullIf(f.rtt_up_us, 0)) AS rtt_up_us_min, max(f.rtt_up_us) AS rtt_up_us_max,
    sum(f.rtt_up_us) AS rtt_up_us_sum, countIf(f.rtt_up_us > 0) AS rtt_up_rows
FROM flow AS f
GROUP BY ap_id, t, flow_id, direction, client_addr, server_addr, client_port, server_port;

-- Label windows overlap (1 s long, one each 100 ms). Classes count every window; packets are added over the windows that start at a
-- multiple of their length (tiles), so that each packet counts once.
CREATE TABLE IF NOT EXISTS label_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    site LowCardinality(String) COMMENT 'Site of the access point',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    windows SimpleAggregateFunction(sum, UInt64) COMMENT 'Label windows that start in the minute',
    incomplete SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these with a batch or tick missing',
    good SimpleAggregateFunction(sum, UInt64) COMMENT 'Windows of class Good',
    acceptable SimpleAggregateFunction(sum, UInt64) COMMENT 'Windows of class Acceptable',
    poor SimpleAggregateFunction(sum, UInt64) COMMENT 'Windows of class Poor',
    bad SimpleAggregateFunction(sum, UInt64) COMMENT 'Windows of class Bad',
    tiles SimpleAggregateFunction(sum, UInt64) COMMENT 'Windows that are added up below',
    offered_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Segments offered, over the tiles',
    offered_bytes SimpleAggregateFunction(sum, UInt64) COMMENT 'Payload offered [B], over the tiles',
    lost_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Segments seen again, over the tiles',
    lost_bytes SimpleAggregateFunction(sum, UInt64) COMMENT 'Payload seen again [B], over the tiles',
    mac_lost_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Frames that the MAC gave up, over the tiles',
    congestion_lost_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Segments lost to congestion, over the tiles',
    queue_drop_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets that the kernel\'s queues dropped, over the tiles'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, site, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'An AP\'s minute of labels';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_label_1m TO label_1m AS
WITH toUnixTimestamp64Micro(ts) % l.window_us = 0 AS tile
SELECT
    ap_id, site, toStartOfMinute(ts) AS t,
    count() AS windows, countIf(l.complete = 0) AS incomplete, countIf(l.class = 'Good') AS good,
    countIf(l.class = 'Acceptable') AS acceptable, countIf(l.class = 'Poor') AS poor,
    countIf(l.class = 'Bad') AS bad, countIf(tile) AS tiles, sumIf(l.offered_pkts, tile) AS offered_pkts,
    sumIf(l.offered_bytes, tile) AS offered_bytes, sumIf(l.lost_pkts, tile) AS lost_pkts,
    sumIf(l.lost_bytes, tile) AS lost_bytes, sumIf(l.mac_lost_pkts, tile) AS mac_lost_pkts,
    sumIf(l.congestion_lost_pkts, tile) AS congestion_lost_pkts, sumIf(l.queue_drop_pkts, tile) AS queue_drop_pkts
FROM label AS l
GROUP BY ap_id, site, t;

CREATE TABLE IF NOT EXISTS batch_1m
(
    ap_id LowCardinality(String) COMMENT 'Access point',
    site LowCardinality(String) COMMENT 'Site of the access point',
    topic LowCardinality(String) COMMENT 'Kafka topic',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    batches SimpleAggregateFunction(sum, UInt64) COMMENT 'Batches',
    ticks SimpleAggregateFunction(sum, UInt64) COMMENT 'Ticks covered',
    ticks_missed SimpleAggregateFunction(sum, UInt64) COMMENT 'Ticks on which nothing could be sampled',
    ring_drops SimpleAggregateFunction(sum, UInt64) COMMENT 'Packets that the capture ring let go',
    rows_dropped SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows that did not fit the exporter\'s buffers',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows',
    bytes SimpleAggregateFunction(sum, UInt64) COMMENT 'Bytes before compression'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, site, topic, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'What an AP sent in a minute, per topic';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_batch_1m TO batch_1m AS
SELECT
    ap_id, site, topic, toStartOfMinute(ts) AS t,
    count() AS batches, sum(b.ticks) AS ticks, sum(b.ticks_missed) AS ticks_missed, sum(b.ring_drops) AS ring_drops,
    sum(b.rows_dropped) AS rows_dropped, sum(b.rows) AS rows, sum(b.bytes) AS bytes
FROM batch AS b
GROUP BY ap_id, site, topic, t;
