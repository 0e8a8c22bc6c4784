-- Tables that the stream jobs derive. Column lists are copies of schema/generated/clickhouse/*.columns.sql.

-- Read by AP and time, by site and time. Ten rows a second of each AP.
CREATE TABLE IF NOT EXISTS label
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Start of the window' CODEC(Delta(8), ZSTD(1)),
    `window_us` UInt32 COMMENT 'Length of the window in µs',
    `offered_pkts` UInt32 COMMENT 'TCP segments with payload that the AP was given downlink, retransmissions included',
    `offered_bytes` UInt64 COMMENT 'Their payload in bytes',
    `lost_pkts` UInt32 COMMENT 'Segments whose payload the AP had forwarded before, seen again in the window (retransmission by sequence space)',
    `lost_bytes` UInt64 COMMENT 'Payload seen again in bytes',
    `mac_lost_pkts` UInt32 COMMENT 'Frames that the MAC gave up (station.tx_failed)',
    `congestion_lost_pkts` UInt32 COMMENT 'max(0, lost_pkts - mac_lost_pkts)',
    `queue_drop_pkts` UInt32 COMMENT 'Packets that the kernel\'s own queue counters say were dropped (causes 1 to 3 of drop_event)',
    `loss_ratio` Float32 COMMENT 'congestion_lost_pkts / offered_pkts; 0 when nothing was offered',
    `class` Enum8('Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class of loss_ratio by settings.class_bounds_permille',
    `flows` UInt16 COMMENT 'Flows with payload in the window',
    `complete` UInt8 COMMENT '0 when a batch or tick of the window is missing',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per AP and decision instant - what was offered and lost in the label window that starts at ts';

-- Read by AP and time range for training.
CREATE TABLE IF NOT EXISTS item
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Decision instant' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `feature_hash` UInt64 COMMENT 'First 8 bytes of the feature program\'s hash',
    `features` Array(Int64) COMMENT 'Feature vector in the program\'s order; -9223372036854775808 is missing',
    `horizon_us` UInt32 COMMENT 'Time from ts to the start of the label window in µs',
    `class_now` Enum8('Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class of the label window that ends at ts (what persistence would predict)',
    `class` Enum8('Good' = 0, 'Acceptable' = 1, 'Poor' = 2, 'Bad' = 3) COMMENT 'Class that came true',
    `loss_ratio` Float32 COMMENT 'Loss ratio that came true',
    `offered_pkts` UInt32 COMMENT 'Segments offered in the label window',
    `complete` UInt8 COMMENT '0 when the label windows or the feature state have a gap',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per AP and decision instant - features at ts with the class of the label window that starts at ts + horizon_us';

-- Read by AP, topic and time: is the data complete, how much is it, how late.
CREATE TABLE IF NOT EXISTS batch
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the batch\'s first tick' CODEC(Delta(8), ZSTD(1)),
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `seq` UInt64 COMMENT 'Sequence number of the batch in its topic' CODEC(Delta(8), ZSTD(1)),
    `ticks` UInt32 COMMENT 'Ticks covered',
    `ticks_missed` UInt32 COMMENT 'Ticks on which nothing could be sampled',
    `tick_late_max_us` UInt32 COMMENT 'Latest start of a tick after its due time',
    `ring_drops` UInt32 COMMENT 'Packets that the capture ring let go',
    `rows_dropped` UInt32 COMMENT 'Rows that did not fit the exporter\'s buffers',
    `dumps_interrupted` UInt32 COMMENT 'Netlink dumps used in part',
    `clock_state` UInt8 COMMENT '0 unknown, 1 synchronised, 2 unsynchronised, 3 stepped',
    `clock_error_us` UInt32 COMMENT 'Kernel\'s estimate of the clock error',
    `rows` UInt32 COMMENT 'Rows in the batch',
    `bytes` UInt32 COMMENT 'Size of the record before compression',
    `kafka_ts` DateTime64(3, 'UTC') COMMENT 'Time the broker took the record' CODEC(Delta(8), ZSTD(1)),
    `kafka_partition` UInt16 COMMENT 'Partition',
    `kafka_offset` UInt64 COMMENT 'Offset' CODEC(Delta(8), ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, topic, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'One row per batch accepted from an AP';

-- Read by AP and time. Few rows: a month is a partition, so a row lives up to a month longer than its TTL says.
CREATE TABLE IF NOT EXISTS gap
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the batch that showed it',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `kind` Enum8('missing' = 1, 'duplicate' = 2, 'reordered' = 3, 'reboot' = 4) COMMENT 'missing - batches that never came before this one; duplicate - seen before, dropped; reordered - came after a later one, used; reboot - new boot_id',
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `from_seq` UInt64 COMMENT 'First sequence number concerned',
    `to_seq` UInt64 COMMENT 'Last sequence number concerned',
    `batches` UInt64 COMMENT 'Number of batches concerned',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Holes and irregularities in the sequence of an AP\'s batches';

-- Read by AP and time. Few rows.
CREATE TABLE IF NOT EXISTS late
(
    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the batch\'s first tick',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `seq` UInt64 COMMENT 'Sequence number',
    `late_us` Int64 COMMENT 'How far behind the watermark the batch ended',
    `rows` UInt32 COMMENT 'Rows in the batch',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Batches that came after their windows were closed. Their raw rows are kept; labels and features did not see them';

-- Read by time. The payload may hold addresses: kept for seven days, as packets are (PRIVACY.md).
CREATE TABLE IF NOT EXISTS dead_letter
(
    `ts` DateTime64(3, 'UTC') COMMENT 'Time the broker took the record',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `key` String COMMENT 'Key of the record',
    `reason` Enum8('oversized' = 1, 'truncated' = 2, 'malformed' = 3, 'value_range' = 4, 'unknown_revision' = 5, 'key_mismatch' = 6, 'time_range' = 7) COMMENT 'Why it was refused',
    `detail` String COMMENT 'What exactly was wrong',
    `kafka_partition` UInt16 COMMENT 'Partition',
    `kafka_offset` UInt64 COMMENT 'Offset',
    `bytes` UInt32 COMMENT 'Size of the record',
    `payload` String COMMENT 'The record as it came',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ts, topic)
TTL toDateTime(ts) + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'Records that could not be decoded, whole, with the reason';
