"""Views of control: figures worked out by hand."""

import re

import yaml
from conftest import FOLDER

RANGE = "from = '2026-11-20 00:00:00', to = '2026-11-20 02:00:00'"
COUNTERS = ("steps", "sets", "set_errors", "releases", "guard_reverts", "acks_seen", "acks_clamped", "acks_skipped")


def at(second: float) -> str:
    return f"2026-11-20 00:{int(second) // 60:02d}:{int(second) % 60:02d}.{round(second % 1 * 1e6):06d}"


def control(second: float, counted: int = 0, **values) -> dict:
    """A row of control; its counters are 1 to 8 times `counted`."""
    return {
        "ap_id": "a", "ts": at(second), "boot_id": 1, "backend": 3, "mode": 2, "killed": 0, "clamps": 0,
        "capacity_kbps": 0, "queue_us": 0, "step_max_ns": 0,
        **{name: k * counted for k, name in enumerate(COUNTERS, 1)}, **values
    }


def label(second: int, **values) -> dict:
    return {
        "ap_id": "a", "site": "s", "ts": at(second), "window_us": 1_000_000, "offered_pkts": 100,
        "offered_bytes": 125_000, "lost_bytes": 0, "congestion_lost_pkts": 0, "complete": 1, **values
    }


def release(second: int, bundle: int, policy: str, version: int, **values) -> dict:
    return {
        "ts": at(second), "source": "registry", "slot": "champion", "scope": "fleet", "action": "release",
        "model": "congestion", "version": 7, "bundle": bundle, "policy": policy, "policy_version": version, **values
    }


def test_a_minute_is_the_sum_of_its_seconds(database):
    database.insert("label", [label(0)])
    database.insert("control", [
        control(0, 10, clamps=4, capacity_kbps=1000, queue_us=100, step_max_ns=5),
        control(1, 11, mode=1, clamps=2, queue_us=300, step_max_ns=9),
        control(59, 20, mode=0, killed=1, capacity_kbps=2000, queue_us=200)
    ])
    database.insert("control", [control(60.5, 26), control(61, 30, clamps=1)])
    rows = database.rows(f"SELECT * FROM v_control_1m({RANGE})")
    assert rows == [
        [
            "s", "a", "2026-11-20 00:00:00", "bpf", "3", "1", "1", "1", "1", "2", "4", "1500", "200", "300",
            *(str(k * 10) for k in range(1, 9)), "1.1667", "9"
        ],
        # what was counted between the last row of a minute and the first of the next is the next one's
        [
            "s", "a", "2026-11-20 00:01:00", "bpf", "2", "0", "2", "0", "1", "0.5", "1", "\\N", "0", "0",
            *(str(k * 10) for k in range(1, 9)), "1.1667", "0"
        ]
    ]


def test_counters_that_restart_with_the_exporter_are_not_subtracted(database):
    database.insert("control", [control(10, 1000), control(50, 1007)])
    database.insert("control", [control(55, 2, boot_id=2), control(70, 5, boot_id=2)])
    database.insert("control", [control(700, 9, boot_id=2)])  # after more than ten minutes nobody knows when
    assert database.rows(f"SELECT t, steps, guard_reverts FROM v_control_1m({RANGE})") == [
        ["2026-11-20 00:00:00", "7", "35"], ["2026-11-20 00:01:00", "3", "15"], ["2026-11-20 00:11:00", "4", "20"]]
    part = "from = '2026-11-20 00:01:00', to = '2026-11-20 00:02:00'"
    assert database.rows(f"SELECT t, steps FROM v_control_1m({part})") == [[
        "2026-11-20 00:01:00", "3"
    ]], "the minute before the range is read, and not told"


def test_a_gap_of_more_than_ten_minutes_begins_anew(database):
    database.insert("control", [control(10, 100), control(15 * 60, 150), control(15 * 60 + 1, 151)])
    assert database.rows(f"SELECT t, steps FROM v_control_1m({RANGE})") == [["2026-11-20 00:00:00", "0"],
                                                                            ["2026-11-20 00:15:00", "1"]]


