-- An access point's second and minute, its queueing disciplines included: 0004 counted the station queues of mac80211 only,
-- so that an access point that queues in a qdisc of its interface seemed to have no backlog and no drops. Root qdiscs only,
-- because a root adds up its children; kind mac80211 is left out, because it repeats the station queues.

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
    SELECT ap_id, t, 0, 0, 0, 0, 0, 0, 0, x.drops, ifNull(x.backlog_bytes_avg, 0), x.backlog_bytes_max, 0, 0, 0, 0
    FROM {database}.v_queue_1s(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    WHERE parent = 4294967295 AND kind != 'mac80211'
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
    SELECT ap_id, t, 0, 0, 0, 0, 0, 0, 0, x.drops, ifNull(x.backlog_bytes_avg, 0), x.backlog_bytes_max, 0, 0, 0, 0
    FROM {database}.v_queue_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    WHERE parent = 4294967295 AND kind != 'mac80211'
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
