-- What analysts ask first; README.md lists each question with its query and a sample of the answer.
-- `from` and `to` as in 0004. Packets are added over label windows that do not overlap (tiles, see 0003).
-- A view that reads a parameterised view names its database, which `migrate` fills in: {database}.

-- Which access points are there, and do they send?
CREATE OR REPLACE VIEW v_aps AS
SELECT
    site, ap_id, max(ts) AS last_sample, dateDiff('second', last_sample, now64(6, 'UTC')) AS age_s,
    argMax(boot_id, ts) AS boot_id, argMax(clock_state, ts) AS clock_state, argMax(clock_error_us, ts) AS clock_error_us,
    round(sum(bytes) / 600) AS bytes_per_s, round(sum(rows) / 600) AS rows_per_s
FROM batch
WHERE ts >= now64(6, 'UTC') - INTERVAL 10 MINUTE
GROUP BY site, ap_id
ORDER BY site, ap_id;

-- 1. How is the loss ratio distributed, per site and access point? A row says: in `share` of the label windows the loss
-- ratio was at most `loss_ratio`. Windows with data missing or nothing offered are left out.
CREATE OR REPLACE VIEW v_loss_cdf AS
WITH [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1] AS shares
SELECT site, ap_id, share, round(ratio, 4) AS loss_ratio, windows
FROM
(
    SELECT
        site, ap_id, count() AS windows,
        quantilesExact(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1)(l.loss_ratio) AS ratios
    FROM label AS l
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')} AND complete AND offered_pkts > 0
    GROUP BY site, ap_id
)
ARRAY JOIN shares AS share, ratios AS ratio
ORDER BY site, ap_id, share;

-- 2. Where is it worst now? Access points of the last `within_s` seconds, worst first.
CREATE OR REPLACE VIEW v_worst_aps AS
SELECT
    site, ap_id, argMax(class, ts) AS class_now, round(countIf(class >= 'Poor') / count(), 4) AS poor_or_bad_share,
    round(sumIf(congestion_lost_pkts, tile) / nullIf(sumIf(l.offered_pkts, tile), 0), 4) AS congestion_loss_ratio,
    round(sumIf(mac_lost_pkts, tile) / nullIf(sumIf(l.offered_pkts, tile), 0), 4) AS mac_loss_ratio,
    sumIf(l.offered_pkts, tile) AS offered_pkts, max(l.flows) AS flows,
    countIf(complete = 0) AS incomplete_windows, dateDiff('second', max(ts), now64(6, 'UTC')) AS age_s
FROM (SELECT *, toUnixTimestamp64Micro(ts) % window_us = 0 AS tile FROM label WHERE ts >= now64(6, 'UTC') - toIntervalSecond({within_s:UInt32})) AS l
GROUP BY site, ap_id
ORDER BY poor_or_bad_share DESC, congestion_loss_ratio DESC NULLS LAST, ap_id;

-- 3. What did a station go through, second by second? `mac` as people write it.
CREATE OR REPLACE VIEW v_station AS
SELECT
    t, s.rx_kbps AS rx_kbps, s.tx_kbps AS tx_kbps, s.tx_pkts AS tx_pkts, s.tx_retries AS tx_retries, s.tx_failed AS tx_failed,
    q.drops AS queue_drops, q.backlog_bytes_avg AS backlog_bytes_avg, q.backlog_bytes_max AS backlog_bytes_max,
    s.airtime_ratio AS airtime_ratio, s.signal_dbm_avg AS signal_dbm_avg, s.tx_bitrate_kbps_avg AS tx_bitrate_kbps_avg, s.span_s AS span_s
