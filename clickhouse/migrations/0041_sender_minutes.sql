-- What hosts tell of their connections, by minute: open ones by host and congestion control, ended ones by network of the far end too.
-- Boards and comparisons read these; single connections stand in sender_tcp and sender_session.

-- Open connections. The lab's sniffer names no host in ap_id and has no minutes here. No address: kept as other minutes are.
CREATE TABLE IF NOT EXISTS sender_tcp_1m
(
    ap_id LowCardinality(String) COMMENT 'Host',
    t DateTime('UTC') COMMENT 'Minute' CODEC(Delta(4), ZSTD(1)),
    congestion_control LowCardinality(String) COMMENT 'Congestion control of the sender',
    rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Raw rows',
    connections AggregateFunction(uniq, UInt64) COMMENT 'Connections that had one',
    interval_ms_max SimpleAggregateFunction(max, UInt32) COMMENT 'Time between two looks, longest [ms]',
    above_rows SimpleAggregateFunction(sum, UInt64) COMMENT 'Rows with a round trip and a smallest one',
    above_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Round trip above the connection\'s smallest, added up over these [us]'
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(t)
ORDER BY (ap_id, toDate(t), congestion_control, t)
TTL t + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A host\'s minute of open connections, by congestion control';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_sender_tcp_1m TO sender_tcp_1m AS
SELECT
    ap_id, toStartOfMinute(ts) AS t, congestion_control, count() AS rows, uniqState(flow_id) AS connections,
    max(s.interval_ms) AS interval_ms_max, countIf(s.rtt_us > 0 AND s.min_rtt_us > 0) AS above_rows,
    sumIf(greatest(toInt64(s.rtt_us) - s.min_rtt_us, 0), s.rtt_us > 0 AND s.min_rtt_us > 0)::UInt64 AS above_us
FROM sender_tcp AS s
WHERE ap_id != ''
GROUP BY ap_id, t, congestion_control;

-- Ended connections. A network is the half of an address that says where, so rows go when addresses go.
-- Three figures are kept for comparison, as sums over connections and over their squares: the natural logarithm of the speed, the round
-- trip above the connection's smallest one, the share sent again. They are of connections that sent more than the ten segments of the
-- initial window: before, no congestion control has had anything to decide.
CREATE TABLE IF NOT EXISTS sender_session_1m
(
    ap_id LowCardinality(String) COMMENT 'Host',
    t DateTime('UTC') COMMENT 'Minute of the ends' CODEC(Delta(4), ZSTD(1)),
    client_network String COMMENT 'Network of the far end: /24, /64; with pseudonymisation a keyed hash in the form of a /64' CODEC(ZSTD(1)),
    congestion_control LowCardinality(String) COMMENT 'Congestion control of the sender; empty: over before the first look',
    sessions SimpleAggregateFunction(sum, UInt64) COMMENT 'Connections that ended',
    ends_missed SimpleAggregateFunction(sum, UInt64) COMMENT 'Those whose end was not told; they are of the last look',
    bytes_acked SimpleAggregateFunction(sum, UInt64) COMMENT 'Bytes acknowledged [B]',
    data_segs_out SimpleAggregateFunction(sum, UInt64) COMMENT 'Segments with payload sent [pkt]',
    retrans_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Segments retransmitted [pkt]',
    delivered_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Segments delivered, of connections that know it [pkt]',
    delivered_ce_pkts SimpleAggregateFunction(sum, UInt64) COMMENT 'Of these, those that were acknowledged with ECE [pkt]',
    busy_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Time with something to send or to be acknowledged [us]',
    limited_by_ends_us SimpleAggregateFunction(sum, UInt64) COMMENT 'Of this, time bounded by the receiver\'s window or the send buffer [us]',
    rtt_min_us SimpleAggregateFunction(min, Nullable(UInt32)) COMMENT 'Smallest round trip [us]',
    speeds SimpleAggregateFunction(sum, UInt64) COMMENT 'Compared connections with a speed',
    speed_log SimpleAggregateFunction(sum, Float64) COMMENT 'Logarithm of bytes over busy time in kbit/s, added up over these',
    speed_log2 SimpleAggregateFunction(sum, Float64) COMMENT 'Its square',
    aboves SimpleAggregateFunction(sum, UInt64) COMMENT 'Compared connections with round trips',
    above_ms SimpleAggregateFunction(sum, Float64) COMMENT 'Mean round trip above the smallest one, added up over these [ms]',
    above_ms2 SimpleAggregateFunction(sum, Float64) COMMENT 'Its square',
    agains SimpleAggregateFunction(sum, UInt64) COMMENT 'Compared connections',
    again SimpleAggregateFunction(sum, Float64) COMMENT 'Share of segments sent again, added up over these',
    again2 SimpleAggregateFunction(sum, Float64) COMMENT 'Its square'
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(t)
ORDER BY (ap_id, client_network, congestion_control, t)
TTL t + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A host\'s minute of ended connections, by network of the far end and congestion control';

CREATE MATERIALIZED VIEW IF NOT EXISTS mv_sender_session_1m TO sender_session_1m AS
WITH
    s.data_segs_out > 10 AND s.congestion_control != '' AS compared,
    compared AND s.bytes_acked > 0 AND s.busy_us > 0 AS has_speed,
    log(s.bytes_acked * 8000 / s.busy_us) AS speed_ln,
    compared AND isNotNull(s.rtt_mean_us) AND s.min_rtt_us > 0 AS has_above,
    greatest(toInt64(ifNull(s.rtt_mean_us, 0)) - s.min_rtt_us, 0) / 1000 AS above_each,
    s.retrans_pkts / s.data_segs_out AS again_each
SELECT
    ap_id, toStartOfMinute(ts) AS t,
    if(startsWith(toString(s.client_addr), '::ffff:'),
        concat(IPv4NumToString(toUInt32(bitAnd(s.client_prefix, 16777215) * 256)), '/24'),
        concat(IPv6NumToString(toFixedString(unhex(leftPad(hex(reinterpretAsUInt64(s.client_prefix)), 16, '0')), 16)), '/64')) AS client_network,
    congestion_control, count() AS sessions, countIf(s.end_known = 2) AS ends_missed, sum(s.bytes_acked) AS bytes_acked,
    sum(s.data_segs_out) AS data_segs_out, sum(s.retrans_pkts) AS retrans_pkts,
    sum(ifNull(s.delivered_pkts, 0)) AS delivered_pkts, sum(ifNull(s.delivered_ce_pkts, 0)) AS delivered_ce_pkts,
    sum(s.busy_us) AS busy_us, sum(s.rwnd_limited_us + s.sndbuf_limited_us) AS limited_by_ends_us, min(nullIf(s.min_rtt_us, 0)) AS rtt_min_us,
    countIf(has_speed) AS speeds, sumIf(speed_ln, has_speed) AS speed_log, sumIf(speed_ln * speed_ln, has_speed) AS speed_log2,
    countIf(has_above) AS aboves, sumIf(above_each, has_above) AS above_ms, sumIf(above_each * above_each, has_above) AS above_ms2,
    countIf(compared) AS agains, sumIf(again_each, compared) AS again, sumIf(again_each * again_each, compared) AS again2
FROM sender_session AS s
GROUP BY ap_id, t, client_network, congestion_control;

-- How were networks served? By host, network of the far end and congestion control; NULL is not known. Compared connections alone have
-- speed_kbps (geometric mean), rtt_above_ms and sent_again (means over connections).
CREATE OR REPLACE VIEW v_sender_networks AS
SELECT
    ap_id AS host, client_network, congestion_control, sum(s.sessions) AS sessions, sum(s.ends_missed) AS ends_missed,
    sum(s.bytes_acked) AS bytes_acked, round(sum(s.retrans_pkts) / nullIf(sum(s.data_segs_out), 0), 5) AS retrans_ratio,
    round(sum(s.delivered_ce_pkts) / nullIf(sum(s.delivered_pkts), 0), 5) AS ce_ratio,
    round(sum(s.bytes_acked) * 8000 / nullIf(sum(s.busy_us), 0)) AS busy_kbps,
    round(sum(s.limited_by_ends_us) / nullIf(sum(s.busy_us), 0), 4) AS limited_by_ends_ratio, round(min(s.rtt_min_us) / 1000, 2) AS rtt_min_ms,
    sum(s.agains) AS compared, sum(s.speeds) AS speeds, sum(s.aboves) AS aboves,
    exp(sum(s.speed_log) / nullIf(sum(s.speeds), 0)) AS speed_kbps, sum(s.above_ms) / nullIf(sum(s.aboves), 0) AS rtt_above_ms,
    sum(s.again) / nullIf(sum(s.agains), 0) AS sent_again,
    -- Squares of the standard errors of the three means.
    greatest(sum(s.speed_log2) - pow(sum(s.speed_log), 2) / nullIf(speeds, 0), 0) / nullIf(speeds * (speeds - 1), 0) AS speed_log_error2,
    greatest(sum(s.above_ms2) - pow(sum(s.above_ms), 2) / nullIf(aboves, 0), 0) / nullIf(aboves * (aboves - 1), 0) AS rtt_above_ms_error2,
    greatest(sum(s.again2) - pow(sum(s.again), 2) / nullIf(compared, 0), 0) / nullIf(compared * (compared - 1), 0) AS sent_again_error2
FROM sender_session_1m AS s
WHERE t >= toStartOfMinute({from:DateTime64(6, 'UTC')}) AND t < {to:DateTime64(6, 'UTC')}
GROUP BY host, client_network, congestion_control
ORDER BY sessions DESC, host, client_network, congestion_control;

-- What did a congestion control gain on a network, against the one that its host used most, over all networks? Of each figure the
-- difference and half of its 95 percent interval (Welch's, normal); NULL below twenty connections on a side. No experiment: connections
-- of two congestion controls also differ in time and size. `weight` adds networks up: the smaller its variance, the more it counts.
CREATE OR REPLACE VIEW v_congestion_control_gain AS
WITH
    20 AS enough,
    n AS
    (
        SELECT * FROM {database}.v_sender_networks(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')})
        WHERE congestion_control != ''
    ),
    most AS
    (
        SELECT host, argMin(congestion_control, (-toInt64(sessions), congestion_control)) AS congestion_control
        FROM (SELECT host, congestion_control, sum(n.sessions) AS sessions FROM n GROUP BY host, congestion_control)
        GROUP BY host
    )
SELECT
    a.host AS host, a.client_network AS client_network, a.congestion_control AS congestion_control, most.congestion_control AS compared_with,
    a.sessions AS sessions, b.sessions AS sessions_there,
    a.speeds >= enough AND b.speeds >= enough AS has_speed, a.aboves >= enough AND b.aboves >= enough AS has_above,
    a.compared >= enough AND b.compared >= enough AS has_again,
    if(has_speed, log(a.speed_kbps / b.speed_kbps), NULL) AS speed_log,
    if(has_speed, 1.96 * sqrt(a.speed_log_error2 + b.speed_log_error2), NULL) AS speed_log_within,
    if(has_above, a.rtt_above_ms - b.rtt_above_ms, NULL) AS rtt_above_ms,
    if(has_above, 1.96 * sqrt(a.rtt_above_ms_error2 + b.rtt_above_ms_error2), NULL) AS rtt_above_ms_within,
    if(has_again, a.sent_again - b.sent_again, NULL) AS sent_again,
    if(has_again, 1.96 * sqrt(a.sent_again_error2 + b.sent_again_error2), NULL) AS sent_again_within,
    a.compared * b.compared / nullIf(a.compared + b.compared, 0) AS weight
FROM n AS a
INNER JOIN most ON most.host = a.host
LEFT JOIN n AS b ON b.host = a.host AND b.client_network = a.client_network AND b.congestion_control = most.congestion_control
WHERE a.congestion_control != most.congestion_control
ORDER BY sessions DESC, host, client_network, congestion_control;
