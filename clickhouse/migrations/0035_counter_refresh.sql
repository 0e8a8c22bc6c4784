-- How often drivers really renew their counters: found by each exporter, sent when it is news and at the head of each batch. And how many
-- stations' packets pass an exporter's tap by.

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

ALTER TABLE health ADD COLUMN IF NOT EXISTS `stations_bypassed` UInt16 COMMENT 'Stations whose packets pass the tap by (hardware flow offload, WED); for these control is off' CODEC(T64, ZSTD(1)) AFTER counters_mended;

-- How are the exporters? As before, and stations whose packets pass the tap by.
CREATE OR REPLACE VIEW v_exporters AS
SELECT
    ap_id, argMax(version, ts) AS version, round((max(cpu_us) - min(cpu_us)) / nullIf(dateDiff('microsecond', min(ts), max(ts)), 0), 4) AS cpu_ratio,
    max(h.rss_bytes) AS rss_bytes_max, argMax(h.ticks_missed, ts) AS ticks_missed, max(h.tick_late_max_us) AS tick_late_max_us, argMax(h.ring_drops, ts) AS ring_drops,
    argMax(h.rows_dropped, ts) AS rows_dropped, argMax(h.let_go, ts) AS let_go_batches, argMax(h.sink_errors, ts) AS sink_errors,
    argMax(h.netlink_errors, ts) AS netlink_errors, argMax(h.flows_evicted, ts) AS flows_evicted,
    round(argMax(rows_sent, ts) / nullIf(argMax(rows_sampled, ts), 0), 4) AS sent_ratio, max(ts) AS last_row,
    round(avg(h.sampling_permille) / 1000, 4) AS sampling_cpu_ratio, max(h.sample_max_us) AS sample_max_us, argMax(h.samples_late, ts) AS samples_late,
    argMax(h.sampling_pace, ts) AS sampling_pace, argMax(h.counters_mended, ts) AS counters_mended, argMax(h.stations_bypassed, ts) AS stations_bypassed
FROM health AS h
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY ap_id, boot_id
ORDER BY ap_id, last_row;
