-- Hosts at the other end of connections (servers, proxies, caches) send what their kernels know of them: rows of
-- sender_tcp, until now of the lab's sniffer alone, and a row of sender_session at the end of each.

-- Read by host and time, by flow (joined with flow and packet of the access point on the way), and by network of the far end.
CREATE TABLE IF NOT EXISTS sender_session
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `flow_id` UInt64 COMMENT 'Flow: 64-bit FNV-1a of its 5-tuple' CODEC(ZSTD(1)),
    `client_addr` IPv6 COMMENT 'Address on the Wi-Fi side; IPv4 as ::ffff:a.b.c.d' CODEC(ZSTD(1)),
    `server_addr` IPv6 COMMENT 'Address on the wired side; IPv4 as ::ffff:a.b.c.d' CODEC(ZSTD(1)),
    `client_port` UInt16 COMMENT 'Port on the Wi-Fi side' CODEC(ZSTD(1)),
    `server_port` UInt16 COMMENT 'Port on the wired side' CODEC(ZSTD(1)),
    `station_mac` UInt64 COMMENT 'Station that carries the flow; 0 while unknown' CODEC(ZSTD(1)),
    `congestion_control` LowCardinality(String) COMMENT 'Congestion control of the sender; empty: the connection was over before the first look' CODEC(ZSTD(1)),
    `client_prefix` Int64 COMMENT 'Network of the far end: IPv4 its first 24 bits, IPv6 its first 64 as a signed number; with pseudonymisation a keyed hash of these bytes' CODEC(ZSTD(1)),
    `end_known` UInt8 COMMENT 'How the end was known: 1 the kernel told it, the columns are final; 2 it was not there any more, they are of the last look' CODEC(ZSTD(1)),
    `seen_us` Nullable(UInt64) COMMENT 'From the first look to the end [us]' CODEC(ZSTD(1)),
    `rtt_looks` UInt32 COMMENT 'Looks at it in which it had a round trip' CODEC(ZSTD(1)),
    `rtt_min_us` Nullable(UInt32) COMMENT 'Smallest smoothed round trip of these [us]' CODEC(ZSTD(1)),
    `rtt_mean_us` Nullable(UInt32) COMMENT 'Mean of them [us]' CODEC(ZSTD(1)),
    `rtt_p95_us` Nullable(UInt32) COMMENT 'Their 95th percentile, to 11 percent [us]' CODEC(ZSTD(1)),
    `rtt_us` UInt32 COMMENT 'Smoothed round trip at the end; 0: it never had one [us]' CODEC(ZSTD(1)),
    `rttvar_us` UInt32 COMMENT 'Mean deviation of the round trip at the end [us]' CODEC(ZSTD(1)),
    `min_rtt_us` UInt32 COMMENT 'Smallest round trip; 0 before the first [us]' CODEC(ZSTD(1)),
    `bytes_acked` UInt64 COMMENT 'Bytes acknowledged [B]' CODEC(ZSTD(1)),
    `segs_out` UInt32 COMMENT 'Segments sent [pkt]' CODEC(ZSTD(1)),
    `data_segs_out` UInt32 COMMENT 'Segments with payload sent [pkt]' CODEC(ZSTD(1)),
    `retrans_pkts` UInt32 COMMENT 'Segments retransmitted [pkt]' CODEC(ZSTD(1)),
    `delivered_pkts` Nullable(UInt32) COMMENT 'Segments delivered [pkt]' CODEC(ZSTD(1)),
    `delivered_ce_pkts` Nullable(UInt32) COMMENT 'Of these, those that were acknowledged with ECE [pkt]' CODEC(ZSTD(1)),
    `reorderings` Nullable(UInt32) COMMENT 'Times that reordering was seen' CODEC(ZSTD(1)),
    `reordering_pkts` UInt32 COMMENT 'Segments by which packets may be out of order before one counts as lost [pkt]' CODEC(ZSTD(1)),
    `delivery_rate_bps` UInt64 COMMENT 'Delivery rate, last measured [bit/s]' CODEC(ZSTD(1)),
    `app_limited` UInt8 COMMENT 'Was that bounded by what the application gave: 0 no, 1 yes' CODEC(ZSTD(1)),
    `busy_us` UInt64 COMMENT 'Time with something to send or to be acknowledged [us]' CODEC(ZSTD(1)),
    `rwnd_limited_us` UInt64 COMMENT 'Of this, time bounded by the receiver\'s window [us]' CODEC(ZSTD(1)),
    `sndbuf_limited_us` UInt64 COMMENT 'Of this, time bounded by the send buffer [us]' CODEC(ZSTD(1)),
    `cwnd_bytes` UInt32 COMMENT 'Congestion window at the end times MSS [B]' CODEC(ZSTD(1)),
    `mss_bytes` UInt16 COMMENT 'Sending MSS [B]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfHour(ts), flow_id, ts)
