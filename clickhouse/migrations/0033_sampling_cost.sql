-- Columns as schema/ has them: sampling cost.
ALTER TABLE health ADD COLUMN IF NOT EXISTS `sampling_permille` UInt16 COMMENT 'CPU that the threads which ask the kernel took in the last second, the kernel\'s own part included [permille]' CODEC(T64, ZSTD(1)) AFTER clock_state;
ALTER TABLE health ADD COLUMN IF NOT EXISTS `samples_late` UInt64 COMMENT 'Ticks that went by without samples because an answer took longer than a tick; summed over those threads [tick]' CODEC(Delta(8), ZSTD(1)) AFTER sampling_permille;
ALTER TABLE health ADD COLUMN IF NOT EXISTS `sample_max_us` UInt32 COMMENT 'Longest time that a radio\'s answers took in the last second [us]' CODEC(T64, ZSTD(1)) AFTER samples_late;
ALTER TABLE health ADD COLUMN IF NOT EXISTS `sampling_pace` UInt16 COMMENT 'How many times the CPU budget halved the rate of samples, of the thread slowed most; 0: as configured' CODEC(T64, ZSTD(1)) AFTER sample_max_us;
ALTER TABLE health ADD COLUMN IF NOT EXISTS `counters_mended` UInt64 COMMENT 'Counters of drivers that ran backwards or jumped, and were mended' CODEC(Delta(8), ZSTD(1)) AFTER sampling_pace;

-- How are the exporters? As before, and what sampling costs them: CPU of the threads that ask the kernel (its own part included), how long a radio took to answer,
-- how often the CPU budget halved the rate of samples, and counters of drivers that had to be mended.
CREATE OR REPLACE VIEW v_exporters AS
SELECT
    ap_id, argMax(version, ts) AS version, round((max(cpu_us) - min(cpu_us)) / nullIf(dateDiff('microsecond', min(ts), max(ts)), 0), 4) AS cpu_ratio,
    max(h.rss_bytes) AS rss_bytes_max, argMax(h.ticks_missed, ts) AS ticks_missed, max(h.tick_late_max_us) AS tick_late_max_us, argMax(h.ring_drops, ts) AS ring_drops,
    argMax(h.rows_dropped, ts) AS rows_dropped, argMax(h.let_go, ts) AS let_go_batches, argMax(h.sink_errors, ts) AS sink_errors,
    argMax(h.netlink_errors, ts) AS netlink_errors, argMax(h.flows_evicted, ts) AS flows_evicted,
    round(argMax(rows_sent, ts) / nullIf(argMax(rows_sampled, ts), 0), 4) AS sent_ratio, max(ts) AS last_row,
    round(avg(h.sampling_permille) / 1000, 4) AS sampling_cpu_ratio, max(h.sample_max_us) AS sample_max_us, argMax(h.samples_late, ts) AS samples_late,
    argMax(h.sampling_pace, ts) AS sampling_pace, argMax(h.counters_mended, ts) AS counters_mended
FROM health AS h
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY ap_id, boot_id
ORDER BY ap_id, last_row;
