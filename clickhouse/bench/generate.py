"""Rows of access points at work, made by ClickHouse itself: SELECTs whose columns are those of the tables, in order.

Used by the tests (a minute), the samples in README.md and the benchmark (an hour), and the same each time: every number
comes from cityHash64 of its position, none from a clock or rand(). Synthetic, and shaped after the contract: batches of
63 ticks, a keyframe of every live entity at each batch's first tick, counters that only grow, rows in between where
something changed. Rows a second of one AP at the default: station 79, station_ac 198, queue 32, channel 32, beacon 79,
packet 300, flow 99, drop_event 4, health 1, label 10, item 10, batch 9.

APs whose number is a multiple of 3 are congested: backlog, drops and loss; those with number mod 3 = 1 have a bad link.
"""

from __future__ import annotations

BATCH_US = 252_000
TICK_US = 4_000
STATIONS = 10


def ap(i: int) -> str:
    """Name of AP number i (from 1)."""
    return f"ap-{i:02d}"


def mac(ap_number: int, station: int) -> str:
    """MAC address of a station (from 0) as people write it."""
    value = 0x020000000000 + ap_number * 256 + station
    return ":".join(f"{value >> s & 255:02X}" for s in range(40, -8, -8))


def _rows(aps: int, first_batch: int, batches: int, entities: int, rows: int, key: str) -> str:
    """Positions: one row per AP (a, from 1), batch (m), entity (e) and row of the batch (j), as rows arrive."""
    return f"""(
        SELECT
            1 + intDiv(number, {batches * entities * rows}) AS a, {first_batch} + intDiv(number, {entities * rows}) % {batches} AS m,
            intDiv(number, {rows}) % {entities} AS e, number % {rows} AS j,
            cityHash64(a, m, e, j, '{key}') AS h, m * {rows} + j AS n,
            if(j = 0, 0, 1 + intDiv((j - 1) * 62, {max(1, rows - 1)}) + h % {62 // max(1, rows - 1)}) AS tick
        FROM numbers({aps * batches * entities * rows})
    )"""


def _head(t0_us: int) -> str:
    return f"concat('ap-', leftPad(toString(a), 2, '0')) AS ap_id, fromUnixTimestamp64Micro({t0_us} + m * {BATCH_US} + tick * {TICK_US}, 'UTC') AS ts, cityHash64(a, 'boot') AS boot_id, m AS batch_seq"


# A counter that grows by about `step` a row: monotonic because the hashed part stays below one step.
def _counter(step: int, salt: str) -> str:
    return f"(n * {step} + cityHash64(h, '{salt}') % {max(1, step)})"