TTL toDateTime(ts) + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A connection at its sender, summed up at its end';

-- Addresses are kept for seven days, and what sender_tcp is joined with is no older.
ALTER TABLE sender_tcp MODIFY TTL toDateTime(ts) + INTERVAL 7 DAY;
ALTER TABLE sender_tcp MODIFY COMMENT 'TCP state of a connection at its sender (inet_diag); of hosts, and of the lab\'s sniffer';
-- Rows of both kinds: those of a host have no clock_offset_us, those of the sniffer no ap_id, addresses and counters of segments.
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)) FIRST;
ALTER TABLE sender_tcp MODIFY COLUMN `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1));
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)) AFTER ts;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)) AFTER boot_id;
ALTER TABLE sender_tcp MODIFY COLUMN `flow_id` UInt64 COMMENT 'Flow: 64-bit FNV-1a of its 5-tuple' CODEC(ZSTD(1)) AFTER batch_seq;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `client_addr` IPv6 COMMENT 'Address on the Wi-Fi side; IPv4 as ::ffff:a.b.c.d' CODEC(ZSTD(1)) AFTER flow_id;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `server_addr` IPv6 COMMENT 'Address on the wired side; IPv4 as ::ffff:a.b.c.d' CODEC(ZSTD(1)) AFTER client_addr;
ALTER TABLE sender_tcp MODIFY COLUMN `client_port` UInt16 COMMENT 'Port on the Wi-Fi side' CODEC(ZSTD(1)) AFTER server_addr;
ALTER TABLE sender_tcp MODIFY COLUMN `server_port` UInt16 COMMENT 'Port on the wired side' CODEC(ZSTD(1)) AFTER client_port;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `station_mac` UInt64 COMMENT 'Station that carries the flow; 0 while unknown' CODEC(ZSTD(1)) AFTER server_port;
ALTER TABLE sender_tcp MODIFY COLUMN `congestion_control` LowCardinality(String) COMMENT 'Congestion control of the sender' CODEC(ZSTD(1)) AFTER station_mac;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `interval_ms` UInt32 COMMENT 'Time between two looks at a connection, as it is now. 0 in rows of the lab\'s sniffer, which say nothing of app_limited, rttvar_us and segments sent either [ms]' CODEC(ZSTD(1)) AFTER congestion_control;
ALTER TABLE sender_tcp MODIFY COLUMN `state` UInt8 COMMENT 'TCP state, as the kernel numbers them' CODEC(ZSTD(1)) AFTER interval_ms;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `app_limited` UInt8 COMMENT 'Is the delivery rate bounded by what the application gave: 0 no, 1 yes' CODEC(ZSTD(1)) AFTER state;
ALTER TABLE sender_tcp MODIFY COLUMN `cwnd_bytes` UInt32 COMMENT 'Congestion window times MSS [B]' CODEC(T64, ZSTD(1)) AFTER app_limited;
ALTER TABLE sender_tcp MODIFY COLUMN `ssthresh_bytes` UInt32 COMMENT 'Slow start threshold times MSS; 4294967295 while infinite [B]' CODEC(T64, ZSTD(1)) AFTER cwnd_bytes;
ALTER TABLE sender_tcp MODIFY COLUMN `mss_bytes` UInt16 COMMENT 'Sending MSS [B]' CODEC(T64, ZSTD(1)) AFTER ssthresh_bytes;
ALTER TABLE sender_tcp MODIFY COLUMN `unacked_pkts` UInt32 COMMENT 'Segments in flight [pkt]' CODEC(T64, ZSTD(1)) AFTER mss_bytes;
ALTER TABLE sender_tcp MODIFY COLUMN `rtt_us` UInt32 COMMENT 'Smoothed round trip [us]' CODEC(T64, ZSTD(1)) AFTER unacked_pkts;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `rttvar_us` UInt32 COMMENT 'Mean deviation of the round trip [us]' CODEC(T64, ZSTD(1)) AFTER rtt_us;
ALTER TABLE sender_tcp MODIFY COLUMN `min_rtt_us` UInt32 COMMENT 'Smallest round trip; 0 before the first [us]' CODEC(T64, ZSTD(1)) AFTER rttvar_us;
ALTER TABLE sender_tcp MODIFY COLUMN `delivery_rate_bps` UInt64 COMMENT 'Delivery rate [bit/s]' CODEC(T64, ZSTD(1)) AFTER min_rtt_us;
ALTER TABLE sender_tcp MODIFY COLUMN `pacing_rate_bps` UInt64 COMMENT 'Pacing rate; 9223372036854775807 or more while unlimited [bit/s]' CODEC(T64, ZSTD(1)) AFTER delivery_rate_bps;
ALTER TABLE sender_tcp MODIFY COLUMN `bytes_acked` UInt64 COMMENT 'Bytes acknowledged [B]' CODEC(Delta(8), ZSTD(1)) AFTER pacing_rate_bps;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `segs_out` UInt32 COMMENT 'Segments sent. Not a change: who only receives sends ACKs [pkt]' CODEC(Delta(4), ZSTD(1)) AFTER bytes_acked;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `data_segs_out` UInt32 COMMENT 'Segments with payload sent [pkt]' CODEC(Delta(4), ZSTD(1)) AFTER segs_out;
ALTER TABLE sender_tcp MODIFY COLUMN `retrans_pkts` UInt32 COMMENT 'Segments retransmitted in all [pkt]' CODEC(Delta(4), ZSTD(1)) AFTER data_segs_out;
ALTER TABLE sender_tcp MODIFY COLUMN `lost_pkts` UInt32 COMMENT 'Segments taken for lost now [pkt]' CODEC(T64, ZSTD(1)) AFTER retrans_pkts;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `delivered_pkts` Nullable(UInt32) COMMENT 'Segments delivered; kernels before 4.18 do not say [pkt]' CODEC(Delta(4), ZSTD(1)) AFTER lost_pkts;
ALTER TABLE sender_tcp ADD COLUMN IF NOT EXISTS `delivered_ce_pkts` Nullable(UInt32) COMMENT 'Of these, those that were acknowledged with ECE; kernels before 4.18 do not say [pkt]' CODEC(Delta(4), ZSTD(1)) AFTER delivered_pkts;
ALTER TABLE sender_tcp MODIFY COLUMN `host` LowCardinality(String) DEFAULT ap_id COMMENT 'Sender';
ALTER TABLE sender_tcp MODIFY COLUMN `clock_offset_us` Int64 DEFAULT 0 COMMENT 'This host\'s clock minus the AP\'s, estimated, in µs';
ALTER TABLE sender_tcp MODIFY COLUMN `clock_offset_error_us` UInt32 DEFAULT 4294967295 COMMENT 'Bound of the estimate\'s error in µs; 4294967295: nothing was estimated';

-- Which connections did hosts serve, and how? By host, network of the far end and congestion control; a connection that never had a
-- round trip counts, without any.
CREATE OR REPLACE VIEW v_sender_sessions AS
SELECT
    ap_id AS host, if(startsWith(toString(client_addr), '::ffff:'),
        concat(IPv4NumToString(toUInt32(bitAnd(s.client_prefix, 16777215) * 256)), '/24'),
        concat(IPv6NumToString(toFixedString(unhex(leftPad(hex(reinterpretAsUInt64(s.client_prefix)), 16, '0')), 16)), '/64')) AS client_network,
    congestion_control, count() AS sessions, sum(s.bytes_acked) AS bytes_acked, sum(s.data_segs_out) AS data_segs_out, sum(s.retrans_pkts) AS retrans_pkts,
    round(retrans_pkts / nullIf(data_segs_out, 0), 5) AS retrans_ratio,
    round(sum(s.delivered_ce_pkts) / nullIf(sum(s.delivered_pkts), 0), 5) AS ce_ratio,
    round(min(nullIf(s.min_rtt_us, 0)) / 1000, 2) AS rtt_min_ms,
    round(sum(toUInt64(s.rtt_mean_us) * s.rtt_looks) / nullIf(sum(s.rtt_looks), 0) / 1000, 2) AS rtt_mean_ms,
    round(avg(s.rtt_p95_us) / 1000, 2) AS rtt_p95_ms,
    round(sum(s.bytes_acked) * 8000 / nullIf(sum(s.busy_us), 0)) AS busy_kbps,
    round(sum(s.rwnd_limited_us + s.sndbuf_limited_us) / nullIf(sum(s.busy_us), 0), 4) AS limited_by_ends_ratio,
    countIf(end_known = 2) AS ends_missed, countIf(congestion_control = '') AS unseen
FROM sender_session AS s
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY host, client_network, congestion_control
ORDER BY bytes_acked DESC, host, client_network, congestion_control;
