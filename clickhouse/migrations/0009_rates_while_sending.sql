-- v_latency's bytes_per_s and rows_per_s are over the time that the batches cover, so that an access point that was away for
-- a while does not seem to send little. Otherwise as in 0005: the age of a sample is from the end of its batch's last tick
-- (4,000 us each, settings tick_us); its first tick is one batch (252 ms) older. Clocks: the AP's, the broker's, ClickHouse's.
CREATE OR REPLACE VIEW v_latency AS
SELECT
    site, ap_id, topic, count() AS batches, round(sum(b.bytes) / nullIf(sum(b.ticks) * 0.004, 0)) AS bytes_per_s, round(sum(b.rows) / nullIf(sum(b.ticks) * 0.004, 0)) AS rows_per_s,
    round(quantileExact(0.5)(row_ms)) AS sample_to_row_p50_ms, round(quantileExact(0.99)(row_ms)) AS sample_to_row_p99_ms, round(max(row_ms)) AS sample_to_row_max_ms,
    round(quantileExact(0.5)(broker_ms)) AS sample_to_broker_p50_ms, round(quantileExact(0.99)(broker_ms)) AS sample_to_broker_p99_ms
FROM
(
    SELECT
        *, toUnixTimestamp64Micro(ts) / 1000 + 4 * ticks AS end_ms,
        toUnixTimestamp64Milli(inserted_at) - end_ms AS row_ms, toUnixTimestamp64Milli(kafka_ts) - end_ms AS broker_ms
    FROM batch
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
) AS b
GROUP BY site, ap_id, topic
ORDER BY site, ap_id, topic;
