-- v_flows counts what is in its range. A flow without a row in the ten minutes before used to bring all that it had ever
-- sent. Its first row in the range now says where it stood; one of at most 200 packets, more than most flows send in the
-- decision interval that a first row covers, is taken for the begin of a flow and counted.
ALTER TABLE flow_1m ADD COLUMN IF NOT EXISTS sent_pkts_first SimpleAggregateFunction(min, UInt64) COMMENT 'Segments with payload, smallest counter of the minute; 0 before migration 0027';
ALTER TABLE flow_1m ADD COLUMN IF NOT EXISTS retrans_pkts_first SimpleAggregateFunction(min, UInt64) COMMENT 'Segments that repeat payload, smallest counter of the minute; 0 before migration 0027';

-- Made anew, not changed (0007 says why).
DROP VIEW IF EXISTS mv_flow_1m;

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_flow_1m TO flow_1m AS
SELECT
    ap_id, toStartOfMinute(ts) AS t, flow_id, direction, client_addr, server_addr, client_port, server_port,
    max(f.station_mac) AS station_mac, count() AS rows, max(f.sent_bytes) AS sent_bytes,
    max(f.sent_pkts) AS sent_pkts, max(f.retrans_bytes) AS retrans_bytes, max(f.retrans_pkts) AS retrans_pkts,
    min(f.sent_pkts) AS sent_pkts_first, min(f.retrans_pkts) AS retrans_pkts_first,
    max(f.delivered_bytes) AS delivered_bytes, max(f.dup_acks) AS dup_acks,
    max(f.unacked_bytes) AS unacked_bytes_max, max(f.delivery_rate_kbps) AS delivery_rate_kbps_max,
    min(nullIf(f.rtt_down_us, 0)) AS rtt_down_us_min, max(f.rtt_down_us) AS rtt_down_us_max,
    sum(f.rtt_down_us) AS rtt_down_us_sum, countIf(f.rtt_down_us > 0) AS rtt_down_rows,
    min(nullIf(f.rtt_up_us, 0)) AS rtt_up_us_min, max(f.rtt_up_us) AS rtt_up_us_max,
    sum(f.rtt_up_us) AS rtt_up_us_sum, countIf(f.rtt_up_us > 0) AS rtt_up_rows
FROM flow AS f
GROUP BY ap_id, t, flow_id, direction, client_addr, server_addr, client_port, server_port;

CREATE OR REPLACE VIEW v_flows AS
WITH (new, old) -> if(new >= old, toUInt64(new - old), toUInt64(new)) AS increase
SELECT
    ap_id, lower(hex(flow_id)) AS flow, if(direction = 0, 'down', 'up') AS data,
    concat(replaceOne(toString(client_addr), '::ffff:', ''), ' ', toString(client_port)) AS client,
    concat(replaceOne(toString(server_addr), '::ffff:', ''), ' ', toString(server_port)) AS server,
    if(max(mac) = 0, '', MACNumToString(max(mac))) AS station, min(t) AS first_minute, count() AS minutes,
    sum(increase(f.sent_pkts, sent_pkts_before)) AS sent_pkts, sum(increase(f.retrans_pkts, retrans_pkts_before)) AS retrans_pkts,
    round(retrans_pkts / nullIf(sent_pkts, 0), 5) AS retrans_ratio,
    round(min(rtt_min) / 1000, 2) AS rtt_min_ms, round(sum(rtt_sum) / nullIf(sum(rtt_rows), 0) / 1000, 2) AS rtt_avg_ms,
    round(max(rtt_max) / 1000, 2) AS rtt_max_ms, round(rtt_avg_ms / nullIf(rtt_min_ms, 0), 2) AS rtt_inflation
FROM
(
    SELECT
        *, sent_pkts_first > 200 AS began_before,
        ifNull(lagInFrame(toNullable(sent_pkts)) OVER flow, if(began_before, sent_pkts_first, 0)) AS sent_pkts_before,
        ifNull(lagInFrame(toNullable(retrans_pkts)) OVER flow, if(began_before, retrans_pkts_first, 0)) AS retrans_pkts_before
    FROM
    (
        SELECT
            ap_id, flow_id, direction, client_addr, server_addr, client_port, server_port, s.t AS t, max(s.station_mac) AS mac,
            max(s.sent_pkts) AS sent_pkts, max(s.retrans_pkts) AS retrans_pkts,
            min(s.sent_pkts_first) AS sent_pkts_first, min(s.retrans_pkts_first) AS retrans_pkts_first,
            min(s.rtt_down_us_min) AS rtt_min, max(s.rtt_down_us_max) AS rtt_max, sum(s.rtt_down_us_sum) AS rtt_sum, sum(s.rtt_down_rows) AS rtt_rows
        FROM flow_1m AS s
        WHERE s.t >= toDateTime({from:DateTime64(6, 'UTC')}, 'UTC') - INTERVAL 10 MINUTE AND s.t < {to:DateTime64(6, 'UTC')}
        GROUP BY ap_id, flow_id, direction, client_addr, server_addr, client_port, server_port, t
    )
    WINDOW flow AS (PARTITION BY ap_id, flow_id, direction ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS f
WHERE f.t >= {from:DateTime64(6, 'UTC')}
GROUP BY ap_id, flow_id, direction, client_addr, server_addr, client_port, server_port
ORDER BY rtt_inflation DESC NULLS LAST, retrans_ratio DESC NULLS LAST, ap_id, flow_id, direction;
