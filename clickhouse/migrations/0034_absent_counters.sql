-- What a driver does not count is NULL, not 0: counters and signal of a station, counters and backlog of its access
-- categories. A rollup of nothing but NULL is NULL; the views of 0004 and after make NULL of it too.
-- Each ALTER rewrites these columns of the rows that are there; inserts go on meanwhile.
ALTER TABLE station_1s MODIFY COLUMN `tx_retries` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Retransmissions by the MAC, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_failed` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Frames that the MAC gave up, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `rx_drop_misc` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Received frames dropped for unspecified reasons, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `tx_airtime_us` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Airtime spent sending to the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `rx_airtime_us` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Airtime spent receiving from the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `signal_dbm_us` SimpleAggregateFunction(sum, Nullable(Int64)) COMMENT 'Signal, times time held [dBm us]',
    MODIFY COLUMN `signal_dbm_min` SimpleAggregateFunction(min, Nullable(Int8)) COMMENT 'Signal, smallest value sent [dBm]';
ALTER TABLE station_1m MODIFY COLUMN `tx_retries` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Retransmissions by the MAC, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_retries_first` SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Retransmissions by the MAC, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_failed` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Frames that the MAC gave up, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_failed_first` SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Frames that the MAC gave up, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `rx_drop_misc` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Received frames dropped for unspecified reasons, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `rx_drop_misc_first` SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'Received frames dropped for unspecified reasons, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `tx_airtime_us` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Airtime spent sending to the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `tx_airtime_us_first` SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'Airtime spent sending to the station, smallest of its seconds [us]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `rx_airtime_us` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'Airtime spent receiving from the station, counter [us]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `rx_airtime_us_first` SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'Airtime spent receiving from the station, smallest of its seconds [us]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `signal_dbm_us` SimpleAggregateFunction(sum, Nullable(Int64)) COMMENT 'Signal, times time held [dBm us]',
    MODIFY COLUMN `signal_dbm_min` SimpleAggregateFunction(min, Nullable(Int8)) COMMENT 'Signal, smallest value sent [dBm]';
ALTER TABLE station_ac_1s MODIFY COLUMN `msdu_pkts` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'MSDUs given to the MAC, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_retries` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'MSDU retries, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_failed` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'MSDUs that the MAC gave up, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `drops` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets that CoDel dropped, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `ecn_marks` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets that CoDel marked, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `overlimit` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Times that the queue was cut for being over its limit, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_bytes` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Bytes taken from the queue, counter of 32 bits [B]' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_pkts` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets taken from the queue, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `backlog_bytes_us` SimpleAggregateFunction(sum, Nullable(UInt64)) COMMENT 'Bytes waiting, times time held [B us]',
    MODIFY COLUMN `backlog_bytes_max` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Bytes waiting, largest value sent [B]',
    MODIFY COLUMN `backlog_pkts_us` SimpleAggregateFunction(sum, Nullable(UInt64)) COMMENT 'Packets waiting, times time held [pkt us]',
    MODIFY COLUMN `backlog_pkts_max` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets waiting, largest value sent [pkt]';
