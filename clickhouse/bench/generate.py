"""Rows of access points at work, made by ClickHouse itself: SELECTs whose columns are those of the tables, in order.

Used by the tests and the samples in README.md (two minutes) and by the benchmark (an hour), and the same each time:
every number comes from cityHash64 of its position, none from a clock or rand(). Synthetic, and shaped after the
contract: batches of 63 ticks, a keyframe of every live entity at each batch's first tick, counters that only grow, rows
in between where something changed. Rows a second of one AP: station 79, station_ac 198, queue 32, channel 32, beacon
79, packet 300, flow 99, drop_event 4, health 1, neighbour_ap 8, label 10, item 10, decision 10, prediction 10, batch 9;
of one with online trees, and so a policy, also control 1, tree_decision 1, rewrite 1 (0 while nothing is clamped).

APs whose number is a multiple of 3 are congested (backlog, drops, loss); those with number mod 3 = 1 have a bad link.

In the expressions below: a is the AP's number (from 1), m the batch, e the entity, j the row in the batch, n the
entity's row since the start, h a hash of all of these, tick the row's tick in its batch, f the flow.
"""

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
# Every second. Congested access points enforce, those with a bad link are in shadow mode, the others have no policy.
# Flows are clamped (in shadow mode: would be) for half of each 63 s, and the guard reverts every 100 s.
CLAMPS = "if(sin(m / 40 + a + 1) > 0, toUInt32(2 + h % 4), 0)"
CONTROL = {
    "backend": f"toUInt8(if({CONGESTED}, 3, 1))",
    "mode": f"toUInt8(if({CONGESTED}, 2, 1))",
    "killed": "toUInt8(0)",
    "clamps": CLAMPS,
    "capacity_kbps": "toUInt32(24000 + h % 6000)",
    "queue_us": f"toUInt32(if({CONGESTED}, 40000 * {WAVE.format('a')}, 3000) + h % 900)",
    "steps": "m * 12",
    "sets": "intDiv(m * 5, 2)",
    "set_errors": "0",
    "releases": "intDiv(m, 16)",
    "guard_reverts": "intDiv(m, 400)",
    "acks_seen": f"if({CONGESTED}, m * 60, 0)",
    "acks_clamped": f"if({CONGESTED}, m * 25, 0)",
    "acks_skipped": "0",
    "step_max_ns": "toUInt32(90000 + h % 50000)",
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
}

