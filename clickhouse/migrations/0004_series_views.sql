-- Views of what happened between two instants: v_X(from = …, to = …), to exclusive. Any expression that the server can
-- evaluate beforehand will do: v_station_1s(from = now() - 60, to = now()). A bucket belongs to the range when it starts in it.
--
-- Increases are differences to the entity's bucket before (see 0003 for restarts and wraps). Of an entity's first bucket a
-- per-second view has no increase, and a per-minute view what came after the bucket's first second. At the start of the
-- range the views look back 10 seconds (per second) or 10 minutes (per minute) for the bucket before. `span_s` is the time
-- to it: more than a bucket means that data are missing between. `*_avg` is a mean over time, NULL when nothing was held.
-- A view that reads a parameterised view names its database, which `migrate` fills in: {database}.

-- A station's second: what was added to its counters since its second before, means over time.
CREATE OR REPLACE VIEW v_station_1s AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64,
    (new, old) -> if(new >= old, toUInt64(new - old), if(old - new > 2147483648 AND old < 4294967296, toUInt64(new + 4294967296 - old), toUInt64(new))) AS increase32
SELECT
    ap_id, mac, device, MACNumToString(r.mac) AS station, t, span_s,
    increase64(r.rx_bytes, r.rx_bytes_before) AS rx_bytes, increase64(r.tx_bytes, r.tx_bytes_before) AS tx_bytes,
    increase64(r.rx_drop_misc, r.rx_drop_misc_before) AS rx_drop_misc,
    increase64(r.tx_airtime_us, r.tx_airtime_us_before) AS tx_airtime_us,
    increase64(r.rx_airtime_us, r.rx_airtime_us_before) AS rx_airtime_us,
    increase32(r.rx_pkts, r.rx_pkts_before) AS rx_pkts, increase32(r.tx_pkts, r.tx_pkts_before) AS tx_pkts,
    increase32(r.tx_retries, r.tx_retries_before) AS tx_retries,
    increase32(r.tx_failed, r.tx_failed_before) AS tx_failed,
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
    increase64(r.msdu_pkts, r.msdu_pkts_before) AS msdu_pkts,
    increase64(r.msdu_retries, r.msdu_retries_before) AS msdu_retries,
    increase64(r.msdu_failed, r.msdu_failed_before) AS msdu_failed, increase32(r.drops, r.drops_before) AS drops,
    increase32(r.ecn_marks, r.ecn_marks_before) AS ecn_marks,
    increase32(r.overlimit, r.overlimit_before) AS overlimit, increase32(r.tx_pkts, r.tx_pkts_before) AS tx_pkts,
    increase32(r.tx_bytes, r.tx_bytes_before) AS tx_bytes,
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

-- A queue's second.
CREATE OR REPLACE VIEW v_queue_1s AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64,
    (new, old) -> if(new >= old, toUInt64(new - old), if(old - new > 2147483648 AND old < 4294967296, toUInt64(new + 4294967296 - old), toUInt64(new))) AS increase32
