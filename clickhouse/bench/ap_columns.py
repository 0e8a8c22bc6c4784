"""Columns of what access points sample and of what the stream jobs derive from it; names as in generate.py."""

from __future__ import annotations

BATCH_US = 252_000
TICK_US = 4_000
STATIONS = 10
PACKETS = 76  # of a batch: 300 a second
FLOWS = 25
INSTANT_US = 100_000

CONGESTED, BAD_LINK = "(a % 3 = 0)", "(a % 3 = 1)"
WAVE = "(0.5 + 0.5 * sin(m / 40 + {}))"  # a congested spell every 63 s

AP_ID = "concat('ap-', leftPad(toString(a), 2, '0'))"
BOOT_ID = "cityHash64(a, 'boot')"
PLACE = {"ap_id": AP_ID, "site": "if(a % 2 = 0, 'north', 'south')"}
FLOW = {
    "flow_id": "cityHash64(a, f, 'flow')",
    "client_addr": "toIPv6(concat('::ffff:10.', toString(a), '.0.', toString(10 + f % 10)))",
    "server_addr": "toIPv6(concat('::ffff:192.0.2.', toString(f)))",
    "client_port": "toUInt16(40000 + f * 17)",
    "server_port": "443",
    "station_mac": "toUInt64(2199023255552 + a * 256 + f % 10)",
}


def ap(number: int) -> str:
    """Name of an AP."""
    return f"ap-{number:02d}"


def growing(step: int, salt: str) -> str:
    """A counter that grows by about `step` a row; the hashed part stays below one step, so it never falls."""
    return f"(n * {step} + cityHash64(h, '{salt}') % {step})"


def by_class(ratio: str) -> str:
    """Class of a loss ratio: settings.class_bounds_permille."""
    return f"multiIf({ratio} < 0.01, 'Good', {ratio} < 0.05, 'Acceptable', {ratio} < 0.12, 'Poor', 'Bad')"