ALTER TABLE station_ac_1m MODIFY COLUMN `msdu_pkts` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'MSDUs given to the MAC, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_pkts_first` SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'MSDUs given to the MAC, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_retries` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'MSDU retries, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_retries_first` SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'MSDU retries, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_failed` SimpleAggregateFunction(max, Nullable(UInt64)) COMMENT 'MSDUs that the MAC gave up, counter' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_failed_first` SimpleAggregateFunction(min, Nullable(UInt64)) COMMENT 'MSDUs that the MAC gave up, smallest of its seconds' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `drops` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets that CoDel dropped, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `drops_first` SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Packets that CoDel dropped, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `ecn_marks` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets that CoDel marked, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `ecn_marks_first` SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Packets that CoDel marked, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `overlimit` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Times that the queue was cut for being over its limit, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `overlimit_first` SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Times that the queue was cut for being over its limit, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_pkts` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets taken from the queue, counter' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_pkts_first` SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Packets taken from the queue, smallest of its seconds' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `backlog_bytes_us` SimpleAggregateFunction(sum, Nullable(UInt64)) COMMENT 'Bytes waiting, times time held [B us]',
    MODIFY COLUMN `backlog_bytes_max` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Bytes waiting, largest value sent [B]',
    MODIFY COLUMN `backlog_pkts_us` SimpleAggregateFunction(sum, Nullable(UInt64)) COMMENT 'Packets waiting, times time held [pkt us]',
    MODIFY COLUMN `backlog_pkts_max` SimpleAggregateFunction(max, Nullable(UInt32)) COMMENT 'Packets waiting, largest value sent [pkt]';
ALTER TABLE station MODIFY COLUMN `tx_retries` Nullable(UInt32) COMMENT 'Retransmissions by the MAC' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_failed` Nullable(UInt32) COMMENT 'Frames that the MAC gave up [pkt]' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `rx_drop_misc` Nullable(UInt64) COMMENT 'Received frames dropped for unspecified reasons [pkt]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `beacon_loss` Nullable(UInt32) COMMENT 'Times that beacon loss was detected' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `signal_dbm` Nullable(Int8) COMMENT 'Signal of the last frame received [dBm]' CODEC(ZSTD(1)),
    MODIFY COLUMN `signal_avg_dbm` Nullable(Int8) COMMENT 'Running average of the signal [dBm]' CODEC(ZSTD(1)),
    MODIFY COLUMN `tx_airtime_us` Nullable(UInt64) COMMENT 'Airtime spent sending to the station [us]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `rx_airtime_us` Nullable(UInt64) COMMENT 'Airtime spent receiving from the station [us]' CODEC(Delta(8), ZSTD(1));
