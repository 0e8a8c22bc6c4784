"""Columns of models, what they predict and what control makes of it; names as in generate.py."""

from __future__ import annotations

from ap_columns import AP_ID, BOOT_ID, CONGESTED, DROPS, FLOW, PLACE, WAVE, by_class

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
    "policy": "'rwnd-fair'",
} | DROPS
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
# Of a host's agent, and of the lab's sniffer, which has no ap_id.
SENDER_TCP = {
    "ap_id": "if(h % 2, 'server', '')",
    "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
    "host": "if(h % 2, 'server', 'lab')",
    "interval_ms": "toUInt32(if(h % 2, 100, 0))",
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
# A connection a second of the host that sends, to one of five networks; the last of each ten was over before a look.
SESSION_SEEN = "us % 10000000 < 9000000"
SENDER_SESSION = {
    "ap_id": "'server'",
    "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
    "boot_id": "7",
    "flow_id": "cityHash64(a, us, 'session')",
    "client_addr": "toIPv6(concat('::ffff:10.', toString(h % 5), '.0.', toString(1 + h % 200)))",
    "server_addr": "toIPv6('::ffff:192.0.2.1')",
    "client_port": "toUInt16(40000 + h % 20000)",
    "server_port": "toUInt16(443)",
    "congestion_control": f"if({SESSION_SEEN}, if(h % 2, 'cubic', 'bbr'), '')",
    "client_prefix": "toInt64(655360 + h % 5 * 256)",
    "end_known": "toUInt8(if(h % 50, 1, 2))",
    "seen_us": f"if({SESSION_SEEN}, toNullable(toUInt64(200000 + h % 4000000)), NULL)",
    "rtt_looks": f"toUInt32(if({SESSION_SEEN}, 2 + h % 40, 0))",
    "rtt_min_us": f"if({SESSION_SEEN}, toNullable(toUInt32(20000 + h % 3000)), NULL)",
    "rtt_mean_us": f"if({SESSION_SEEN}, toNullable(toUInt32(24000 + h % 3000)), NULL)",
    "rtt_p95_us": f"if({SESSION_SEEN}, toNullable(toUInt32(31000 + h % 9000)), NULL)",
    "rtt_us": "toUInt32(23000 + h % 3000)",
    "rttvar_us": "toUInt32(2000 + h % 900)",
    "min_rtt_us": "toUInt32(19000 + h % 900)",
    "bytes_acked": "toUInt64(100000 + h % 3000000)",
    "segs_out": "toUInt32(80 + h % 2200)",
    "data_segs_out": "toUInt32(70 + h % 2200)",
    "retrans_pkts": "toUInt32(h % 9)",
    "delivered_pkts": "toNullable(toUInt32(70 + h % 2200))",
    "delivered_ce_pkts": "toNullable(toUInt32(h % 4))",
    "reorderings": "toNullable(toUInt32(h % 2))",
    "reordering_pkts": "toUInt32(3)",
    "delivery_rate_bps": "toUInt64(8000000 + h % 9000000)",
    "busy_us": "toUInt64(100000 + h % 3000000)",
    "rwnd_limited_us": "toUInt64(h % 9000)",
    "cwnd_bytes": "toUInt32(14480 + h % 60 * 1448)",
    "mss_bytes": "toUInt16(1448)",
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
ACTION = {
    "policy": "'rwnd-fair'",
    "kind": "toUInt8(1)",
    "subject": f"bitAnd({FLOW['flow_id']}, 9223372036854775807)",
    "backend": CONTROL["backend"],
    "mac": FLOW["station_mac"],
    "bundle": BUNDLE_STATUS["bundle"],
    "class": "toUInt8(if(m % 8 = 4, 255, 2))",
    "reason": "toUInt8(if(m % 8 = 4, 3, 1))",
    "value": "toUInt64(cwnd_bytes / (1 + h % 5 / 10))",
    "capacity_kbps": CONTROL["capacity_kbps"],
    "share_kbps": "toUInt32(capacity_kbps / 5)",
    "rate_kbps": "toUInt32(share_kbps * (1 + h % 5 / 10))",
    "cwnd_bytes": "toUInt32(40000 + h % 60000)",
    "queue_us": CONTROL["queue_us"],
}