# A third of the access points has a model of the registry, the others online trees, a new one every 40 s. The tree sees
# the ratio through noise, and has ten leaves.
REGISTRY = "(a % 3 = 2)"
SEEN = "greatest(0, ratio + ((h % 77) - 38) / 1500)"
MODEL = {
    "bundle": f"bitShiftRight(cityHash64('bundle', version, if({REGISTRY}, 0, a)), 1)",
    "source": f"if({REGISTRY}, 'registry', 'online')",
    "version": f"toUInt32(if({REGISTRY}, 3, 1 + intDiv(us, 40000000) % 1000))",
}
CONGESTED_PERMILLE = f"toUInt16(least(950, 10 + 100 * toUInt32({SEEN} * 80)))"
DECISION = MODEL | {
    "source": f"toUInt8(if({REGISTRY}, 1, 2))",
    "instant_us": "toUInt64(us)",
    "class": f"toUInt8(indexOf(['Good', 'Acceptable', 'Poor', 'Bad'], {by_class(SEEN)}) - 1)",
    "confidence_permille": "toUInt16(550 + h % 5 * 100)",
    "congested_permille": CONGESTED_PERMILLE,
    "leaf": f"toUInt16(intDiv({CONGESTED_PERMILLE}, 100) * 2)",
    "features_hash": "bitShiftRight(cityHash64(us, a, 'features'), 1)",
    "features_missing": "toUInt8(h % 50 = 0)",
    "eval_ns": "toUInt32(900 + h % 400)",
}
BUNDLE_STATUS = {
    "bundle": "bitShiftRight(cityHash64('bundle', toUInt32(1 + intDiv(us, 40000000) % 1000), a), 1)",
    "source": "toUInt8(2)",
    "version": "toUInt32(1 + intDiv(us, 40000000) % 1000)",
    "serial": "toUInt64(us - 300000)",
    "state": "toUInt8(1)",
    "reason": "toUInt8(0)",
    "bytes": "toUInt32(1900 + h % 300)",
}
REWRITE = {
    "flow_id": f"bitAnd({FLOW['flow_id']}, 9223372036854775807)",
    "backend": CONTROL["backend"],
    "mac": FLOW["station_mac"],
    "bundle": BUNDLE_STATUS["bundle"],
    "class": "toUInt8(if(m % 8 = 4, 255, 2))",
    "reason": "toUInt8(if(m % 8 = 4, 3, 1))",
    "capacity_kbps": CONTROL["capacity_kbps"],
    "share_kbps": "toUInt32(capacity_kbps / 5)",
    "rate_kbps": "toUInt32(share_kbps * (1 + h % 5 / 10))",
    "cwnd_bytes": "toUInt32(40000 + h % 60000)",
    "queue_us": CONTROL["queue_us"],
    "window_bytes": "toUInt32(cwnd_bytes / (1 + h % 5 / 10))",
}
PREDICTION = PLACE | {
    "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
    "boot_id": BOOT_ID,
    "bundle": MODEL["bundle"],
    "source": MODEL["source"],
    "version": MODEL["version"],
    "predicted": by_class(SEEN),
    "confidence_permille": DECISION["confidence_permille"],
    "congested_permille": CONGESTED_PERMILLE,
    "leaf": DECISION["leaf"],
    "features_missing": DECISION["features_missing"],
    "eval_ns": DECISION["eval_ns"],
    "class_now": "if(h % 100 = 0, 'unknown', " + by_class("greatest(0, ratio + ((h % 100) - 50) / 5000)") + ")",
    "class": "if(h % 100 = 0, 'unknown', " + by_class("ratio") + ")",
    "complete": "toUInt8(h % 100 != 0)",
    "features_match": "if(h % 100 = 0, 'unknown', 'same')",
}
# A tree of each access point with online trees, every second; one in 40 is shipped.
TREE_DECISION = PLACE | {
    "ts": "fromUnixTimestamp64Micro(us - 500000, 'UTC')",
    "trainer": "'trainer-1'",
    "action": "if(us % 40000000 = 0, 'shipped', 'held')",
    "reason": "if(us % 40000000 = 0, 'better', arrayElement(['not_better', 'hysteresis'], 1 + h % 2))",
    "items": "toUInt32(10000)",
    "train_items": "toUInt32(8000)",
    "test_items": "toUInt32(2000)",
    "test_onsets": "toUInt32(30 + h % 9)",
    "train_until": "fromUnixTimestamp64Micro(us - 201500000, 'UTC')",
    "test_until": "fromUnixTimestamp64Micro(us - 1500000, 'UTC')",
    "candidate_onset_ap": "toFloat32(0.4 + h % 100 / 1000 + if(us % 40000000 = 0, 0.1, 0))",
    "in_force_onset_ap": "toFloat32(0.45)",
    "persistence_onset_ap": "toFloat32(0.2)",
    "candidate_macro_f1": "toFloat32(0.7)",
    "in_force_macro_f1": "toFloat32(0.69)",
    "persistence_macro_f1": "toFloat32(0.66)",
    "drift": "toFloat32(0)",
    "nodes": "toUInt16(61 + h % 40 * 2)",
    "fit_us": "toUInt32(4000 + h % 900)",
    "bundle": (
        "if(action = 'shipped', bitShiftRight(cityHash64('bundle', toUInt32(1 + intDiv(us, 40000000) % 1000), a),"
        " 1), 0)"
    ),
    "version": "toUInt32(if(action = 'shipped', 1 + intDiv(us, 40000000) % 1000, 0))",
    "in_force": "bitShiftRight(cityHash64('bundle', toUInt32(intDiv(us, 40000000) % 1000), a), 1)",
    "feature_hash": "1311768467463790320",
}
RELEASE = {
    "ts": "fromUnixTimestamp64Micro(us - 300000, 'UTC')",
    "source": "'online'",
    "slot": "'online'",
    "scope": f"concat('ap/', {AP_ID})",
    "action": "'release'",
    "model": "'online'",
    "version": BUNDLE_STATUS["version"],
    "bundle": BUNDLE_STATUS["bundle"],
    "serial": "toInt64(us - 300000)",
    "bytes": "toUInt32(1900 + h % 300)",
    "nodes": "toUInt16(61 + h % 40 * 2)",
    "feature_hash": "1311768467463790320",
    "run_id": "lower(hex(cityHash64(a, 'run')))",
    "reason": "'better'",
    "policy": f"if({CONGESTED}, 'careful', 'default')",
    "policy_version": f"toUInt32(if({CONGESTED}, 3, 1))",
}
ROLLOUT = {
    "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
    "rollout": f"concat('online-', {AP_ID}, '-', toString(us))",
    "slot": "'online'",
    "scope": f"concat('ap/', {AP_ID})",
    "bundle": BUNDLE_STATUS["bundle"],
    "step": "'completed'",
    "aps": "toUInt32(1)",
    "applied": "toUInt32(1)",
    "rejected": "toUInt32(0)",
    "metric": "''",
    "value": "nan",
    "limit": "nan",
    "detail": "''",
}
SENDER_TCP = {
    "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
    "host": "'server'",
    "flow_id": "cityHash64(a, h % 5, 'flow')",
    "server_port": "toUInt16(443)",
    "client_port": "toUInt16(40000 + h % 5)",
    "congestion_control": "'cubic'",
    "state": "toUInt8(1)",
    "cwnd_bytes": "toUInt32(14480 + h % 60 * 1448)",
    "ssthresh_bytes": "toUInt32(70000)",
    "mss_bytes": "toUInt16(1448)",
    "unacked_pkts": "toUInt32(h % 40)",
    "rtt_us": "toUInt32(20000 + h % 30000)",
    "min_rtt_us": "toUInt32(12000)",
    "delivery_rate_bps": "toUInt64(2000000 + h % 1000000)",
    "pacing_rate_bps": "toUInt64(4000000)",
    "bytes_acked": "toUInt64(us % 1000000000)",
    "retrans_pkts": "toUInt32(us % 1000000000 / 10000000)",
    "lost_pkts": "toUInt32(h % 3)",
    "clock_offset_us": "toInt64(-40 + h % 9)",
    "clock_offset_error_us": "toUInt32(120)",
}


