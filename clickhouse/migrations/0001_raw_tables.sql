-- Tables of rows as the access points sent them. Column lists are copies of schema/generated/clickhouse/*.columns.sql
-- (tests/test_columns.py compares them); engine, order, partition and TTL are decided here.
--
-- Order: the access point first, because every question names one or sums over them; then an hour (five minutes for
-- packets), so that a narrow time range stays a narrow read however many stations and flows came by that day; then the
-- entity, because neighbouring rows of one counter compress to a fraction of a byte; then the time. The minmax index on
-- ts lets a query that names only a time skip the granules of other hours.
-- A day is a partition, and TTL drops whole days: nothing is rewritten to expire it.
-- non_replicated_deduplication_window: an INSERT repeated with its insert_deduplication_token adds nothing while the
-- block is among the last 10,000 of the table. At one insert a second of each of four writers that is over 40 minutes.

-- Read by station and time: what a station did; per second and minute through station_1s.
CREATE TABLE IF NOT EXISTS station
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `mac` UInt64 COMMENT 'Station\'s MAC address' CODEC(ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface it is associated with' CODEC(ZSTD(1)),
    `interval_ticks` UInt16 COMMENT 'Ticks between samples of this station: 1 while it has traffic, more when idle [tick]' CODEC(ZSTD(1)),
    `rx_bytes` UInt64 COMMENT 'Bytes received from the station [B]' CODEC(Delta(8), ZSTD(1)),
    `tx_bytes` UInt64 COMMENT 'Bytes sent to the station [B]' CODEC(Delta(8), ZSTD(1)),
    `rx_pkts` UInt32 COMMENT 'Packets received from the station [pkt]' CODEC(Delta(4), ZSTD(1)),
    `tx_pkts` UInt32 COMMENT 'Packets sent to the station [pkt]' CODEC(Delta(4), ZSTD(1)),
    `tx_retries` UInt32 COMMENT 'Retransmissions by the MAC' CODEC(Delta(4), ZSTD(1)),
    `tx_failed` UInt32 COMMENT 'Frames that the MAC gave up [pkt]' CODEC(Delta(4), ZSTD(1)),
    `rx_drop_misc` UInt64 COMMENT 'Received frames dropped for unspecified reasons [pkt]' CODEC(Delta(8), ZSTD(1)),
    `beacon_loss` UInt32 COMMENT 'Times that beacon loss was detected' CODEC(Delta(4), ZSTD(1)),
    `signal_dbm` Int8 COMMENT 'Signal of the last frame received [dBm]' CODEC(ZSTD(1)),
    `signal_avg_dbm` Int8 COMMENT 'Running average of the signal [dBm]' CODEC(ZSTD(1)),
    `ack_signal_dbm` Nullable(Int8) COMMENT 'Signal of the last ACK [dBm]' CODEC(ZSTD(1)),
    `tx_bitrate_kbps` UInt32 COMMENT 'PHY rate to the station [kbit/s]' CODEC(T64, ZSTD(1)),
    `tx_mcs` UInt8 COMMENT 'MCS index to the station; 255 for a legacy rate' CODEC(ZSTD(1)),
    `tx_nss` UInt8 COMMENT 'Spatial streams to the station' CODEC(ZSTD(1)),
    `tx_width_mhz` UInt16 COMMENT 'Channel width to the station [MHz]' CODEC(ZSTD(1)),
    `tx_gi_ns` UInt16 COMMENT 'Guard interval to the station [ns]' CODEC(ZSTD(1)),
    `rx_bitrate_kbps` UInt32 COMMENT 'PHY rate from the station [kbit/s]' CODEC(T64, ZSTD(1)),
    `rx_mcs` UInt8 COMMENT 'MCS index from the station; 255 for a legacy rate' CODEC(ZSTD(1)),
    `rx_nss` UInt8 COMMENT 'Spatial streams from the station' CODEC(ZSTD(1)),
    `rx_width_mhz` UInt16 COMMENT 'Channel width from the station [MHz]' CODEC(ZSTD(1)),
    `rx_gi_ns` UInt16 COMMENT 'Guard interval from the station [ns]' CODEC(ZSTD(1)),
    `expected_throughput_kbps` Nullable(UInt32) COMMENT 'Throughput that rate control expects [kbit/s]' CODEC(T64, ZSTD(1)),
    `tx_airtime_us` UInt64 COMMENT 'Airtime spent sending to the station [us]' CODEC(Delta(8), ZSTD(1)),
    `rx_airtime_us` UInt64 COMMENT 'Airtime spent receiving from the station [us]' CODEC(Delta(8), ZSTD(1)),
    `airtime_weight` Nullable(UInt16) COMMENT 'Weight of the station in airtime fairness' CODEC(ZSTD(1)),
    `inactive_ms` UInt32 COMMENT 'Time since the station was last heard. Not a change: it differs in every sample [ms]' CODEC(T64, ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfHour(ts), mac, device, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A station\'s link, as the AP\'s kernel counts it';

-- Read by station, access category and time: backlog and drops of its queues.
CREATE TABLE IF NOT EXISTS station_ac
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `mac` UInt64 COMMENT 'Station\'s MAC address' CODEC(ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface it is associated with' CODEC(ZSTD(1)),
    `ac` UInt8 COMMENT 'Access category: 0 VO, 1 VI, 2 BE, 3 BK (802.11 order of the kernel). Sums its TIDs' CODEC(ZSTD(1)),
    `msdu_pkts` UInt64 COMMENT 'MSDUs given to the MAC [pkt]' CODEC(Delta(8), ZSTD(1)),
    `msdu_retries` UInt64 COMMENT 'MSDU retries' CODEC(Delta(8), ZSTD(1)),
    `msdu_failed` UInt64 COMMENT 'MSDUs that the MAC gave up [pkt]' CODEC(Delta(8), ZSTD(1)),
    `backlog_bytes` UInt32 COMMENT 'Bytes waiting in the transmit queue [B]' CODEC(T64, ZSTD(1)),
    `backlog_pkts` UInt32 COMMENT 'Packets waiting in the transmit queue [pkt]' CODEC(T64, ZSTD(1)),
    `flows` UInt32 COMMENT 'Flows that the queue has seen' CODEC(Delta(4), ZSTD(1)),
    `drops` UInt32 COMMENT 'Packets that CoDel dropped [pkt]' CODEC(Delta(4), ZSTD(1)),
    `ecn_marks` UInt32 COMMENT 'Packets that CoDel marked [pkt]' CODEC(Delta(4), ZSTD(1)),
    `overlimit` UInt32 COMMENT 'Times that the queue was cut for being over its limit' CODEC(Delta(4), ZSTD(1)),
    `collisions` UInt32 COMMENT 'Hash collisions of flows' CODEC(Delta(4), ZSTD(1)),
    `tx_bytes` UInt32 COMMENT 'Bytes taken from the queue [B]' CODEC(Delta(4), ZSTD(1)),
    `tx_pkts` UInt32 COMMENT 'Packets taken from the queue [pkt]' CODEC(Delta(4), ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfHour(ts), mac, device, ac, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A station\'s queue and delivery, per access category';

-- Read by AP and time; an AP has a handful of channels, so no hour in the key.
CREATE TABLE IF NOT EXISTS channel
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface' CODEC(ZSTD(1)),
    `frequency_mhz` UInt16 COMMENT 'Centre of the primary channel [MHz]' CODEC(ZSTD(1)),
    `width_mhz` UInt16 COMMENT 'Channel width [MHz]' CODEC(ZSTD(1)),
    `active_ms` UInt64 COMMENT 'Time the radio was on the channel [ms]' CODEC(Delta(8), ZSTD(1)),
    `busy_ms` UInt64 COMMENT 'Time the primary channel was sensed busy [ms]' CODEC(Delta(8), ZSTD(1)),
    `ext_busy_ms` Nullable(UInt64) COMMENT 'Time the extension channel was sensed busy [ms]' CODEC(Delta(8), ZSTD(1)),
    `rx_ms` Nullable(UInt64) COMMENT 'Time spent receiving [ms]' CODEC(Delta(8), ZSTD(1)),
    `tx_ms` Nullable(UInt64) COMMENT 'Time spent sending [ms]' CODEC(Delta(8), ZSTD(1)),
    `scan_ms` Nullable(UInt64) COMMENT 'Time spent scanning [ms]' CODEC(Delta(8), ZSTD(1)),
    `noise_dbm` Nullable(Int8) COMMENT 'Noise floor [dBm]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, device, frequency_mhz, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'The operating channel, as the driver\'s hardware counters see it';

-- Read by AP, queue and time; an AP has a handful of queues.
CREATE TABLE IF NOT EXISTS queue
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface' CODEC(ZSTD(1)),
    `handle` UInt32 COMMENT 'Handle of the qdisc, major in the upper 16 bits' CODEC(ZSTD(1)),
    `parent` UInt32 COMMENT 'Handle of its parent class' CODEC(ZSTD(1)),
    `kind` LowCardinality(String) COMMENT 'Kind: fq_codel, pfifo_fast, mac80211, …' CODEC(ZSTD(1)),
    `bytes` UInt64 COMMENT 'Bytes sent [B]' CODEC(Delta(8), ZSTD(1)),
    `pkts` UInt64 COMMENT 'Packets sent [pkt]' CODEC(Delta(8), ZSTD(1)),
    `drops` UInt32 COMMENT 'Packets dropped [pkt]' CODEC(Delta(4), ZSTD(1)),
    `overlimits` UInt32 COMMENT 'Times the queue was over a limit' CODEC(Delta(4), ZSTD(1)),
    `requeues` UInt32 COMMENT 'Packets requeued' CODEC(Delta(4), ZSTD(1)),
    `backlog_bytes` UInt32 COMMENT 'Bytes waiting [B]' CODEC(T64, ZSTD(1)),
    `qlen_pkts` UInt32 COMMENT 'Packets waiting [pkt]' CODEC(T64, ZSTD(1)),
    `ecn_marks` Nullable(UInt32) COMMENT 'Packets marked with ECN [pkt]' CODEC(Delta(4), ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, device, handle, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A queueing discipline, or the interface-wide queue of mac80211 (kind "mac80211")';

-- Read by AP and time: who else is on the air.
CREATE TABLE IF NOT EXISTS beacon
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `bssid` UInt64 COMMENT 'BSSID' CODEC(ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface that heard it' CODEC(ZSTD(1)),
    `frequency_mhz` UInt16 COMMENT 'Its channel [MHz]' CODEC(ZSTD(1)),
    `signal_dbm` Int8 COMMENT 'Its signal [dBm]' CODEC(ZSTD(1)),
    `age_ms` UInt32 COMMENT 'Time since it was last seen. Not a change: it differs in every sample [ms]' CODEC(T64, ZSTD(1)),
    `load_stations` Nullable(UInt16) COMMENT 'Stations it reports' CODEC(T64, ZSTD(1)),
    `load_utilization` Nullable(UInt8) COMMENT 'Channel utilisation it reports, 255 = always busy [1/255]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfHour(ts), bssid, device, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A neighbour BSS';

-- Read by flow and by time. Holds addresses: kept for seven days (PRIVACY.md).
CREATE TABLE IF NOT EXISTS packet
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
    `direction` UInt8 COMMENT 'Direction: 0 down (server to station), 1 up (station to server)' CODEC(ZSTD(1)),
    `seq` UInt32 COMMENT 'Sequence number [B]' CODEC(Delta(4), ZSTD(1)),
    `ack` UInt32 COMMENT 'Acknowledgement number; 0 without ACK [B]' CODEC(Delta(4), ZSTD(1)),
    `payload_bytes` UInt32 COMMENT 'Payload bytes, from the IP length [B]' CODEC(ZSTD(1)),
    `window_raw` UInt16 COMMENT 'Window field, unscaled' CODEC(ZSTD(1)),
    `flags` UInt8 COMMENT 'Flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128' CODEC(ZSTD(1)),
    `syn_options` UInt8 COMMENT 'Options of a SYN: bit 0 window scale, bit 1 MSS, bit 2 SACK permitted' CODEC(ZSTD(1)),
    `wscale` UInt8 COMMENT 'Window scale shift, if offered' CODEC(ZSTD(1)),
    `mss_bytes` UInt16 COMMENT 'MSS, if offered [B]' CODEC(ZSTD(1)),
    `sack_blocks` UInt8 COMMENT 'SACK blocks' CODEC(ZSTD(1)),
    `ts_val` Nullable(UInt32) COMMENT 'Timestamp value' CODEC(Delta(4), ZSTD(1)),
    `ts_ecr` Nullable(UInt32) COMMENT 'Timestamp echo reply' CODEC(Delta(4), ZSTD(1)),
    `ip_ecn` UInt8 COMMENT 'ECN bits of the IP header' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfFiveMinutes(ts), flow_id, direction, ts)
TTL toDateTime(ts) + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A TCP header seen on the wired side of the AP';

-- Read by flow and by time. Holds addresses: kept for seven days (PRIVACY.md).
CREATE TABLE IF NOT EXISTS flow
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
    `direction` UInt8 COMMENT 'Direction of the data: 0 down, 1 up' CODEC(ZSTD(1)),
    `sent_bytes` UInt64 COMMENT 'Payload bytes seen, retransmissions included [B]' CODEC(Delta(8), ZSTD(1)),
    `sent_pkts` UInt64 COMMENT 'Segments with payload seen, retransmissions included [pkt]' CODEC(Delta(8), ZSTD(1)),
    `retrans_bytes` UInt64 COMMENT 'Payload bytes seen again [B]' CODEC(Delta(8), ZSTD(1)),
    `retrans_pkts` UInt64 COMMENT 'Segments that repeat payload seen before [pkt]' CODEC(Delta(8), ZSTD(1)),
    `delivered_bytes` UInt64 COMMENT 'Bytes acknowledged by the receiver [B]' CODEC(Delta(8), ZSTD(1)),
    `dup_acks` UInt64 COMMENT 'ACKs that repeat the last acknowledgement without payload or window change [pkt]' CODEC(Delta(8), ZSTD(1)),
    `unacked_bytes` UInt32 COMMENT 'Bytes seen and not yet acknowledged [B]' CODEC(T64, ZSTD(1)),
    `rwnd_bytes` Nullable(UInt32) COMMENT 'Receiver\'s window, scaled [B]' CODEC(T64, ZSTD(1)),
    `rtt_down_us` UInt32 COMMENT 'Smoothed round trip AP to receiver and back [us]' CODEC(T64, ZSTD(1)),
    `rtt_up_us` UInt32 COMMENT 'Smoothed round trip AP to sender and back [us]' CODEC(T64, ZSTD(1)),
    `delivery_rate_kbps` UInt32 COMMENT 'Delivery rate over the last round trip, or the last decision interval if that is longer [kbit/s]' CODEC(T64, ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfHour(ts), flow_id, direction, ts)
TTL toDateTime(ts) + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A flow as the AP\'s tracker sees it, per direction of data, on change at the decision interval';

-- Read by AP and time, beside labels.
CREATE TABLE IF NOT EXISTS drop_event
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `cause` UInt8 COMMENT 'What counted it: 1 station queue (CoDel), 2 station queue (over limit), 3 qdisc or interface queue, 4 MAC failure' CODEC(ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface' CODEC(ZSTD(1)),
    `mac` UInt64 COMMENT 'Station; 0 for causes that are not a station\'s' CODEC(ZSTD(1)),
    `queue` UInt32 COMMENT 'Access category for causes 1 and 2, qdisc handle for 3, otherwise 0' CODEC(ZSTD(1)),
    `count` UInt32 COMMENT 'By how much [pkt]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Loss that the AP\'s own counters admit';

-- Read by AP and time; one row a second.
CREATE TABLE IF NOT EXISTS health
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `version` LowCardinality(String) COMMENT 'Version of the exporter' CODEC(ZSTD(1)),
    `ticks` UInt64 COMMENT 'Ticks that were due [tick]' CODEC(Delta(8), ZSTD(1)),
    `ticks_missed` UInt64 COMMENT 'Ticks that were missed [tick]' CODEC(Delta(8), ZSTD(1)),
    `tick_late_max_us` UInt32 COMMENT 'Latest start of a tick in this second [us]' CODEC(T64, ZSTD(1)),
    `packets` UInt64 COMMENT 'Packets captured [pkt]' CODEC(Delta(8), ZSTD(1)),
    `ring_drops` UInt64 COMMENT 'Packets that the capture ring let go [pkt]' CODEC(Delta(8), ZSTD(1)),
    `packets_skipped` UInt64 COMMENT 'Packets that were not TCP, were fragments, or could not be parsed [pkt]' CODEC(Delta(8), ZSTD(1)),
    `rows_sampled` UInt64 COMMENT 'Rows sampled before deduplication' CODEC(Delta(8), ZSTD(1)),
    `rows_sent` UInt64 COMMENT 'Rows sent' CODEC(Delta(8), ZSTD(1)),
    `rows_dropped` UInt64 COMMENT 'Rows that did not fit a batch' CODEC(Delta(8), ZSTD(1)),
    `flows` UInt32 COMMENT 'Flows tracked now' CODEC(T64, ZSTD(1)),
    `flows_evicted` UInt64 COMMENT 'Flows forgotten early because the table was full' CODEC(Delta(8), ZSTD(1)),
    `dumps_interrupted` UInt64 COMMENT 'Netlink dumps interrupted and used in part' CODEC(Delta(8), ZSTD(1)),
    `netlink_errors` UInt64 COMMENT 'Netlink requests that failed' CODEC(Delta(8), ZSTD(1)),
    `batches` UInt64 COMMENT 'Batches made, all topics' CODEC(Delta(8), ZSTD(1)),
    `batch_bytes` UInt64 COMMENT 'Bytes of batches made, before compression [B]' CODEC(Delta(8), ZSTD(1)),
    `delivered` UInt64 COMMENT 'Batches acknowledged by the sink' CODEC(Delta(8), ZSTD(1)),
    `let_go` UInt64 COMMENT 'Batches let go because the sink was away for too long' CODEC(Delta(8), ZSTD(1)),
    `sink_errors` UInt64 COMMENT 'Errors that the sink reported' CODEC(Delta(8), ZSTD(1)),
    `queued_bytes` UInt64 COMMENT 'Bytes waiting for the sink [B]' CODEC(T64, ZSTD(1)),
    `cpu_us` UInt64 COMMENT 'CPU time used [us]' CODEC(Delta(8), ZSTD(1)),
    `rss_bytes` UInt64 COMMENT 'Resident memory [B]' CODEC(T64, ZSTD(1)),
    `clock_error_us` UInt32 COMMENT 'Kernel\'s estimate of its clock error [us]' CODEC(T64, ZSTD(1)),
    `clock_state` UInt8 COMMENT '0 unknown, 1 synchronised, 2 unsynchronised, 3 stepped' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'The exporter\'s own health, once a second. Counters run since its start';
