-- How often drivers really renew their counters: found by each exporter, sent when it is news and at the head of each batch.

-- Read by AP and time; a radio has some fourteen of them, four rows a second each.
CREATE TABLE IF NOT EXISTS counter_refresh
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface' CODEC(ZSTD(1)),
    `of_table` UInt8 COMMENT 'Table of the counter: its id, as here' CODEC(ZSTD(1)),
    `of_field` UInt8 COMMENT 'Its column in that table: the number of the field, as here' CODEC(ZSTD(1)),
    `period_us` UInt32 COMMENT 'Shortest time between two of its changes while there was traffic; no finer than it was asked for [us]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, toStartOfHour(ts), device, of_table, of_field, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'How often the driver renews a counter, as the exporter finds it out';

-- How often does each radio's driver renew its counters? The last that is known; a counter that is not named was not seen to change often
-- enough. Numbers of tables and fields are those of schema/proto (256 * table + field).
CREATE OR REPLACE VIEW v_counter_refresh AS
SELECT
    ap_id, r.device AS device,
    transform(toUInt16(of_table) * 256 + of_field,
        [7, 8, 11, 12, 15, 18, 23, 29, 30, 519, 520, 522, 523, 525],
        [
            'station.rx_bytes', 'station.tx_bytes', 'station.tx_retries', 'station.tx_failed',
            'station.signal_dbm', 'station.tx_bitrate_kbps', 'station.rx_bitrate_kbps', 'station.tx_airtime_us',
            'station.rx_airtime_us', 'channel.active_ms', 'channel.busy_ms', 'channel.rx_ms', 'channel.tx_ms',
            'channel.noise_dbm'
        ], concat(toString(of_table), '.', toString(of_field))) AS counter,
    argMax(period_us, ts) / 1000 AS period_ms, max(ts) AS last_row
FROM counter_refresh AS r
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY ap_id, r.device, of_table, of_field
ORDER BY ap_id, device, of_table, of_field;