FROM
(
    SELECT
        t, max(x.span_s) AS span_s, round(sum(x.rx_bytes) * 8 / 1000 / greatest(span_s, 1)) AS rx_kbps, round(sum(x.tx_bytes) * 8 / 1000 / greatest(span_s, 1)) AS tx_kbps,
        sum(x.tx_pkts) AS tx_pkts, sum(x.tx_retries) AS tx_retries, sum(x.tx_failed) AS tx_failed,
        round(sum(x.tx_airtime_us + x.rx_airtime_us) / 1e6 / greatest(span_s, 1), 4) AS airtime_ratio,
        round(avg(x.signal_dbm_avg), 1) AS signal_dbm_avg, round(avg(x.tx_bitrate_kbps_avg)) AS tx_bitrate_kbps_avg
    FROM {database}.v_station_1s(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    WHERE ap_id = {ap_id:String} AND mac = MACStringToNum({mac:String})
    GROUP BY t
) AS s
LEFT JOIN
(
    SELECT t, sum(x.drops) AS drops, round(sum(x.backlog_bytes_avg)) AS backlog_bytes_avg, sum(x.backlog_bytes_max) AS backlog_bytes_max
    FROM {database}.v_station_ac_1s(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    WHERE ap_id = {ap_id:String} AND mac = MACStringToNum({mac:String})
    GROUP BY t
) AS q USING (t)
ORDER BY t;

-- 3, for the last minute.
CREATE OR REPLACE VIEW v_station_last_minute AS
SELECT * FROM {database}.v_station(from = now64(6, 'UTC') - INTERVAL 60 SECOND, to = now64(6, 'UTC'), ap_id = {ap_id:String}, mac = {mac:String});

-- 4. Where does loss happen: in the queue or on the air? Per access point and hour. `queue_drop_pkts` is what the kernel's
-- own counters say, `congestion_lost_pkts` what sequence numbers say; `queue_drop_ratio` is the former over the latter.
CREATE OR REPLACE VIEW v_loss_where AS
SELECT
    site, ap_id, toStartOfHour(l.t) AS hour, sum(l.offered_pkts) AS offered_pkts, sum(l.lost_pkts) AS lost_pkts,
    sum(l.mac_lost_pkts) AS mac_lost_pkts, sum(l.congestion_lost_pkts) AS congestion_lost_pkts, sum(l.queue_drop_pkts) AS queue_drop_pkts,
    round(congestion_lost_pkts / nullIf(offered_pkts, 0), 5) AS congestion_loss_ratio,
    round(mac_lost_pkts / nullIf(offered_pkts, 0), 5) AS mac_loss_ratio,
    round(queue_drop_pkts / nullIf(congestion_lost_pkts, 0), 3) AS queue_drop_ratio,
    multiIf(congestion_lost_pkts + mac_lost_pkts = 0, 'none', congestion_lost_pkts >= 2 * mac_lost_pkts, 'queue',
            mac_lost_pkts >= 2 * congestion_lost_pkts, 'air', 'both') AS lost_in,
    round(sum(poor + bad) / sum(windows), 4) AS poor_or_bad_share, sum(incomplete) AS incomplete_windows
FROM label_1m AS l
WHERE l.t >= {from:DateTime64(6, 'UTC')} AND l.t < {to:DateTime64(6, 'UTC')}
GROUP BY site, ap_id, hour
ORDER BY site, ap_id, hour;

-- 5. How long do packets wait at an access point? By Little's law the mean wait is the time that packets spent waiting, all
-- together, over the number of packets that left. Per station queue class (source wifi, all stations together) and per
-- queueing discipline (source qdisc), from whole minutes. `delay_max_ms` takes the fullest moment at the mean rate: a guess.
CREATE OR REPLACE VIEW v_queue_delay AS
SELECT
    ap_id, source, queue, round(sum(byte_us) / nullIf(sum(us), 0)) AS backlog_bytes_avg, max(bytes_max) AS backlog_bytes_max,
    round(1e6 * sum(pkts) / nullIf(sum(us), 0)) AS pkts_per_s, round(sum(pkt_us) / nullIf(sum(pkts), 0) / 1000, 2) AS delay_avg_ms,
    round(1000 * max(pkts_max) / nullIf(pkts_per_s, 0), 2) AS delay_max_ms, sum(lost) AS drops
FROM
(
    SELECT
        ap_id, 'wifi' AS source, transform(ac, [0, 1, 2, 3], ['VO', 'VI', 'BE', 'BK'], '?') AS queue, t, max(x.held_us) AS us, sum(x.tx_pkts) AS pkts, sum(x.drops) AS lost,
        sum(x.backlog_bytes_avg * x.held_us) AS byte_us, sum(x.backlog_pkts_avg * x.held_us) AS pkt_us, sum(x.backlog_bytes_max) AS bytes_max, sum(x.backlog_pkts_max) AS pkts_max
    FROM {database}.v_station_ac_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    GROUP BY ap_id, ac, t
    UNION ALL
    SELECT
        ap_id, 'qdisc' AS source, concat(device, ' ', kind, ' ', lower(hex(toUInt16(bitShiftRight(handle, 16)))), ':') AS queue, t, x.held_us AS us, x.pkts AS pkts, x.drops AS lost,
        x.backlog_bytes_avg * x.held_us AS byte_us, x.qlen_pkts_avg * x.held_us AS pkt_us, x.backlog_bytes_max AS bytes_max, x.qlen_pkts_max AS pkts_max
    FROM {database}.v_queue_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
)
GROUP BY ap_id, source, queue
ORDER BY delay_avg_ms DESC NULLS LAST, ap_id, source, queue;

-- 6. Who uses the air, and for how much data? Shares are of what all stations of the access point used.
CREATE OR REPLACE VIEW v_airtime AS
SELECT
    ap_id, station, round(airtime_us / nullIf(sum(airtime_us) OVER ap, 0), 4) AS airtime_share,
    round(bytes / nullIf(sum(bytes) OVER ap, 0), 4) AS bytes_share,
    round(airtime_us / 1e6, 3) AS airtime_s, round(bytes / 1e6, 3) AS megabytes, round(8 * bytes / nullIf(airtime_us, 0), 2) AS mbit_per_airtime_s,
    round(signal, 1) AS signal_dbm_avg
FROM
(
    SELECT ap_id, station, sum(x.tx_airtime_us + x.rx_airtime_us) AS airtime_us, sum(x.tx_bytes + x.rx_bytes) AS bytes, sum(x.signal_dbm_avg * x.held_us) / nullIf(sumIf(x.held_us, isNotNull(x.signal_dbm_avg)), 0) AS signal
    FROM {database}.v_station_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
    GROUP BY ap_id, station
)
WINDOW ap AS (PARTITION BY ap_id)
ORDER BY airtime_share DESC NULLS LAST, ap_id, station;

-- 7. How does the retry ratio follow the signal? Retries over attempts, per 5 dB of a station's mean signal in the second.
CREATE OR REPLACE VIEW v_retry_by_signal AS
SELECT
    ap_id, toInt16(floor(x.signal_dbm_avg / 5) * 5) AS signal_dbm_from, signal_dbm_from + 5 AS signal_dbm_to,
    uniqExact(x.mac) AS stations, count() AS station_seconds, sum(x.tx_pkts) AS tx_pkts, sum(x.tx_retries) AS tx_retries, sum(x.tx_failed) AS tx_failed,
    round(tx_retries / nullIf(tx_pkts + tx_retries, 0), 4) AS retry_ratio, round(tx_failed / nullIf(tx_pkts, 0), 5) AS failed_ratio
FROM {database}.v_station_1s(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
WHERE isNotNull(x.signal_dbm_avg)
GROUP BY ap_id, signal_dbm_from
ORDER BY ap_id, signal_dbm_from DESC;

-- 8. Which flows suffer? Round trip between the access point and the receiver, mean over its smallest (inflation), and
-- the share of segments sent again. A flow's counters start with the flow, so its first minute counts in full.
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
        *, lagInFrame(sent_pkts, 1, 0) OVER flow AS sent_pkts_before, lagInFrame(retrans_pkts, 1, 0) OVER flow AS retrans_pkts_before
    FROM
    (
        SELECT
            ap_id, flow_id, direction, client_addr, server_addr, client_port, server_port, s.t AS t, max(s.station_mac) AS mac,
            max(s.sent_pkts) AS sent_pkts, max(s.retrans_pkts) AS retrans_pkts,
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

-- 9. Is the data complete? Per access point and topic. `missing_batches` counts the holes in `seq` by itself; `gap_batches`
-- is what the stream jobs noticed on their way. Dead letters are under the key they came with.
CREATE OR REPLACE VIEW v_completeness AS
SELECT
    ap_id, topic, sum(b.batches) AS batches, sum(b.expected) - batches AS missing_batches, greatest(0, sum(b.boots) - 1) AS reboots,
    sum(b.ticks) AS ticks, sum(b.ticks_missed) AS ticks_missed, sum(b.ring_drops) AS ring_drops, sum(b.rows_dropped) AS rows_dropped,
    sum(b.gap_batches) AS gap_batches, sum(b.late_batches) AS late_batches, sum(b.dead_letters) AS dead_letters,
    if(missing_batches = 0 AND ticks_missed = 0 AND ring_drops = 0 AND rows_dropped = 0 AND late_batches = 0 AND dead_letters = 0, 'complete', 'incomplete') AS verdict
FROM
(
    SELECT
        ap_id, topic, uniqExact(r.seq) AS batches, max(r.seq) - min(r.seq) + 1 AS expected, 1 AS boots, sum(r.ticks) AS ticks, sum(r.ticks_missed) AS ticks_missed,
        sum(r.ring_drops) AS ring_drops, sum(r.rows_dropped) AS rows_dropped, 0 AS gap_batches, 0 AS late_batches, 0 AS dead_letters
    FROM batch AS r
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY ap_id, topic, boot_id
    UNION ALL
    SELECT ap_id, topic, 0, 0, 0, 0, 0, 0, 0, sumIf(g.batches, kind = 'missing'), 0, 0
    FROM gap AS g
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY ap_id, topic
    UNION ALL
    SELECT ap_id, topic, 0, 0, 0, 0, 0, 0, 0, 0, count(), 0
    FROM late
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY ap_id, topic
    UNION ALL
    SELECT key, topic, 0, 0, 0, 0, 0, 0, 0, 0, 0, count()
    FROM dead_letter
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY key, topic
) AS b
GROUP BY ap_id, topic
ORDER BY ap_id, topic;

-- 10. How old is a sample when its row can be read, and how much does an access point send? From the end of a batch's last
-- tick (4,000 us each, settings tick_us); its first tick is one batch (252 ms) older. Clocks: the AP's, the broker's, ClickHouse's.
CREATE OR REPLACE VIEW v_latency AS
SELECT
    site, ap_id, topic, count() AS batches, round(sum(b.bytes) / span_s) AS bytes_per_s, round(sum(b.rows) / span_s) AS rows_per_s,
    round(quantileExact(0.5)(row_ms)) AS sample_to_row_p50_ms, round(quantileExact(0.99)(row_ms)) AS sample_to_row_p99_ms, round(max(row_ms)) AS sample_to_row_max_ms,
    round(quantileExact(0.5)(broker_ms)) AS sample_to_broker_p50_ms, round(quantileExact(0.99)(broker_ms)) AS sample_to_broker_p99_ms
FROM
(
    SELECT
        *, toUnixTimestamp64Micro(ts) / 1000 + 4 * ticks AS end_ms,
        toUnixTimestamp64Milli(inserted_at) - end_ms AS row_ms, toUnixTimestamp64Milli(kafka_ts) - end_ms AS broker_ms,
        greatest(1, dateDiff('millisecond', min(ts) OVER one, max(ts) OVER one) / 1000 + 0.252) AS span_s
    FROM batch
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    WINDOW one AS (PARTITION BY ap_id, topic)
) AS b
GROUP BY site, ap_id, topic, span_s
ORDER BY site, ap_id, topic;

-- What fills the air? Shares of the time the radio was on the channel; `other` is busy time that is neither ours.
CREATE OR REPLACE VIEW v_air AS
SELECT
    ap_id, device, frequency_mhz, x.t AS t, round(busy_ms / active_ms, 4) AS busy_ratio, round(tx_ms / active_ms, 4) AS tx_ratio, round(rx_ms / active_ms, 4) AS rx_ratio,
    round(greatest(0, busy_ms - ifNull(tx_ms, 0) - ifNull(rx_ms, 0)) / active_ms, 4) AS other_ratio, noise_dbm_avg
FROM {database}.v_channel_1m(from = {from:DateTime64(6, 'UTC')}, to = {to:DateTime64(6, 'UTC')}) AS x
WHERE active_ms > 0
ORDER BY ap_id, device, frequency_mhz, t;

-- Who else is there? Neighbour BSSs by signal.
CREATE OR REPLACE VIEW v_neighbours AS
SELECT
    ap_id, MACNumToString(bssid) AS bss, argMax(b.frequency_mhz, ts) AS frequency_mhz, max(b.signal_dbm) AS signal_dbm_max, argMax(b.signal_dbm, ts) AS signal_dbm_last,
    round(max(load_utilization) / 255, 3) AS reported_busy_max, max(load_stations) AS reported_stations_max, max(ts) AS last_row
FROM beacon AS b
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY ap_id, bssid
ORDER BY ap_id, signal_dbm_max DESC, bssid;

-- What is there to train on? Items by class now and class to come; an onset goes from Good or Acceptable to Poor or Bad.
CREATE OR REPLACE VIEW v_items AS
SELECT
    site, ap_id, lower(hex(feature_hash)) AS feature_program, class_now, class, class_now < 'Poor' AND class >= 'Poor' AS onset,
    count() AS items, countIf(complete = 0) AS incomplete
FROM item
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY site, ap_id, feature_hash, class_now, class
ORDER BY site, ap_id, feature_hash, class_now, class;

-- How are the exporters? Per access point: share of a CPU, memory, and what went wrong since their start.
CREATE OR REPLACE VIEW v_exporters AS
SELECT
    ap_id, argMax(version, ts) AS version, round((max(cpu_us) - min(cpu_us)) / nullIf(dateDiff('microsecond', min(ts), max(ts)), 0), 4) AS cpu_ratio,
    max(h.rss_bytes) AS rss_bytes_max, argMax(h.ticks_missed, ts) AS ticks_missed, max(h.tick_late_max_us) AS tick_late_max_us, argMax(h.ring_drops, ts) AS ring_drops,
    argMax(h.rows_dropped, ts) AS rows_dropped, argMax(h.let_go, ts) AS let_go_batches, argMax(h.sink_errors, ts) AS sink_errors,
    argMax(h.netlink_errors, ts) AS netlink_errors, argMax(h.flows_evicted, ts) AS flows_evicted,
    round(argMax(rows_sent, ts) / nullIf(argMax(rows_sampled, ts), 0), 4) AS sent_ratio, max(ts) AS last_row
FROM health AS h
WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
GROUP BY ap_id, boot_id
ORDER BY ap_id, last_row;

-- What does a row cost? Size on disk per table.
CREATE OR REPLACE VIEW v_table_sizes AS
SELECT
    database, table, sum(p.rows) AS rows, count() AS parts, sum(p.data_compressed_bytes) AS bytes,
    round(sum(p.data_compressed_bytes) / nullIf(sum(p.rows), 0), 2) AS bytes_per_row, round(sum(p.data_uncompressed_bytes) / nullIf(sum(p.data_compressed_bytes), 0), 1) AS compression
FROM system.parts AS p
WHERE active AND database NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA')
GROUP BY database, table
ORDER BY bytes DESC;