SIGNAL = f"toInt8(-45 - 4 * e + 3 * sin(m / 90 + e) - if({BAD_LINK}, 12, 0) + h % 3)"
STATION = {
    "mac": "toUInt64(2199023255552 + a * 256 + e)",
    "device": "'wlan0'",
    "interval_ticks": "toUInt16(if(e < 8, 1, 25))",
    "rx_bytes": growing(9000, "rx") + " * (1 + e % 3)",
    "tx_bytes": growing(60000, "tx") + " * (1 + e % 5)",
    "rx_pkts": f"toUInt32({growing(20, 'rp')})",
    "tx_pkts": f"toUInt32({growing(42, 'tp')} * (1 + e % 5))",
    "tx_retries": f"toUInt32(n * (1 + e % 5) * (2 + e + if({BAD_LINK}, 20, 0)) + h % 2)",
    "tx_failed": f"toUInt32(intDiv(n * if({BAD_LINK}, 6, 1), 40))",
    "rx_drop_misc": "intDiv(n, 2000)",
    "beacon_loss": "0",
    "signal_dbm": SIGNAL,
    "signal_avg_dbm": f"toInt8(-45 - 4 * e - if({BAD_LINK}, 12, 0))",
    "ack_signal_dbm": "toInt8(signal_dbm - 2)",
    "tx_bitrate_kbps": "toUInt32(arrayElement([866700, 650000, 390000, 195000, 65000], 1 + intDiv(e, 2)))",
    "tx_mcs": "toUInt8(9 - intDiv(e, 2))",
    "tx_nss": "2",
    "tx_width_mhz": "80",
    "tx_gi_ns": "400",
    "rx_bitrate_kbps": "toUInt32(arrayElement([780000, 585000, 351000, 175500, 58500], 1 + intDiv(e + h % 2, 2) % 5))",
    "rx_mcs": "toUInt8(8 - intDiv(e, 2))",
    "rx_nss": "2",
    "rx_width_mhz": "80",
    "rx_gi_ns": "400",
    "expected_throughput_kbps": "toUInt32(tx_bitrate_kbps * 0.6)",
    "tx_airtime_us": growing(1500, "ta") + " * (1 + e)",
    "rx_airtime_us": growing(400, "ra") + " * (1 + intDiv(e, 2))",
    "airtime_weight": "toUInt16(256)",
    "inactive_ms": "toUInt32(h % if(e < 3, 20, 3000))",
}
# Entity e is station e % 10; the best-effort class appears twice (e from 20, from 40), so that it has two rows a batch.
LOADED = "(e % 10 < 3 AND ac = 2)"
STATION_AC = {
    "mac": "toUInt64(2199023255552 + a * 256 + e % 10)",
    "device": "'wlan0'",
    "ac": "toUInt8(arrayElement([0, 1, 2, 3, 2], 1 + intDiv(e, 10)))",
    "msdu_pkts": "if(ac = 2, n2 * 42 + h % 42, intDiv(n, 100))",
    "msdu_retries": "intDiv(msdu_pkts, 12)",
    "msdu_failed": "intDiv(msdu_pkts, 2000)",
    "backlog_bytes": f"if({LOADED}, toUInt32(if({CONGESTED}, 150000, 9000) * {WAVE.format('e')} + h % 6000), 0)",
    "backlog_pkts": "toUInt32(intDiv(backlog_bytes, 1500))",
    "flows": "toUInt32(intDiv(n, 50))",
    "drops": f"toUInt32(if({LOADED} AND {CONGESTED}, intDiv(n2, 3), 0))",
    "ecn_marks": "0",
    "overlimit": f"toUInt32(if({LOADED} AND {CONGESTED}, intDiv(n2, 400), 0))",
    "collisions": "toUInt32(intDiv(n, 300))",
    "tx_bytes": "toUInt32(msdu_pkts * 1460 % 4294967296)",
    "tx_pkts": "toUInt32(msdu_pkts)",
}
CHANNEL = {
    "device": "'wlan0'",
    "frequency_mhz": "toUInt16(5180 + a % 4 * 80)",
    "width_mhz": "80",
    "active_ms": "m * 252 + tick * 4",
    "busy_ms": f"toUInt64(active_ms * if({CONGESTED}, 0.85, 0.4))",
    "ext_busy_ms": "toUInt64(active_ms * 0.02)",
    "rx_ms": "toUInt64(active_ms * 0.1)",
    "tx_ms": f"toUInt64(active_ms * if({CONGESTED}, 0.6, 0.2))",
    "scan_ms": "NULL",
    "noise_dbm": "toInt8(-95 + h % 3)",
}
QUEUE = {
    "device": "if(e = 0, 'eth0', 'wlan0')",
    "handle": "toUInt32(if(e = 0, 65536, 0))",
    "parent": "4294967295",
    "kind": "if(e = 0, 'fq_codel', 'mac80211')",
    "bytes": growing(90000, "qb"),
    "pkts": "intDiv(bytes, 1460)",
    "drops": f"toUInt32(if({CONGESTED} AND e = 1, intDiv(n, 4), 0))",
    "overlimits": "toUInt32(intDiv(n, 100))",
    "requeues": "0",
    "backlog_bytes": f"toUInt32(if(e = 1, if({CONGESTED}, 300000, 12000) * {WAVE.format('a')}, 0) + h % 3000)",
    "qlen_pkts": "toUInt32(intDiv(backlog_bytes, 1500))",
    "ecn_marks": "if(e = 0, 0, NULL)",
}
BEACON = {
    "bssid": "toUInt64(3298534883328 + a * 4096 + e * 16)",
    "device": "'wlan0'",
    "frequency_mhz": "toUInt16(5180 + e % 4 * 80)",
    "signal_dbm": "toInt8(-50 - 2 * e + h % 3)",
    "age_ms": "toUInt32(h % 400)",
    "load_stations": "if(e % 4 = 0, NULL, toUInt16(e % 7))",
    "load_utilization": "if(e % 4 = 0, NULL, toUInt8(20 + e * 9 + h % 5))",
}
# Of three packets two are data down, the third is an ACK up.
PACKET = FLOW | {
    "direction": "if(j % 3 = 2, 1, 0)",
    "seq": (
        f"toUInt32((if(direction = 0, (m * 2 + j % 2) * 1448 - if(h % if({CONGESTED}, 20, 400) = 0, 2896, 0), 517) +"
        " cityHash64(f, a)) % 4294967296)"
    ),
    "ack": "toUInt32((if(direction = 0, 517, (m * 2 + j % 2) * 1448) + cityHash64(f, a)) % 4294967296)",
    "payload_bytes": "toUInt32(if(direction = 0, if(h % 11 = 0, 200 + h % 1200, 1448), 0))",
    "window_raw": "toUInt16(if(direction = 0, 501, 1800 + h % 300))",
    "flags": "toUInt8(if(h % 11 = 0, 24, 16))",
    "syn_options": "0",
    "wscale": "0",
    "mss_bytes": "0",
    "sack_blocks": "toUInt8(if(direction = 1 AND h % 50 = 0, 1 + h % 3, 0))",
    "ts_val": f"toUInt32((m * 252 + intDiv(j * 252, {PACKETS}) + cityHash64(f)) % 4294967296)",
    "ts_ecr": f"toUInt32((m * 252 + intDiv(j * 252, {PACKETS}) - 30 + cityHash64(f, 'e')) % 4294967296)",
    "ip_ecn": "0",
}
FLOW_STATE = FLOW | {
    "direction": "0",
    "sent_bytes": growing(3000, "sb"),
    "sent_pkts": "intDiv(sent_bytes, 1400)",
    "retrans_bytes": f"toUInt64(sent_bytes * if({CONGESTED}, 0.03, 0.002))",
    "retrans_pkts": "intDiv(retrans_bytes, 1400)",
    "delivered_bytes": "sent_bytes - retrans_bytes",
    "dup_acks": "intDiv(n, 9)",
    "unacked_bytes": f"toUInt32(if({CONGESTED}, 60000, 9000) + h % 20000)",
    "rwnd_bytes": "toUInt32(262144 + h % 4 * 1024)",
    "rtt_down_us": f"toUInt32(4000 + f * 300 + if({CONGESTED}, 45000 * {WAVE.format('f')}, 1500) + h % 900)",
    "rtt_up_us": "toUInt32(12000 + f * 500 + h % 400)",
    "delivery_rate_kbps": "toUInt32(90 + h % 60)",
}
DROP_EVENT = {
    "cause": f"toUInt8(if(h % 4 = 0, 4, if({CONGESTED}, 1, 4)))",
    "device": "'wlan0'",
    "mac": "toUInt64(2199023255552 + a * 256 + h % 3)",
    "queue": "toUInt32(if(cause = 1, 2, 0))",
    "count": "toUInt32(1 + h % 2)",
}
HEALTH = {
    "version": "'1.0.0'",
    "ticks": "m * 63",
    "ticks_missed": "0",
    "tick_late_max_us": "toUInt32(h % 400)",
    "packets": f"m * {PACKETS}",
    "ring_drops": "0",
    "packets_skipped": "m",
    "rows_sampled": "m * 900",
    "rows_sent": "m * 205",
    "rows_dropped": "0",
    "flows": str(FLOWS),
    "flows_evicted": "0",
    "dumps_interrupted": "0",
    "netlink_errors": "0",
    "batches": "m * 2",
    "batch_bytes": "m * 11000",
    "delivered": "m * 2",
    "let_go": "0",
    "sink_errors": "0",
    "queued_bytes": "h % 9000",
    "cpu_us": "m * 12000",
    "rss_bytes": "6291456 + h % 4096",
    "clock_error_us": "toUInt32(200 + h % 90)",
    "clock_state": "1",
}
#: e 0: bytes sent to stations, renewed at each tick; e 1: the channel's busy time, ten times a second
COUNTER_REFRESH = {
    "device": CHANNEL["device"],
    "of_table": "toUInt8(2 * e)",
    "of_field": "toUInt8(8)",
    "period_us": "toUInt32(if(e = 0, 4000, 100000))",
}
NEIGHBOUR_AP = {
    "neighbour": "bitShiftRight(cityHash64(1 + (a + e) % 5, 'neighbour'), 1)",
    "frequency_mhz": CHANNEL["frequency_mhz"],
    "stations": "toUInt16(3 + e)",
    "tx_kbps": "toUInt32(9000 + intDiv(m, 20) * 37 % 5000)",
    "tx_airtime_permille": "toUInt16(120 + intDiv(m, 20) * 11 % 200)",
    "busy_permille": "toUInt16(400 + intDiv(m, 20) * 7 % 100)",
    "loss_permille": "toUInt16(intDiv(m, 20) % 30)",
    "backlog_bytes": "toUInt32(intDiv(m, 20) * 1499 % 90000)",
    "age_ms": "toUInt32(m % 20 * 252)",
}
LABEL = PLACE | {
    "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
    "window_us": "1000000",
    "offered_pkts": "offered",
    "offered_bytes": "offered * 1400",
    "lost_pkts": "lost",
    "lost_bytes": "lost * 1400",
    "mac_lost_pkts": "mac_lost",
    "congestion_lost_pkts": "toUInt32(lost - mac_lost)",
    "queue_drop_pkts": "toUInt32(congestion_lost_pkts + if(h % 29 = 0, 1, 0))",
    "loss_ratio": "toFloat32(ratio)",
    "class": by_class("ratio"),
    "flows": str(FLOWS),
    "complete": "1",
    "stamped": "'drop'",
    "air_lost_pkts": "mac_lost",
    "congestion_resent_pkts": "toUInt32(greatest(0, congestion_lost_pkts + h % 3 - 1))",
    "loss_permille_resent": "toUInt16(intDiv(1000 * congestion_resent_pkts, offered))",
}
LOSS_EVENT = PLACE | {
    "ts": "fromUnixTimestamp64Micro(us + h % 90000, 'UTC')",
    "boot_id": BOOT_ID,
    "flow_id": "cityHash64(a, f, 'flow')",
    "station_mac": FLOW["station_mac"],
    "seen": "fromUnixTimestamp64Micro(us + h % 90000 - h % 4000, 'UTC')",
    "resent": "fromUnixTimestamp64Micro(us + h % 90000 + 40000 + h % 300000, 'UTC')",
    "seq": "toUInt32(h)",
    "pkts": "1",
    "bytes": "1448",
    "cause": "if(h % 50 = 0, 'unknown', if(h % (lost + 1) < mac_lost, 'air', 'queue'))",
    "stamped_by": "if(h % 50 = 0, 'first sight', 'counter')",
    "queue_counter": "'txq'",
    "queue_drop_pkts": "toUInt32(h % 4)",
    "mac_failed_pkts": "toUInt32(h % 2)",
    "congestion": "toUInt8(cause = 'queue')",
}
#: of items and predictions: drops before and after the instant
DROPS = {
    "since_drop_us": "toInt32(if(ratio > 0.005 AND h % 3 != 0, h % 400000, -1))",
    "until_drop_us": "toInt32(if(ratio > 0.003, h % 900000, -1))",
}
ITEM = PLACE | {
    "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
    "boot_id": BOOT_ID,
    "feature_hash": "1311768467463790320",
    "features": "arrayMap(k -> toInt64(cityHash64(us, a, k) % 1000 + k * 100), range(48))",
    "horizon_us": "200000",
    "class_now": by_class("greatest(0, ratio + ((h % 100) - 50) / 5000)"),
    "class": by_class("ratio"),
    "loss_ratio": "toFloat32(ratio)",
    "offered_pkts": "offered",
    "complete": "1",
    "policy": "'rwnd-fair'",
    "loss_permille_resent": "toInt16(1000 * ratio)",
    "loss_permille_now_resent": "toInt16(greatest(0, 1000 * ratio + (h % 100 - 50) / 5))",
} | DROPS