SELECT
    ap_id, device, handle, parent, kind, t, span_s,
    increase64(r.bytes, r.bytes_before) AS bytes, increase32(r.pkts, r.pkts_before) AS pkts,
    increase32(r.drops, r.drops_before) AS drops, increase32(r.overlimits, r.overlimits_before) AS overlimits,
    increase32(r.requeues, r.requeues_before) AS requeues,
    increase32(r.ecn_marks, ifNull(r.ecn_marks_before, r.ecn_marks)) AS ecn_marks,
    round(r.backlog_bytes_us / nullIf(r.held_us, 0), 1) AS backlog_bytes_avg,
    round(r.qlen_pkts_us / nullIf(r.held_us, 0), 2) AS qlen_pkts_avg, r.backlog_bytes_max AS backlog_bytes_max,
    r.qlen_pkts_max AS qlen_pkts_max, r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(bytes, 1, bytes) OVER entity AS bytes_before,
        lagInFrame(pkts, 1, pkts) OVER entity AS pkts_before,
        lagInFrame(drops, 1, drops) OVER entity AS drops_before,
        lagInFrame(overlimits, 1, overlimits) OVER entity AS overlimits_before,
        lagInFrame(requeues, 1, requeues) OVER entity AS requeues_before,
        lagInFrame(ecn_marks, 1, ecn_marks) OVER entity AS ecn_marks_before
    FROM
    (
        SELECT ap_id, device, handle, parent, kind, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.backlog_bytes_us) AS backlog_bytes_us,
            sum(s.qlen_pkts_us) AS qlen_pkts_us, max(s.bytes) AS bytes, max(s.pkts) AS pkts, max(s.drops) AS drops,
            max(s.overlimits) AS overlimits, max(s.requeues) AS requeues, max(s.ecn_marks) AS ecn_marks,
            max(s.backlog_bytes_max) AS backlog_bytes_max, max(s.qlen_pkts_max) AS qlen_pkts_max
        FROM queue_1s AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 SECOND AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, device, handle, parent, kind, t
    )
    WINDOW entity AS (PARTITION BY ap_id, device, handle, parent, kind ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
WHERE t >= {from:DateTime64(6, 'UTC')};

-- A channel's second: milliseconds in each state.
CREATE OR REPLACE VIEW v_channel_1s AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64
SELECT
    ap_id, device, frequency_mhz, t, span_s,
    increase64(r.active_ms, r.active_ms_before) AS active_ms, increase64(r.busy_ms, r.busy_ms_before) AS busy_ms,
    increase64(r.ext_busy_ms, ifNull(r.ext_busy_ms_before, r.ext_busy_ms)) AS ext_busy_ms,
    increase64(r.rx_ms, ifNull(r.rx_ms_before, r.rx_ms)) AS rx_ms,
    increase64(r.tx_ms, ifNull(r.tx_ms_before, r.tx_ms)) AS tx_ms,
    increase64(r.scan_ms, ifNull(r.scan_ms_before, r.scan_ms)) AS scan_ms,
    round(busy_ms / nullIf(active_ms, 0), 4) AS busy_ratio,
    round(r.noise_dbm_us / nullIf(r.noise_dbm_held_us, 0), 1) AS noise_dbm_avg, r.noise_dbm_max AS noise_dbm_max,
    r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(active_ms, 1, active_ms) OVER entity AS active_ms_before,
        lagInFrame(busy_ms, 1, busy_ms) OVER entity AS busy_ms_before,
        lagInFrame(ext_busy_ms, 1, ext_busy_ms) OVER entity AS ext_busy_ms_before,
        lagInFrame(rx_ms, 1, rx_ms) OVER entity AS rx_ms_before,
        lagInFrame(tx_ms, 1, tx_ms) OVER entity AS tx_ms_before,
        lagInFrame(scan_ms, 1, scan_ms) OVER entity AS scan_ms_before
    FROM
    (
        SELECT ap_id, device, frequency_mhz, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.noise_dbm_us) AS noise_dbm_us,
            sum(s.noise_dbm_held_us) AS noise_dbm_held_us, max(s.active_ms) AS active_ms, max(s.busy_ms) AS busy_ms,
            max(s.ext_busy_ms) AS ext_busy_ms, max(s.rx_ms) AS rx_ms, max(s.tx_ms) AS tx_ms,
            max(s.scan_ms) AS scan_ms, max(s.noise_dbm_max) AS noise_dbm_max
        FROM channel_1s AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 SECOND AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, device, frequency_mhz, t
    )
    WINDOW entity AS (PARTITION BY ap_id, device, frequency_mhz ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
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
    increase64(r.rx_drop_misc, r.rx_drop_misc_before) AS rx_drop_misc,
    increase64(r.tx_airtime_us, r.tx_airtime_us_before) AS tx_airtime_us,
    increase64(r.rx_airtime_us, r.rx_airtime_us_before) AS rx_airtime_us,
    increase32(r.rx_pkts, r.rx_pkts_before) AS rx_pkts, increase32(r.tx_pkts, r.tx_pkts_before) AS tx_pkts,
    increase32(r.tx_retries, r.tx_retries_before) AS tx_retries,
    increase32(r.tx_failed, r.tx_failed_before) AS tx_failed,
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
    increase64(r.msdu_pkts, r.msdu_pkts_before) AS msdu_pkts,
    increase64(r.msdu_retries, r.msdu_retries_before) AS msdu_retries,
    increase64(r.msdu_failed, r.msdu_failed_before) AS msdu_failed, increase32(r.drops, r.drops_before) AS drops,
    increase32(r.ecn_marks, r.ecn_marks_before) AS ecn_marks,
    increase32(r.overlimit, r.overlimit_before) AS overlimit, increase32(r.tx_pkts, r.tx_pkts_before) AS tx_pkts,
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

-- A queue's minute.
CREATE OR REPLACE VIEW v_queue_1m AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64,
    (new, old) -> if(new >= old, toUInt64(new - old), if(old - new > 2147483648 AND old < 4294967296, toUInt64(new + 4294967296 - old), toUInt64(new))) AS increase32
SELECT
    ap_id, device, handle, parent, kind, t, span_s,
    increase64(r.bytes, r.bytes_before) AS bytes, increase32(r.pkts, r.pkts_before) AS pkts,
    increase32(r.drops, r.drops_before) AS drops, increase32(r.overlimits, r.overlimits_before) AS overlimits,
    increase32(r.requeues, r.requeues_before) AS requeues,
    increase32(r.ecn_marks, ifNull(r.ecn_marks_before, r.ecn_marks)) AS ecn_marks,
    round(r.backlog_bytes_us / nullIf(r.held_us, 0), 1) AS backlog_bytes_avg,
    round(r.qlen_pkts_us / nullIf(r.held_us, 0), 2) AS qlen_pkts_avg, r.backlog_bytes_max AS backlog_bytes_max,
    r.qlen_pkts_max AS qlen_pkts_max, r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(bytes, 1, bytes_first) OVER entity AS bytes_before,
        lagInFrame(pkts, 1, if(pkts - pkts_first > 2147483648, pkts, pkts_first)) OVER entity AS pkts_before,
        lagInFrame(drops, 1, if(drops - drops_first > 2147483648, drops, drops_first)) OVER entity AS drops_before,
        lagInFrame(overlimits, 1, if(overlimits - overlimits_first > 2147483648, overlimits, overlimits_first)) OVER entity AS overlimits_before,
        lagInFrame(requeues, 1, if(requeues - requeues_first > 2147483648, requeues, requeues_first)) OVER entity AS requeues_before,
        lagInFrame(ecn_marks, 1, if(ecn_marks - ecn_marks_first > 2147483648, ecn_marks, ecn_marks_first)) OVER entity AS ecn_marks_before
    FROM
    (
        SELECT ap_id, device, handle, parent, kind, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.backlog_bytes_us) AS backlog_bytes_us,
            sum(s.qlen_pkts_us) AS qlen_pkts_us, max(s.bytes) AS bytes, max(s.pkts) AS pkts, max(s.drops) AS drops,
            max(s.overlimits) AS overlimits, max(s.requeues) AS requeues, max(s.ecn_marks) AS ecn_marks,
            max(s.backlog_bytes_max) AS backlog_bytes_max, max(s.qlen_pkts_max) AS qlen_pkts_max,
            min(s.bytes_first) AS bytes_first, min(s.pkts_first) AS pkts_first, min(s.drops_first) AS drops_first,
            min(s.overlimits_first) AS overlimits_first, min(s.requeues_first) AS requeues_first,
            min(s.ecn_marks_first) AS ecn_marks_first
        FROM queue_1m AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 MINUTE AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, device, handle, parent, kind, t
    )
    WINDOW entity AS (PARTITION BY ap_id, device, handle, parent, kind ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
WHERE t >= {from:DateTime64(6, 'UTC')};

-- A channel's minute: milliseconds in each state.
CREATE OR REPLACE VIEW v_channel_1m AS
WITH
    (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase64
SELECT
    ap_id, device, frequency_mhz, t, span_s,
    increase64(r.active_ms, r.active_ms_before) AS active_ms, increase64(r.busy_ms, r.busy_ms_before) AS busy_ms,
    increase64(r.ext_busy_ms, ifNull(r.ext_busy_ms_before, r.ext_busy_ms)) AS ext_busy_ms,
    increase64(r.rx_ms, ifNull(r.rx_ms_before, r.rx_ms)) AS rx_ms,
    increase64(r.tx_ms, ifNull(r.tx_ms_before, r.tx_ms)) AS tx_ms,
    increase64(r.scan_ms, ifNull(r.scan_ms_before, r.scan_ms)) AS scan_ms,
    round(busy_ms / nullIf(active_ms, 0), 4) AS busy_ratio,
    round(r.noise_dbm_us / nullIf(r.noise_dbm_held_us, 0), 1) AS noise_dbm_avg, r.noise_dbm_max AS noise_dbm_max,
    r.held_us AS held_us, r.rows AS rows
FROM
(
    SELECT
        *, toUInt32(dateDiff('second', lagInFrame(t, 1, t) OVER entity, t)) AS span_s,
        lagInFrame(active_ms, 1, active_ms_first) OVER entity AS active_ms_before,
        lagInFrame(busy_ms, 1, busy_ms_first) OVER entity AS busy_ms_before,
        lagInFrame(ext_busy_ms, 1, ext_busy_ms_first) OVER entity AS ext_busy_ms_before,
        lagInFrame(rx_ms, 1, rx_ms_first) OVER entity AS rx_ms_before,
        lagInFrame(tx_ms, 1, tx_ms_first) OVER entity AS tx_ms_before,
        lagInFrame(scan_ms, 1, scan_ms_first) OVER entity AS scan_ms_before
    FROM
    (
        SELECT ap_id, device, frequency_mhz, s.t AS t,
            sum(s.rows) AS rows, sum(s.held_us) AS held_us, sum(s.noise_dbm_us) AS noise_dbm_us,
            sum(s.noise_dbm_held_us) AS noise_dbm_held_us, max(s.active_ms) AS active_ms, max(s.busy_ms) AS busy_ms,
            max(s.ext_busy_ms) AS ext_busy_ms, max(s.rx_ms) AS rx_ms, max(s.tx_ms) AS tx_ms,
            max(s.scan_ms) AS scan_ms, max(s.noise_dbm_max) AS noise_dbm_max,
            min(s.active_ms_first) AS active_ms_first, min(s.busy_ms_first) AS busy_ms_first,
            min(s.ext_busy_ms_first) AS ext_busy_ms_first, min(s.rx_ms_first) AS rx_ms_first,
            min(s.tx_ms_first) AS tx_ms_first, min(s.scan_ms_first) AS scan_ms_first
        FROM channel_1m AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 MINUTE AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, device, frequency_mhz, t
    )
    WINDOW entity AS (PARTITION BY ap_id, device, frequency_mhz ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS r
WHERE t >= {from:DateTime64(6, 'UTC')};

-- An access point's second: its stations and queues added up, its channel, its packets. The largest backlog is the
-- sum of its queues' largest, an upper bound. Shares of air are of the time since the bucket before.
CREATE OR REPLACE VIEW v_ap_1s AS
SELECT
    ap_id, t, sum(u.station) AS stations, sum(u.rx_bytes) AS rx_bytes, sum(u.tx_bytes) AS tx_bytes, sum(u.tx_pkts) AS tx_pkts, sum(u.tx_retries) AS tx_retries,
    sum(u.tx_failed) AS tx_failed, round(sum(u.airtime_ratio), 4) AS airtime_ratio, sum(u.drops) AS queue_drops, round(sum(u.backlog_avg)) AS backlog_bytes_avg,
    sum(u.backlog_max) AS backlog_bytes_max, round(sum(u.busy_ms) / nullIf(sum(u.active_ms), 0), 4) AS busy_ratio, sum(u.tcp_pkts) AS tcp_pkts, sum(u.tcp_bytes) AS tcp_payload_bytes
FROM
(
    SELECT
        ap_id, t, 1 AS station, x.rx_bytes, x.tx_bytes, x.tx_pkts, x.tx_retries, x.tx_failed,
        (x.tx_airtime_us + x.rx_airtime_us) / 1e6 / greatest(x.span_s, 1) AS airtime_ratio,
        0 AS drops, 0 AS backlog_avg, 0 AS backlog_max, 0 AS busy_ms, 0 AS active_ms, 0 AS tcp_pkts, 0 AS tcp_bytes
    FROM {database}.v_station_1s(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    UNION ALL
    SELECT ap_id, t, 0, 0, 0, 0, 0, 0, 0, x.drops, ifNull(x.backlog_bytes_avg, 0), x.backlog_bytes_max, 0, 0, 0, 0
    FROM {database}.v_station_ac_1s(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    UNION ALL
    SELECT ap_id, t, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, x.busy_ms, x.active_ms, 0, 0
    FROM {database}.v_channel_1s(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    UNION ALL
    SELECT ap_id, p.t, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, p.pkts, p.payload_bytes
    FROM packet_1s AS p
    WHERE p.t >= {from:DateTime64(6, 'UTC')} AND p.t < {to:DateTime64(6, 'UTC')}
) AS u
GROUP BY ap_id, t
ORDER BY ap_id, t;

-- An access point's minute: its stations and queues added up, its channel, its packets. The largest backlog is the
-- sum of its queues' largest, an upper bound. Shares of air are of the time since the bucket before.
CREATE OR REPLACE VIEW v_ap_1m AS
SELECT
    ap_id, t, sum(u.station) AS stations, sum(u.rx_bytes) AS rx_bytes, sum(u.tx_bytes) AS tx_bytes, sum(u.tx_pkts) AS tx_pkts, sum(u.tx_retries) AS tx_retries,
    sum(u.tx_failed) AS tx_failed, round(sum(u.airtime_ratio), 4) AS airtime_ratio, sum(u.drops) AS queue_drops, round(sum(u.backlog_avg)) AS backlog_bytes_avg,
    sum(u.backlog_max) AS backlog_bytes_max, round(sum(u.busy_ms) / nullIf(sum(u.active_ms), 0), 4) AS busy_ratio, sum(u.tcp_pkts) AS tcp_pkts, sum(u.tcp_bytes) AS tcp_payload_bytes
FROM
(
    SELECT
        ap_id, t, 1 AS station, x.rx_bytes, x.tx_bytes, x.tx_pkts, x.tx_retries, x.tx_failed,
        (x.tx_airtime_us + x.rx_airtime_us) / 1e6 / greatest(x.span_s, 60) AS airtime_ratio,
        0 AS drops, 0 AS backlog_avg, 0 AS backlog_max, 0 AS busy_ms, 0 AS active_ms, 0 AS tcp_pkts, 0 AS tcp_bytes
    FROM {database}.v_station_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    UNION ALL
    SELECT ap_id, t, 0, 0, 0, 0, 0, 0, 0, x.drops, ifNull(x.backlog_bytes_avg, 0), x.backlog_bytes_max, 0, 0, 0, 0
    FROM {database}.v_station_ac_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    UNION ALL
    SELECT ap_id, t, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, x.busy_ms, x.active_ms, 0, 0
    FROM {database}.v_channel_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    UNION ALL
    SELECT ap_id, p.t, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, p.pkts, p.payload_bytes
    FROM packet_1m AS p
    WHERE p.t >= {from:DateTime64(6, 'UTC')} AND p.t < {to:DateTime64(6, 'UTC')}
) AS u
GROUP BY ap_id, t
ORDER BY ap_id, t;