ALTER TABLE station_ac MODIFY COLUMN `msdu_pkts` Nullable(UInt64) COMMENT 'MSDUs given to the MAC [pkt]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_retries` Nullable(UInt64) COMMENT 'MSDU retries' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `msdu_failed` Nullable(UInt64) COMMENT 'MSDUs that the MAC gave up [pkt]' CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN `backlog_bytes` Nullable(UInt32) COMMENT 'Bytes waiting in the transmit queue [B]' CODEC(T64, ZSTD(1)),
    MODIFY COLUMN `backlog_pkts` Nullable(UInt32) COMMENT 'Packets waiting in the transmit queue [pkt]' CODEC(T64, ZSTD(1)),
    MODIFY COLUMN `flows` Nullable(UInt32) COMMENT 'Flows that the queue has seen' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `drops` Nullable(UInt32) COMMENT 'Packets that CoDel dropped [pkt]' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `ecn_marks` Nullable(UInt32) COMMENT 'Packets that CoDel marked [pkt]' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `overlimit` Nullable(UInt32) COMMENT 'Times that the queue was cut for being over its limit' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `collisions` Nullable(UInt32) COMMENT 'Hash collisions of flows' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_bytes` Nullable(UInt32) COMMENT 'Bytes taken from the queue [B]' CODEC(Delta(4), ZSTD(1)),
    MODIFY COLUMN `tx_pkts` Nullable(UInt32) COMMENT 'Packets taken from the queue [pkt]' CODEC(Delta(4), ZSTD(1));

-- A counter that appears has not grown by its value.
-- A station's second: what was added to its counters since its second before, means over time.
CREATE OR REPLACE VIEW v_station_1s AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64,
    (new, old) -> if(new >= old, toUInt64(new - old), if(old - new > 2147483648 AND old < 4294967296, toUInt64(new + 4294967296 - old), toUInt64(new))) AS increase32
SELECT
    ap_id, mac, device, MACNumToString(r.mac) AS station, t, span_s,
    increase64(r.rx_bytes, r.rx_bytes_before) AS rx_bytes, increase64(r.tx_bytes, r.tx_bytes_before) AS tx_bytes,
    increase64(r.rx_drop_misc, ifNull(r.rx_drop_misc_before, r.rx_drop_misc)) AS rx_drop_misc,
    increase64(r.tx_airtime_us, ifNull(r.tx_airtime_us_before, r.tx_airtime_us)) AS tx_airtime_us,
    increase64(r.rx_airtime_us, ifNull(r.rx_airtime_us_before, r.rx_airtime_us)) AS rx_airtime_us,
    increase32(r.rx_pkts, r.rx_pkts_before) AS rx_pkts, increase32(r.tx_pkts, r.tx_pkts_before) AS tx_pkts,
    increase32(r.tx_retries, ifNull(r.tx_retries_before, r.tx_retries)) AS tx_retries,
    increase32(r.tx_failed, ifNull(r.tx_failed_before, r.tx_failed)) AS tx_failed,
    round(r.signal_dbm_us / nullIf(r.held_us, 0), 1) AS signal_dbm_avg,
    round(r.tx_bitrate_kbps_us / nullIf(r.held_us, 0), 0) AS tx_bitrate_kbps_avg,
    round(r.rx_bitrate_kbps_us / nullIf(r.held_us, 0), 0) AS rx_bitrate_kbps_avg, r.signal_dbm_min AS signal_dbm_min,
    r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(rx_bytes, 1, rx_bytes) OVER entity AS rx_bytes_before,
        lagInFrame(tx_bytes, 1, tx_bytes) OVER entity AS tx_bytes_before,
        lagInFrame(rx_drop_misc, 1, rx_drop_misc) OVER entity AS rx_drop_misc_before,
        lagInFrame(tx_airtime_us, 1, tx_airtime_us) OVER entity AS tx_airtime_us_before,
        lagInFrame(rx_airtime_us, 1, rx_airtime_us) OVER entity AS rx_airtime_us_before,
        lagInFrame(rx_pkts, 1, rx_pkts) OVER entity AS rx_pkts_before,
        lagInFrame(tx_pkts, 1, tx_pkts) OVER entity AS tx_pkts_before,
        lagInFrame(tx_retries, 1, tx_retries) OVER entity AS tx_retries_before,
        lagInFrame(tx_failed, 1, tx_failed) OVER entity AS tx_failed_before
    FROM
    (
        SELECT ap_id, mac, device, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.signal_dbm_us) AS signal_dbm_us,
            sum(s.tx_bitrate_kbps_us) AS tx_bitrate_kbps_us, sum(s.rx_bitrate_kbps_us) AS rx_bitrate_kbps_us,
            max(s.rx_bytes) AS rx_bytes, max(s.tx_bytes) AS tx_bytes, max(s.rx_drop_misc) AS rx_drop_misc,
            max(s.tx_airtime_us) AS tx_airtime_us, max(s.rx_airtime_us) AS rx_airtime_us, max(s.rx_pkts) AS rx_pkts,
            max(s.tx_pkts) AS tx_pkts, max(s.tx_retries) AS tx_retries, max(s.tx_failed) AS tx_failed,
            min(s.signal_dbm_min) AS signal_dbm_min
        FROM station_1s AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 SECOND AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, mac, device, t
    )
    WINDOW entity AS (PARTITION BY ap_id, mac, device ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
WHERE t >= {from:DateTime64(6, 'UTC')};

-- An access category's second at a station.
CREATE OR REPLACE VIEW v_station_ac_1s AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64,
    (new, old) -> if(new >= old, toUInt64(new - old), if(old - new > 2147483648 AND old < 4294967296, toUInt64(new + 4294967296 - old), toUInt64(new))) AS increase32
SELECT
    ap_id, mac, device, ac, MACNumToString(r.mac) AS station, t, span_s,
    increase64(r.msdu_pkts, ifNull(r.msdu_pkts_before, r.msdu_pkts)) AS msdu_pkts,
    increase64(r.msdu_retries, ifNull(r.msdu_retries_before, r.msdu_retries)) AS msdu_retries,
    increase64(r.msdu_failed, ifNull(r.msdu_failed_before, r.msdu_failed)) AS msdu_failed, increase32(r.drops, ifNull(r.drops_before, r.drops)) AS drops,
    increase32(r.ecn_marks, ifNull(r.ecn_marks_before, r.ecn_marks)) AS ecn_marks,
    increase32(r.overlimit, ifNull(r.overlimit_before, r.overlimit)) AS overlimit, increase32(r.tx_pkts, ifNull(r.tx_pkts_before, r.tx_pkts)) AS tx_pkts,
    increase32(r.tx_bytes, ifNull(r.tx_bytes_before, r.tx_bytes)) AS tx_bytes,
    round(r.backlog_bytes_us / nullIf(r.held_us, 0), 1) AS backlog_bytes_avg,
    round(r.backlog_pkts_us / nullIf(r.held_us, 0), 2) AS backlog_pkts_avg, r.backlog_bytes_max AS backlog_bytes_max,
    r.backlog_pkts_max AS backlog_pkts_max, r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(msdu_pkts, 1, msdu_pkts) OVER entity AS msdu_pkts_before,
        lagInFrame(msdu_retries, 1, msdu_retries) OVER entity AS msdu_retries_before,
        lagInFrame(msdu_failed, 1, msdu_failed) OVER entity AS msdu_failed_before,
        lagInFrame(drops, 1, drops) OVER entity AS drops_before,
        lagInFrame(ecn_marks, 1, ecn_marks) OVER entity AS ecn_marks_before,
        lagInFrame(overlimit, 1, overlimit) OVER entity AS overlimit_before,
        lagInFrame(tx_pkts, 1, tx_pkts) OVER entity AS tx_pkts_before,
        lagInFrame(tx_bytes, 1, tx_bytes) OVER entity AS tx_bytes_before
    FROM
    (
        SELECT ap_id, mac, device, ac, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.backlog_bytes_us) AS backlog_bytes_us,
            sum(s.backlog_pkts_us) AS backlog_pkts_us, max(s.msdu_pkts) AS msdu_pkts,
            max(s.msdu_retries) AS msdu_retries, max(s.msdu_failed) AS msdu_failed, max(s.drops) AS drops,
            max(s.ecn_marks) AS ecn_marks, max(s.overlimit) AS overlimit, max(s.tx_pkts) AS tx_pkts,
            max(s.tx_bytes) AS tx_bytes, max(s.backlog_bytes_max) AS backlog_bytes_max,
            max(s.backlog_pkts_max) AS backlog_pkts_max
        FROM station_ac_1s AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 SECOND AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, mac, device, ac, t
    )
    WINDOW entity AS (PARTITION BY ap_id, mac, device, ac ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
WHERE t >= {from:DateTime64(6, 'UTC')};

-- A station's minute: what was added to its counters since its minute before, means over time.
CREATE OR REPLACE VIEW v_station_1m AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64,
    (new, old) -> if(new >= old, toUInt64(new - old), if(old - new > 2147483648 AND old < 4294967296, toUInt64(new + 4294967296 - old), toUInt64(new))) AS increase32
SELECT
    ap_id, mac, device, MACNumToString(r.mac) AS station, t, span_s,
    increase64(r.rx_bytes, r.rx_bytes_before) AS rx_bytes, increase64(r.tx_bytes, r.tx_bytes_before) AS tx_bytes,
    increase64(r.rx_drop_misc, ifNull(r.rx_drop_misc_before, r.rx_drop_misc)) AS rx_drop_misc,
    increase64(r.tx_airtime_us, ifNull(r.tx_airtime_us_before, r.tx_airtime_us)) AS tx_airtime_us,
    increase64(r.rx_airtime_us, ifNull(r.rx_airtime_us_before, r.rx_airtime_us)) AS rx_airtime_us,
    increase32(r.rx_pkts, r.rx_pkts_before) AS rx_pkts, increase32(r.tx_pkts, r.tx_pkts_before) AS tx_pkts,
    increase32(r.tx_retries, ifNull(r.tx_retries_before, r.tx_retries)) AS tx_retries,
    increase32(r.tx_failed, ifNull(r.tx_failed_before, r.tx_failed)) AS tx_failed,
    round(r.signal_dbm_us / nullIf(r.held_us, 0), 1) AS signal_dbm_avg,
    round(r.tx_bitrate_kbps_us / nullIf(r.held_us, 0), 0) AS tx_bitrate_kbps_avg,
    round(r.rx_bitrate_kbps_us / nullIf(r.held_us, 0), 0) AS rx_bitrate_kbps_avg, r.signal_dbm_min AS signal_dbm_min,
    r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(rx_bytes, 1, rx_bytes_first) OVER entity AS rx_bytes_before,
        lagInFrame(tx_bytes, 1, tx_bytes_first) OVER entity AS tx_bytes_before,
        lagInFrame(rx_drop_misc, 1, rx_drop_misc_first) OVER entity AS rx_drop_misc_before,
        lagInFrame(tx_airtime_us, 1, tx_airtime_us_first) OVER entity AS tx_airtime_us_before,
        lagInFrame(rx_airtime_us, 1, rx_airtime_us_first) OVER entity AS rx_airtime_us_before,
        lagInFrame(rx_pkts, 1, if(rx_pkts - rx_pkts_first > 2147483648, rx_pkts, rx_pkts_first)) OVER entity AS rx_pkts_before,
        lagInFrame(tx_pkts, 1, if(tx_pkts - tx_pkts_first > 2147483648, tx_pkts, tx_pkts_first)) OVER entity AS tx_pkts_before,
        lagInFrame(tx_retries, 1, if(tx_retries - tx_retries_first > 2147483648, tx_retries, tx_retries_first)) OVER entity AS tx_retries_before,
        lagInFrame(tx_failed, 1, if(tx_failed - tx_failed_first > 2147483648, tx_failed, tx_failed_first)) OVER entity AS tx_failed_before
    FROM
    (
        SELECT ap_id, mac, device, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.signal_dbm_us) AS signal_dbm_us,
            sum(s.tx_bitrate_kbps_us) AS tx_bitrate_kbps_us, sum(s.rx_bitrate_kbps_us) AS rx_bitrate_kbps_us,
            max(s.rx_bytes) AS rx_bytes, max(s.tx_bytes) AS tx_bytes, max(s.rx_drop_misc) AS rx_drop_misc,
            max(s.tx_airtime_us) AS tx_airtime_us, max(s.rx_airtime_us) AS rx_airtime_us, max(s.rx_pkts) AS rx_pkts,
            max(s.tx_pkts) AS tx_pkts, max(s.tx_retries) AS tx_retries, max(s.tx_failed) AS tx_failed,
            min(s.signal_dbm_min) AS signal_dbm_min, min(s.rx_bytes_first) AS rx_bytes_first,
            min(s.tx_bytes_first) AS tx_bytes_first, min(s.rx_drop_misc_first) AS rx_drop_misc_first,
            min(s.tx_airtime_us_first) AS tx_airtime_us_first, min(s.rx_airtime_us_first) AS rx_airtime_us_first,
            min(s.rx_pkts_first) AS rx_pkts_first, min(s.tx_pkts_first) AS tx_pkts_first,
            min(s.tx_retries_first) AS tx_retries_first, min(s.tx_failed_first) AS tx_failed_first
        FROM station_1m AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 MINUTE AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, mac, device, t
    )
    WINDOW entity AS (PARTITION BY ap_id, mac, device ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
WHERE t >= {from:DateTime64(6, 'UTC')};

-- An access category's minute at a station.
CREATE OR REPLACE VIEW v_station_ac_1m AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64,
    (new, old) -> if(new >= old, toUInt64(new - old), if(old - new > 2147483648 AND old < 4294967296, toUInt64(new + 4294967296 - old), toUInt64(new))) AS increase32
SELECT
    ap_id, mac, device, ac, MACNumToString(r.mac) AS station, t, span_s,
    increase64(r.msdu_pkts, ifNull(r.msdu_pkts_before, r.msdu_pkts)) AS msdu_pkts,
    increase64(r.msdu_retries, ifNull(r.msdu_retries_before, r.msdu_retries)) AS msdu_retries,
    increase64(r.msdu_failed, ifNull(r.msdu_failed_before, r.msdu_failed)) AS msdu_failed, increase32(r.drops, ifNull(r.drops_before, r.drops)) AS drops,
    increase32(r.ecn_marks, ifNull(r.ecn_marks_before, r.ecn_marks)) AS ecn_marks,
    increase32(r.overlimit, ifNull(r.overlimit_before, r.overlimit)) AS overlimit, increase32(r.tx_pkts, ifNull(r.tx_pkts_before, r.tx_pkts)) AS tx_pkts,
    round(r.backlog_bytes_us / nullIf(r.held_us, 0), 1) AS backlog_bytes_avg,
    round(r.backlog_pkts_us / nullIf(r.held_us, 0), 2) AS backlog_pkts_avg, r.backlog_bytes_max AS backlog_bytes_max,
    r.backlog_pkts_max AS backlog_pkts_max, r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(msdu_pkts, 1, msdu_pkts_first) OVER entity AS msdu_pkts_before,
        lagInFrame(msdu_retries, 1, msdu_retries_first) OVER entity AS msdu_retries_before,
        lagInFrame(msdu_failed, 1, msdu_failed_first) OVER entity AS msdu_failed_before,
        lagInFrame(drops, 1, if(drops - drops_first > 2147483648, drops, drops_first)) OVER entity AS drops_before,
        lagInFrame(ecn_marks, 1, if(ecn_marks - ecn_marks_first > 2147483648, ecn_marks, ecn_marks_first)) OVER entity AS ecn_marks_before,
        lagInFrame(overlimit, 1, if(overlimit - overlimit_first > 2147483648, overlimit, overlimit_first)) OVER entity AS overlimit_before,
        lagInFrame(tx_pkts, 1, if(tx_pkts - tx_pkts_first > 2147483648, tx_pkts, tx_pkts_first)) OVER entity AS tx_pkts_before
    FROM
    (
        SELECT ap_id, mac, device, ac, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.backlog_bytes_us) AS backlog_bytes_us,
            sum(s.backlog_pkts_us) AS backlog_pkts_us, max(s.msdu_pkts) AS msdu_pkts,
            max(s.msdu_retries) AS msdu_retries, max(s.msdu_failed) AS msdu_failed, max(s.drops) AS drops,
            max(s.ecn_marks) AS ecn_marks, max(s.overlimit) AS overlimit, max(s.tx_pkts) AS tx_pkts,
            max(s.backlog_bytes_max) AS backlog_bytes_max, max(s.backlog_pkts_max) AS backlog_pkts_max,
            min(s.msdu_pkts_first) AS msdu_pkts_first, min(s.msdu_retries_first) AS msdu_retries_first,
            min(s.msdu_failed_first) AS msdu_failed_first, min(s.drops_first) AS drops_first,
            min(s.ecn_marks_first) AS ecn_marks_first, min(s.overlimit_first) AS overlimit_first,
            min(s.tx_pkts_first) AS tx_pkts_first
        FROM station_ac_1m AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 MINUTE AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, mac, device, ac, t
    )
    WINDOW entity AS (PARTITION BY ap_id, mac, device, ac ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
WHERE t >= {from:DateTime64(6, 'UTC')};
