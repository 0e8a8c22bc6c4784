-- What the paper says of its site before it learns: which channels the neighbourhood is on, and that round trips on the
-- wire are stable, so that what varies is the air and its queue. `from` and `to` as in 0004.

-- On which channels are the BSSs that access points hear? A BSS counts once, on the channel where it was heard last, by
-- whatever access point; `share` is of all BSSs of the band, `heard_by` counts access points.
CREATE OR REPLACE VIEW v_channel_histogram AS
SELECT
    band, channel, count() AS bss, round(bss / sum(bss) OVER (PARTITION BY band), 4) AS share, max(heard) AS heard_by_max,
    round(avg(signal)) AS signal_dbm_avg, round(avg(busy), 3) AS reported_busy_avg
FROM
(
    SELECT
        argMax(b.frequency_mhz, ts) AS mhz, multiIf(mhz < 3000, '2.4 GHz', mhz < 5950, '5 GHz', '6 GHz') AS band,
        multiIf(mhz = 2484, 14, mhz < 3000, intDiv(mhz - 2407, 5), mhz < 5950, intDiv(mhz - 5000, 5), intDiv(mhz - 5950, 5)) AS channel,
        uniqExact(ap_id) AS heard, max(b.signal_dbm) AS signal, max(load_utilization) / 255 AS busy
    FROM beacon AS b
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY bssid
)
GROUP BY band, channel
ORDER BY band, channel;

-- How stable are round trips on the wire, and beyond the air? Of rows of flows: percentiles [ms] of the smoothed round
-- trip between access point and server, and between access point and station; `spread` is (p95 - p5) / p50. A side that
-- was measured in fewer than 20 rows says nothing: its columns are NULL; with neither side the server is left out.
CREATE OR REPLACE VIEW v_wired_rtt AS
SELECT
    ap_id, server, flows, wired_rows, air_rows,
    if(wired_rows < 20, NULL, round(w[1], 2)) AS wired_p5_ms, if(wired_rows < 20, NULL, round(w[2], 2)) AS wired_p50_ms,
    if(wired_rows < 20, NULL, round(w[3], 2)) AS wired_p95_ms,
    if(wired_rows < 20, NULL, round((w[3] - w[1]) / w[2], 3)) AS wired_spread,
    if(air_rows < 20, NULL, round(a[1], 2)) AS air_p5_ms, if(air_rows < 20, NULL, round(a[2], 2)) AS air_p50_ms,
    if(air_rows < 20, NULL, round(a[3], 2)) AS air_p95_ms,
    if(air_rows < 20, NULL, round((a[3] - a[1]) / a[2], 3)) AS air_spread
FROM
(
    SELECT
        ap_id, replaceOne(toString(server_addr), '::ffff:', '') AS server, uniqExact(flow_id) AS flows,
        countIf(if(direction = 0, f.rtt_up_us, f.rtt_down_us) > 0) AS wired_rows,
        countIf(if(direction = 0, f.rtt_down_us, f.rtt_up_us) > 0) AS air_rows,
        quantilesExact(0.05, 0.5, 0.95)(nullIf(if(direction = 0, f.rtt_up_us, f.rtt_down_us), 0) / 1000) AS w,
        quantilesExact(0.05, 0.5, 0.95)(nullIf(if(direction = 0, f.rtt_down_us, f.rtt_up_us), 0) / 1000) AS a
    FROM flow AS f
    WHERE ts >= {from:DateTime64(6, 'UTC')} AND ts < {to:DateTime64(6, 'UTC')}
    GROUP BY ap_id, server_addr
    HAVING wired_rows >= 20 OR air_rows >= 20
)
ORDER BY ap_id, server;