def test_control_now_is_of_the_last_report(database):
    now = int(database.query("SELECT toUnixTimestamp(now())"))
    database.insert("batch", [{"ap_id": a, "site": s, "ts": now - 5}
                              for a, s in (("a", "south"), ("b", "north"), ("c", "north"))])
    database.insert("bundle_status",
                    [{"ap_id": "a", "ts": now - 60, "bundle": 40, "source": 1, "version": 4, "serial": 4, "state": 1},
                     {"ap_id": "b", "ts": now - 90, "bundle": 30, "source": 1, "version": 3, "serial": 3, "state": 1}])
    database.insert("release", [
        release(0, 40, "careful", 3, ts=now - 70),
        release(0, 40, "careful", 3, ts=now - 50, slot="canary"),
        release(0, 30, "default", 1, ts=now - 99)
    ])
    database.insert("control", [
        control(0, ts=now - 500, guard_reverts=3, boot_id=1),
        control(0, ts=now - 400, guard_reverts=5, boot_id=1),
        control(0, ts=now - 300, guard_reverts=0, boot_id=2),
        control(0, ts=now - 9, guard_reverts=1, boot_id=2, clamps=6, capacity_kbps=24000, queue_us=8000, set_errors=2),
        control(0, ts=now - 700, ap_id="gone"),
        control(0, ts=now - 20, ap_id="b", mode=0, killed=1, backend=2),
        control(0, ts=now - 10, ap_id="c", mode=1, backend=1, clamps=2)
    ])
    rows = database.rows(
        f"SELECT * EXCEPT (last_report, age_s), dateDiff('second', toDateTime({now}), last_report), age_s BETWEEN 9 AND"
        " 200 FROM v_control"
    )
    assert rows == [
        ["north", "b", "off", "1", "ovs", "default", "1", "0", "\\N", "0", "0", "0", "0", "-20", "1"],
        ["north", "c", "shadow", "0", "shadow", "", "0", "2", "\\N", "0", "0", "0", "0", "-10", "1"],
        ["south", "a", "enforce", "0", "bpf", "careful", "3", "6", "24000", "8000", "3", "1", "2", "-9", "1"]]


FLOW = {
    "ap_id": "a", "direction": 0, "client_addr": "::ffff:10.0.0.7", "server_addr": "2001:db8::1", "client_port": 40000,
    "server_port": 443, "station_mac": 0x020000000107
}


def test_rewrites_are_named_and_joined(database):
    high = (1 << 63) + 11
    database.insert("label", [label(0)])
    database.insert("flow", [{**FLOW, "ts": at(s), "flow_id": high} for s in (1, 2, 70)]
                    + [{**FLOW, "ts": at(1), "flow_id": 12, "client_addr": "::ffff:10.0.0.8", "station_mac": 0}])
    database.insert("release", [release(0, 40, "careful", 3)])
    base = {
        "ap_id": "a", "boot_id": 1, "bundle": 40, "capacity_kbps": 20000, "share_kbps": 5000, "rate_kbps": 8000,
        "cwnd_bytes": 90000, "queue_us": 30000
    }
    database.insert("action", [{
        **base, "ts": at(1.5), "subject": 11, "backend": 3, "mac": 0x020000000107, "class": 2, "reason": 1,
        "value": 56250
    }, {**base, "ts": at(3), "subject": 12, "backend": 1, "mac": 0, "class": 255, "reason": 3, "value": 40000}, {
        **base, "ts": at(80), "subject": 11, "backend": 3, "mac": 0, "class": 0, "reason": 5, "value": 0,
        "bundle": 41
    }, {
        **base, "ts": at(81), "subject": 99, "backend": 2, "mac": 0, "class": 0, "reason": 6, "value": 0,
        "bundle": 41
    }])
    rows = database.rows(
        "SELECT ts, site, flow, station, client, server, reason, backend, class, window_bytes, share_kbps, bundle,"
        f" model, version, policy, policy_version FROM v_rewrites({RANGE})"
    )
    known = ["800000000000000b", "02:00:00:00:01:07", "10.0.0.7 40000", "2001:db8::1 443"]
    assert rows == [
        [at(1.5), "s", *known, "class", "bpf", "Poor", "56250", "5000", "40", "congestion", "7", "careful", "3"],
        [
            at(3), "s", "0c", "\\N", "10.0.0.8 40000", "2001:db8::1 443", "queue", "shadow", "none", "40000", "5000",
            "40", "congestion", "7", "careful", "3"
        ], [at(80), "s", *known, "released", "bpf", "Good", "0", "5000", "41", "", "0", "", "0"],
        [at(81), "s", "63", "\\N", "\\N", "\\N", "guard", "ovs", "Good", "0", "5000", "41", "", "0", "", "0"]
    ]


def test_actions_are_named_by_policy_site_and_subject(database):
    mac = 0x020000000107
    database.insert("label", [label(0)])
    database.insert("flow", [{**FLOW, "ts": at(1), "flow_id": (1 << 63) + 11}])
    database.insert("release", [release(0, 40, "careful", 3)])
    base = {"ap_id": "a", "boot_id": 1, "bundle": 40, "backend": 3, "mac": mac, "class": 2, "reason": 1}
    database.insert("action", [{**base, "ts": at(1), "subject": 11, "value": 56250}])  # as old agents' rows are stored
    database.insert("action", [
        {**base, "ts": at(2), "policy": "example", "kind": 1, "subject": 11, "value": 1 << 40},
        {**base, "ts": at(3), "policy": "queue", "kind": 2, "subject": mac, "value": 9},
        {**base, "ts": at(4), "policy": "queue", "kind": 9, "subject": 0, "value": 0, "mac": 0, "bundle": 41},
    ])
    rows = database.rows(
        "SELECT ts, site, policy, action, subject, station, client, reason, backend, class, value, model, in_force,"
        f" in_force_version FROM v_actions({RANGE})")
    flow, station, said = "800000000000000b", "02:00:00:00:01:07", ["class", "bpf", "Poor"]
    careful = ["congestion", "careful", "3"]
    assert rows == [
        [at(1), "s", "rwnd-fair", "rwnd", flow, station, "10.0.0.7 40000", *said, "56250", *careful],
        [at(2), "s", "example", "rwnd", flow, station, "10.0.0.7 40000", *said, "1099511627776", *careful],
        [at(3), "s", "queue", "mark", station, station, "\\N", *said, "9", *careful],
        [at(4), "s", "queue", "unknown", "", "\\N", "\\N", *said, "0", "", "", "0"],
    ]
    # Only what sets windows is a rewrite; a window has 32 bits there.
    assert database.rows("SELECT ts, flow_id, window_bytes FROM rewrite ORDER BY ts") == [
        [at(1), "11", "56250"], [at(2), "11", "4294967295"]]