def selects(aps: int, t0_us: int, first_batch: int, batches: int) -> dict[str, str]:
    """table → SELECT of the rows of `batches` batches of every AP, from batch number `first_batch` (time t0_us + number * 252 ms)."""
    head = _head(t0_us)
    station_mac = f"toUInt64(2199023255552 + a * 256 + e)"
    congested, lossy = "(a % 3 = 0)", "(a % 3 = 1)"
    wave = lambda period, phase="a": f"(0.5 + 0.5 * sin(m / {period} + {phase}))"
    signal = f"toInt8(-45 - 4 * e + 3 * sin(m / 90 + e) - if({lossy}, 12, 0) + h % 3)"
    out = {}
    out["station"] = f"""
    SELECT {head}, {station_mac} AS mac, 'wlan0' AS device, toUInt16(if(e < 8, 1, 25)) AS interval_ticks,
        {_counter(9000, 'rx')} * (1 + e % 3) AS rx_bytes, {_counter(60000, 'tx')} * (1 + e % 5) AS tx_bytes, toUInt32({_counter(20, 'rp')}) AS rx_pkts, toUInt32({_counter(42, 'tp')} * (1 + e % 5)) AS tx_pkts,
        toUInt32(intDiv(n * (1 + e % 5) * (2 + e + if({lossy}, 20, 0)), 1) + h % 2) AS tx_retries, toUInt32(intDiv(n * if({lossy}, 6, 1), 40)) AS tx_failed,
        toUInt64(intDiv(n, 2000)) AS rx_drop_misc, 0 AS beacon_loss, {signal} AS signal_dbm, toInt8(-45 - 4 * e - if({lossy}, 12, 0)) AS signal_avg_dbm, toInt8({signal} - 2) AS ack_signal_dbm,
        toUInt32(arrayElement([866700, 650000, 390000, 195000, 65000], 1 + intDiv(e, 2))) AS tx_bitrate_kbps, toUInt8(9 - intDiv(e, 2)) AS tx_mcs, 2 AS tx_nss, 80 AS tx_width_mhz, 400 AS tx_gi_ns,
        toUInt32(arrayElement([780000, 585000, 351000, 175500, 58500], 1 + intDiv(e + h % 2, 2) % 5)) AS rx_bitrate_kbps, toUInt8(8 - intDiv(e, 2)) AS rx_mcs, 2 AS rx_nss, 80 AS rx_width_mhz, 400 AS rx_gi_ns,
        toUInt32(tx_bitrate_kbps * 0.6) AS expected_throughput_kbps, {_counter(1500, 'ta')} * (1 + e) AS tx_airtime_us, {_counter(400, 'ra')} * (1 + intDiv(e, 2)) AS rx_airtime_us,
        toUInt16(256) AS airtime_weight, toUInt32(h % if(e < 3, 20, 3000)) AS inactive_ms
    FROM {_rows(aps, first_batch, batches, STATIONS, 2, 'station')}"""
    busy = "e % 10 < 3"
    backlog = f"if({busy} AND ac = 2, toUInt32(if({congested}, 150000, 9000) * {wave(40, 'e')} + h % 6000), 0)"
    # Entity e of station_ac is station e % 10; the best-effort class appears twice so that it has two rows a batch.
    out["station_ac"] = f"""
    SELECT {head.replace('tick *', 'tick2 *')}, toUInt64(2199023255552 + a * 256 + e % 10) AS mac, 'wlan0' AS device, toUInt8(arrayElement([0, 1, 2, 3, 2], 1 + intDiv(e, 10))) AS ac,
        if(ac = 2, n2 * 42 + h % 42, intDiv(n, 100)) AS msdu_pkts, intDiv(msdu_pkts, 12) AS msdu_retries, intDiv(msdu_pkts, 2000) AS msdu_failed,
        {backlog} AS backlog_bytes, toUInt32(intDiv(backlog_bytes, 1500)) AS backlog_pkts, toUInt32(intDiv(n, 50)) AS flows,
        toUInt32(if({busy} AND ac = 2 AND {congested}, intDiv(n2, 3), 0)) AS drops, 0 AS ecn_marks, toUInt32(if({busy} AND ac = 2 AND {congested}, intDiv(n2, 400), 0)) AS overlimit, toUInt32(intDiv(n, 300)) AS collisions,
        toUInt32(msdu_pkts * 1460 % 4294967296) AS tx_bytes, toUInt32(msdu_pkts) AS tx_pkts
    FROM (SELECT *, if(e >= 40, 31 + h % 31, 0) AS tick2, m * 2 + if(e >= 40, 1, 0) AS n2 FROM {_rows(aps, first_batch, batches, 5 * STATIONS, 1, 'station_ac')})"""
    out["channel"] = f"""
    SELECT {head}, 'wlan0' AS device, toUInt16(5180 + a % 4 * 80) AS frequency_mhz, 80 AS width_mhz, m * 252 + tick * 4 AS active_ms,
        toUInt64(active_ms * if({congested}, 0.85, 0.4)) AS busy_ms, toUInt64(active_ms * 0.02) AS ext_busy_ms, toUInt64(active_ms * 0.1) AS rx_ms, toUInt64(active_ms * if({congested}, 0.6, 0.2)) AS tx_ms,
        NULL AS scan_ms, toInt8(-95 + h % 3) AS noise_dbm
    FROM {_rows(aps, first_batch, batches, 1, 8, 'channel')}"""
    out["queue"] = f"""
    SELECT {head}, if(e = 0, 'eth0', 'wlan0') AS device, toUInt32(if(e = 0, 65536, 0)) AS handle, 4294967295 AS parent, if(e = 0, 'fq_codel', 'mac80211') AS kind,
        {_counter(90000, 'qb')} AS bytes, intDiv(bytes, 1460) AS pkts, toUInt32(if({congested} AND e = 1, intDiv(n, 4), 0)) AS drops, toUInt32(intDiv(n, 100)) AS overlimits, 0 AS requeues,
        toUInt32(if(e = 1, if({congested}, 300000, 12000) * {wave(40)}, 0) + h % 3000) AS backlog_bytes, toUInt32(intDiv(backlog_bytes, 1500)) AS qlen_pkts, if(e = 0, 0, NULL) AS ecn_marks
    FROM {_rows(aps, first_batch, batches, 2, 4, 'queue')}"""
    out["beacon"] = f"""
    SELECT {head}, toUInt64(3298534883328 + a * 4096 + e * 16) AS bssid, 'wlan0' AS device, toUInt16(5180 + e % 4 * 80) AS frequency_mhz, toInt8(-50 - 2 * e + h % 3) AS signal_dbm,
        toUInt32(h % 400) AS age_ms, if(e % 4 = 0, NULL, toUInt16(e % 7)) AS load_stations, if(e % 4 = 0, NULL, toUInt8(20 + e * 9 + h % 5)) AS load_utilization
    FROM {_rows(aps, first_batch, batches, 20, 1, 'beacon')}"""
    # 25 flows; of each AP's 76 packets a batch (300 a second) two in three are data down, the third an ACK up.
    flow = "cityHash64(a, f, 'flow') AS flow_id, toIPv6(concat('::ffff:10.', toString(a), '.0.', toString(10 + f % 10))) AS client_addr, toIPv6(concat('::ffff:192.0.2.', toString(f))) AS server_addr, toUInt16(40000 + f * 17) AS client_port, 443 AS server_port, toUInt64(2199023255552 + a * 256 + f % 10) AS station_mac"
    out["packet"] = f"""
    SELECT concat('ap-', leftPad(toString(a), 2, '0')) AS ap_id, fromUnixTimestamp64Micro({t0_us} + m * {BATCH_US} + j * 3315 + h % 3315, 'UTC') AS ts, cityHash64(a, 'boot') AS boot_id, m AS batch_seq, {flow},
        if(j % 3 = 2, 1, 0) AS direction, toUInt32((if(direction = 0, (m * 2 + j % 2) * 1448 - if(h % if({congested}, 20, 400) = 0, 2896, 0), 517) + cityHash64(f, a)) % 4294967296) AS seq,
        toUInt32((if(direction = 0, 517, (m * 2 + j % 2) * 1448) + cityHash64(f, a)) % 4294967296) AS ack, toUInt32(if(direction = 0, if(h % 11 = 0, 200 + h % 1200, 1448), 0)) AS payload_bytes,
        toUInt16(if(direction = 0, 501, 1800 + h % 300)) AS window_raw, toUInt8(if(h % 11 = 0, 24, 16)) AS flags, 0 AS syn_options, 0 AS wscale, 0 AS mss_bytes, toUInt8(if(direction = 1 AND h % 50 = 0, 1 + h % 3, 0)) AS sack_blocks,
        toUInt32((m * 252 + intDiv(j * 252, 76) + cityHash64(f) ) % 4294967296) AS ts_val, toUInt32((m * 252 + intDiv(j * 252, 76) - 30 + cityHash64(f, 'e')) % 4294967296) AS ts_ecr, 0 AS ip_ecn
    FROM (SELECT *, cityHash64(h, 'f') % 25 AS f FROM {_rows(aps, first_batch, batches, 1, 76, 'packet')})"""
    rtt = f"toUInt32(4000 + f * 300 + if({congested}, 45000 * {wave(40, 'f')}, 1500) + h % 900)"
    out["flow"] = f"""
    SELECT {head}, {flow}, 0 AS direction, {_counter(3000, 'sb')} AS sent_bytes, intDiv(sent_bytes, 1400) AS sent_pkts, toUInt64(sent_bytes * if({congested}, 0.03, 0.002)) AS retrans_bytes, intDiv(retrans_bytes, 1400) AS retrans_pkts,
        sent_bytes - retrans_bytes AS delivered_bytes, intDiv(n, 9) AS dup_acks, toUInt32(if({congested}, 60000, 9000) + h % 20000) AS unacked_bytes, toUInt32(262144 + h % 4 * 1024) AS rwnd_bytes,
        {rtt} AS rtt_down_us, toUInt32(12000 + f * 500 + h % 400) AS rtt_up_us, toUInt32(90 + h % 60) AS delivery_rate_kbps
    FROM (SELECT *, e AS f FROM {_rows(aps, first_batch, batches, 25, 1, 'flow')})"""
    out["drop_event"] = f"""
    SELECT {head}, toUInt8(if(h % 4 = 0, 4, if({congested}, 1, 4))) AS cause, 'wlan0' AS device, toUInt64(2199023255552 + a * 256 + h % 3) AS mac, toUInt32(if(cause = 1, 2, 0)) AS queue, toUInt32(1 + h % 2) AS count
    FROM {_rows(aps, first_batch, batches, 1, 1, 'drop_event')}"""
    out["health"] = f"""
    SELECT {head}, '1.0.0' AS version, m * 63 AS ticks, 0 AS ticks_missed, toUInt32(h % 400) AS tick_late_max_us, m * 76 AS packets, 0 AS ring_drops, m AS packets_skipped, m * 900 AS rows_sampled, m * 205 AS rows_sent, 0 AS rows_dropped,
        25 AS flows, 0 AS flows_evicted, 0 AS dumps_interrupted, 0 AS netlink_errors, m * 2 AS batches, m * 11000 AS batch_bytes, m * 2 AS delivered, 0 AS let_go, 0 AS sink_errors, toUInt64(h % 9000) AS queued_bytes,
        m * 12000 AS cpu_us, toUInt64(6291456 + h % 4096) AS rss_bytes, toUInt32(200 + h % 90) AS clock_error_us, 1 AS clock_state
    FROM (SELECT * FROM {_rows(aps, first_batch, batches, 1, 1, 'health')} WHERE m % 4 = 0)"""
    # Decision instants are multiples of 100 ms; a batch has 2 or 3 of them.
    instants = f"""(
        SELECT 1 + intDiv(number, {batches * BATCH_US // 100_000}) AS a, number % {batches * BATCH_US // 100_000} AS i, {-(-(t0_us + first_batch * BATCH_US) // 100_000)} * 100000 + i * 100000 AS us, cityHash64(a, us, 'label') AS h,
            if({congested}, pow({wave(40, 'a').replace('m /', '(us / 252000) /')}, 3) * 0.16, 0.002) AS level,
            toUInt32(180 + h % 40) AS offered, toUInt32(offered * if({lossy}, 0.02, 0.001)) AS mac_lost, mac_lost + toUInt32(offered * level * (0.8 + (h % 40) / 100)) AS lost
        FROM numbers({aps * (batches * BATCH_US // 100_000)})
    )"""
    place = "concat('ap-', leftPad(toString(a), 2, '0')) AS ap_id, if(a % 2 = 0, 'north', 'south') AS site"
    classes = "multiIf(ratio < 0.01, 'Good', ratio < 0.05, 'Acceptable', ratio < 0.12, 'Poor', 'Bad')"
    out["label"] = f"""
    SELECT {place}, fromUnixTimestamp64Micro(us, 'UTC') AS ts, 1000000 AS window_us, offered AS offered_pkts, offered * 1400 AS offered_bytes, lost AS lost_pkts, lost * 1400 AS lost_bytes, mac_lost AS mac_lost_pkts,
        toUInt32(lost - mac_lost) AS congestion_lost_pkts, toUInt32(congestion_lost_pkts + if(h % 29 = 0, 1, 0)) AS queue_drop_pkts, toFloat32(congestion_lost_pkts / offered) AS ratio, {classes} AS class, 25 AS flows, 1 AS complete
    FROM {instants}"""
    out["item"] = f"""
    SELECT {place}, fromUnixTimestamp64Micro(us, 'UTC') AS ts, cityHash64(a, 'boot') AS boot_id, 1311768467463790320 AS feature_hash,
        arrayMap(k -> toInt64(cityHash64(us, a, k) % 1000 + k * 100), range(48)) AS features, 200000 AS horizon_us, {classes.replace('ratio', 'before')} AS class_now, {classes} AS class, toFloat32(ratio) AS loss_ratio, offered AS offered_pkts, 1 AS complete
    FROM (SELECT *, (lost - mac_lost) / offered AS ratio, greatest(0, ratio + ((h % 100) - 50) / 5000) AS before FROM {instants})"""
    out["batch"] = f"""
    SELECT {place}, fromUnixTimestamp64Micro({t0_us} + m * {BATCH_US}, 'UTC') AS ts, arrayElement(['ap.samples.v1', 'ap.packets.v1', 'ap.events.v1'], 1 + e) AS topic, cityHash64(a, 'boot') AS boot_id, if(e = 2, intDiv(m, 4), m) AS seq, if(e = 2, 252, 63) AS ticks,
        0 AS ticks_missed, toUInt32(h % 400) AS tick_late_max_us, 0 AS ring_drops, 0 AS rows_dropped, 0 AS dumps_interrupted, 1 AS clock_state, toUInt32(200 + h % 90) AS clock_error_us, toUInt32(arrayElement([105, 101, 1], 1 + e)) AS rows,
        toUInt32(arrayElement([4200, 6100, 300], 1 + e) + h % 500) AS bytes, fromUnixTimestamp64Milli(intDiv({t0_us} + m * {BATCH_US}, 1000) + ticks * 4 + 5 + h % 40, 'UTC') AS kafka_ts, a % 8 AS kafka_partition, m * 3 + e AS kafka_offset
    FROM (SELECT * FROM {_rows(aps, first_batch, batches, 3, 1, 'batch')} WHERE e < 2 OR m % 4 = 0)"""
    return out