def batch(t0_us: int) -> dict[str, str]:
    """One record of samples and one of packets a batch (e = 0, 1), one of events every fourth (e = 2)."""
    start = f"({t0_us} + m * {BATCH_US})"
    return PLACE | {
        "ts": f"fromUnixTimestamp64Micro({start}, 'UTC')",
        "topic": "arrayElement(['ap.samples.v1', 'ap.packets.v1', 'ap.events.v1'], 1 + e)",
        "boot_id": BOOT_ID,
        "seq": "if(e = 2, intDiv(m, 4), m)",
        "ticks": "if(e = 2, 252, 63)",
        "ticks_missed": "0",
        "tick_late_max_us": "toUInt32(h % 400)",
        "ring_drops": "0",
        "rows_dropped": "0",
        "dumps_interrupted": "0",
        "clock_state": "1",
        "clock_error_us": "toUInt32(200 + h % 90)",
        "rows": "toUInt32(arrayElement([105, 101, 1], 1 + e))",
        "bytes": "toUInt32(arrayElement([4200, 6100, 300], 1 + e) + h % 500)",
        "kafka_ts": f"fromUnixTimestamp64Milli(intDiv({start}, 1000) + ticks * 4 + 5 + h % 40, 'UTC')",
        "kafka_partition": "a % 8",
        "kafka_offset": "m * 3 + e",
    }