def test_effect_tells_seconds_with_clamps_from_those_without(database):
    database.insert("release", [release(0, 40, "careful", 3)])
    database.insert("decision", [{"ap_id": "a", "ts": at(s + 0.5), "bundle": 40} for s in range(0, 90)])
    database.insert("label", [label(s, congestion_lost_pkts=10, lost_bytes=12_500)
                              for s in (0, 1)] + [label(s, offered_bytes=250_000) for s in (2, 3, 4)] + [label(5)]
                    + [label(62, offered_bytes=375_000)] + [label(6, complete=0), label(7.1)]
                    + [label(2, ap_id="b", site="t", offered_pkts=0, offered_bytes=0)])
    database.insert("control", [
        control(s + 0.9, clamps=clamps, mode=mode)
        for s, clamps, mode in ((0, 0, 2), (1, 0, 2), (2, 4, 2), (3, 1, 2), (4, 1, 2), (5, 9, 1), (62, 2, 2))
    ])
    database.insert("flow",
                    [{**FLOW, "ts": at(s + k / 10), "flow_id": 1 + k, "rtt_down_us": rtt, "direction": direction}
                     for s, k, rtt, direction in ((0, 1, 50_000, 0), (0, 2, 60_000, 0), (1, 1, 70_000, 0),
                                                  (2, 1, 10_000, 0), (2, 2, 1, 1), (3, 1, 20_000, 0), (4, 1, 30_000, 0),
                                                  (4, 2, 0, 0))])
    columns = (
        "policy, policy_version, mode, clamped, seconds, throughput_kbps, offered_pkts, congestion_loss_ratio,"
        " rtt_rows, rtt_p50_ms, rtt_p95_ms, clamps_avg"
    )
    minutes = database.rows(f"SELECT site, ap_id, t, {columns} FROM v_control_effect({RANGE}) WHERE per = 'ap, minute'")
    first, second = "2026-11-20 00:00:00", "2026-11-20 00:01:00"
    careful = ["careful", "3"]
    assert minutes == [
        ["s", "a", first, *careful, "enforce", "0", "2", "900", "200", "0.1", "3", "60", "70", "0"],
        ["s", "a", first, *careful, "enforce", "1", "3", "2000", "300", "0", "3", "20", "30", "2"],
        # what would have been clamped
        ["s", "a", first, *careful, "shadow", "0", "1", "1000", "100", "0", "0", "\\N", "\\N", "9"],
        ["s", "a", second, *careful, "enforce", "1", "1", "3000", "100", "0", "0", "\\N", "\\N", "2"],
        ["t", "b", first, "", "0", "off", "0", "1", "0", "0", "\\N", "0", "\\N", "\\N", "0"]]
    policies = database.rows(
        f"SELECT site, {columns} FROM v_control_effect({RANGE}) WHERE per = 'site, policy' AND clamped")
    assert policies == [["s", *careful, "enforce", "1", "4", "2250", "400", "0", "3", "20", "30", "2"]]


def test_names_in_the_sql_are_those_of_the_contract():
    policy = yaml.safe_load((FOLDER.parent / "policies" / "rwnd-fair" / "numbers.yaml").read_text())
    sql = "".join((FOLDER / "migrations" / f).read_text()
                  for f in ("0015_control_views.sql", "0040_action_cc.sql"))
    numbers = list(range(len(policy["actions"])))
    assert f"transform(r.kind, {numbers}, {policy['actions']}, 'unknown') AS action" in sql
    numbers = list(range(len(policy["congestion_controls"])))
    assert f"transform(r.value, {numbers}, {policy['congestion_controls']}, 'unknown'), NULL) AS congestion_c" in sql
    for column, names in (("reason", policy["rewrite_reasons"]), ("backend", policy["rewrite_backends"])):
        found = re.findall(rf"transform\((?:\w+\.{column}|now\.4), \[([^\]]*)\], \[([^\]]*)\], 'unknown'\) AS {column}",
                           sql)
        assert len(found) == (2 if column == "reason" else 4)
        for numbers, said in found:
            assert [int(n) for n in numbers.split(",")] == list(range(len(numbers.split(","))))
            assert re.findall(r"'(\w+)'", said) == names[:len(numbers.split(","))]