def selects(aps: int, t0_us: int, first_batch: int, batches: int) -> dict[str, str]:
    """table → SELECT of the rows of `batches` batches of every AP, from batch number `first_batch` (time t0_us + number
    * 252 ms).
    """

    def positions(table: str, entities: int, rows: int) -> str:
        """A row per AP, batch, entity and row of the batch, in the order in which rows arrive. The first row is the
        keyframe.
        """
        between = max(1, rows - 1)
        return f"""(
            SELECT
                1 + intDiv(number, {batches * entities * rows}) AS a, {first_batch} + intDiv(number, {entities * rows}) % {batches} AS m,
                intDiv(number, {rows}) % {entities} AS e, number % {rows} AS j, cityHash64(a, m, e, j, '{table}') AS h, m * {rows} + j AS n,
                if(j = 0, 0, 1 + intDiv((j - 1) * 62, {between}) + h % {62 // between}) AS tick
            FROM numbers({aps * batches * entities * rows})
        )"""

    def instants() -> str:
        """A row per AP and decision instant, with what was offered and lost in the second that follows."""
        each = batches * BATCH_US // INSTANT_US
        first = -(-(t0_us + first_batch * BATCH_US) // INSTANT_US)
        return f"""(
            SELECT
                1 + intDiv(number, {each}) AS a, ({first} + number % {each}) * {INSTANT_US} AS us, cityHash64(a, us, 'label') AS h,
                if({CONGESTED}, pow({WAVE.format('a').replace('m /', '(us / 252000) /')}, 3) * 0.16, 0.002) AS level, toUInt32(180 + h % 40) AS offered,
                toUInt32(offered * if({BAD_LINK}, 0.02, 0.001)) AS mac_lost, mac_lost + toUInt32(offered * level * (0.8 + (h % 40) / 100)) AS lost,
                (lost - mac_lost) / offered AS ratio
            FROM numbers({aps * each})
        )"""

    def shipped() -> str:
        """A row per AP and tree that was shipped, at the instant at which it is applied."""
        return f"(SELECT * FROM {instants()} WHERE us % 40000000 = 0 AND NOT {REGISTRY})"

    def select(columns: dict[str, str], source: str) -> str:
        return "SELECT " + ", ".join(f"{e} AS {n}" for n, e in columns.items()) + f" FROM {source}"

    def raw(columns: dict[str, str], source: str, offset_us: str = f"tick * {TICK_US}") -> str:
        head = {
            "ap_id": AP_ID, "ts": f"fromUnixTimestamp64Micro({t0_us} + m * {BATCH_US} + {offset_us}, 'UTC')",
            "boot_id": BOOT_ID, "batch_seq": "m"
        }
        return select(head | columns, source)

    second_best_effort = (
        "(SELECT *, if(e >= 40, 31 + h % 31, 0) AS tick2, m * 2 + if(e >= 40, 1, 0) AS n2 FROM"
        f" {positions('station_ac', 5 * STATIONS, 1)})"
    )
    return {
        "station": raw(STATION, positions("station", STATIONS, 2)),
        "station_ac": raw(STATION_AC, second_best_effort, f"tick2 * {TICK_US}"),
        "channel": raw(CHANNEL, positions("channel", 1, 8)),
        "queue": raw(QUEUE, positions("queue", 2, 4)),
        "beacon": raw(BEACON, positions("beacon", 20, 1)),
        "packet": raw(
            PACKET,
            f"(SELECT *, cityHash64(h, 'f') % {FLOWS} AS f FROM {positions('packet', 1, PACKETS)})",
            "j * 3315 + h % 3315",
        ),
        "flow": raw(FLOW_STATE, f"(SELECT *, e AS f FROM {positions('flow', FLOWS, 1)})"),
        "drop_event": raw(DROP_EVENT, positions("drop_event", 1, 1)),
        "health": raw(HEALTH, f"(SELECT * FROM {positions('health', 1, 1)} WHERE m % 4 = 0)"),
        "control": raw(CONTROL, f"(SELECT * FROM {positions('control', 1, 1)} WHERE m % 4 = 0 AND NOT {REGISTRY})"),
        "rewrite": raw(
            REWRITE,
            f"(SELECT *, h % {FLOWS} AS f, {t0_us} + m * {BATCH_US} AS us FROM {positions('rewrite', 1, 1)} WHERE m % 4"
            f" = 0 AND NOT {REGISTRY} AND {CLAMPS} > 0)",
        ),
        "neighbour_ap": raw(NEIGHBOUR_AP, positions("neighbour_ap", 2, 1)),
        "label": select(LABEL, instants()),
        "item": select(ITEM, instants()),
        "decision": select(
            {
                "ap_id": AP_ID,
                "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
                "boot_id": BOOT_ID,
                "batch_seq": f"intDiv(us - {t0_us}, 1000000)",
            }
            | DECISION,
            instants(),
        ),
        "prediction": select(PREDICTION, instants()),
        "tree_decision": select(
            TREE_DECISION, f"(SELECT * FROM {instants()} WHERE us % 1000000 = 0 AND NOT {REGISTRY})"
        ),
        "release": select(RELEASE, shipped()),
        "bundle_status": select(
            {
                "ap_id": AP_ID,
                "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
                "boot_id": BOOT_ID,
                "batch_seq": f"intDiv(us - {t0_us}, 1000000)",
            }
            | BUNDLE_STATUS,
            shipped(),
        ),
        "rollout": select(ROLLOUT, shipped()),
        "sender_tcp": select(SENDER_TCP, f"(SELECT * FROM {instants()} WHERE a = 1)"),
        "batch": select(batch(t0_us), f"(SELECT * FROM {positions('batch', 3, 1)} WHERE e < 2 OR m % 4 = 0)"),
    }
