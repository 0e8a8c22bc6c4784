"""Rollups and the views over them: counters that restart and wrap, means over time, order of arrival."""

import random

import pytest

DAY = "2026-11-20"
RANGE = f"from = '{DAY} 00:00:00', to = '{DAY} 02:00:00'"


def at(us: int) -> str:
    """A time of the day, from its microseconds."""
    return (
        f"{DAY} {us // 3_600_000_000:02d}:{us // 60_000_000 % 60:02d}:{us // 1_000_000 % 60:02d}.{us % 1_000_000:06d}"
    )


def station(us: int, **values) -> dict:
    return {"ap_id": "a", "ts": at(us), "boot_id": 1, "batch_seq": us // 252_000, "mac": 5, "device": "wlan0", **values}


def increases(database, column: str, view: str = "v_station_1s") -> list[int]:
    return [int(r[0]) for r in database.rows(f"SELECT {column} FROM {view}({RANGE}) ORDER BY ap_id, mac, t")]


def test_a_counter_s_increase_goes_from_second_to_second(database):
    database.insert(
        "station",
        [station(s * 1_000_000 + f, tx_bytes=1000 * s + f // 1000) for s in range(4) for f in (0, 400_000, 900_000)])
    assert increases(database, "tx_bytes") == [0, 1000, 1000, 1000]
    assert increases(database, "span_s") == [0, 1, 1, 1]


def test_a_restart_counts_from_zero(database):
    """5000 … 5600, then the station associates anew: 100, 300. Gained: 600 + 300, the restart's second holds what came
    before it.
    """
    rows = [(0, 5000), (1, 5300), (2, 5600), (2.5, 100), (3, 300)]
    database.insert("station", [station(int(s * 1e6), tx_bytes=v, tx_pkts=v) for s, v in rows])
    assert increases(database, "tx_bytes") == [0, 300, 300, 300]
    assert increases(database, "tx_pkts") == [0, 300, 300, 300]


def test_a_reboot_restarts_every_counter_and_is_one_series(database):
    rows = [
        station(0, tx_bytes=9000),
        station(1_000_000, tx_bytes=9500), {**station(2_000_000, tx_bytes=70), "boot_id": 2, "batch_seq": 0}
    ]
    database.insert("station", rows)
    assert increases(database, "tx_bytes") == [0, 500, 70]


def test_a_32_bit_counter_wraps(database):
    values = [2**32 - 1000, 2**32 - 10, 500, 900]
    database.insert("station", [station(s * 1_000_000, tx_pkts=v, tx_retries=v) for s, v in enumerate(values)])
    assert increases(database, "tx_pkts") == [0, 990, 510, 400]
    assert increases(database, "tx_retries") == [0, 990, 510, 400]


def test_a_32_bit_counter_that_falls_a_little_restarted(database):
    database.insert("station", [station(0, tx_pkts=2_000_000), station(1_000_000, tx_pkts=30)])
    assert increases(database, "tx_pkts") == [0, 30]


def test_a_64_bit_counter_never_wraps(database):
    database.insert("station", [station(0, tx_bytes=2**40), station(1_000_000, tx_bytes=30)])
    assert increases(database, "tx_bytes") == [0, 30]


def test_the_first_minute_counts_from_its_first_second(database):
    database.insert("station",
                    [station(s * 1_000_000, tx_bytes=10_000 + 10 * s, tx_pkts=2**32 - 100 + s) for s in range(0, 90)])
    assert increases(database, "tx_bytes", "v_station_1m") == [590, 300]
    assert increases(database, "tx_pkts", "v_station_1m") == [59, 30]


def test_a_wrap_in_the_first_minute_is_not_four_billion(database):
    database.insert("station", [station(s * 1_000_000, tx_pkts=(2**32 - 20 + s) % 2**32) for s in range(0, 120)])
    first, second = increases(database, "tx_pkts", "v_station_1m")
    assert first == 0 and second == 100, "what came before the wrap is not known; what came after is"


def test_an_absent_counter_stays_absent(database):
    """NULL is not 0, and a counter that appears has not grown by its value."""
    row = {"ap_id": "a", "batch_seq": 0, "device": "wlan0", "frequency_mhz": 5180}
    database.insert("channel", [{
        **row, "ts": at(s * 1_000_000), "active_ms": 1000 * s, "busy_ms": 300 * s, "rx_ms": None if s < 2 else 50 * s,
        "tx_ms": None
    } for s in range(4)])
    got = database.rows(f"SELECT rx_ms, tx_ms, busy_ratio FROM v_channel_1s({RANGE}) ORDER BY t")
    assert got == [["\\N", "\\N", "\\N"], ["\\N", "\\N", "0.3"], ["0", "\\N", "0.3"], ["50", "\\N", "0.3"]]


def test_what_a_driver_does_not_count_of_a_station_is_null(database):
    """Rows, rollups and views; another station, whose driver counts, is as ever."""
    lacks = {"tx_retries": 0, "tx_failed": None, "tx_airtime_us": None, "signal_dbm": None}
    for s in range(3):
        database.insert("station", [
            station(s * 1_000_000, **lacks | ({"tx_failed": 700} if s == 2 else {})),
            station(s * 1_000_000, tx_retries=0, tx_failed=10 * s, tx_airtime_us=100 * s, signal_dbm=-50) | {"mac": 6},
        ])
    for view in ("v_station_1s", "v_station_1m"):
        got = database.rows(f"SELECT tx_failed, tx_airtime_us, signal_dbm_avg, tx_retries FROM {view}({RANGE}) "
                            "ORDER BY mac, t")
        if view == "v_station_1s":
            gone = ["\\N", "\\N", "\\N", "0"]
            appears = ["0", "\\N", "\\N", "0"]
            assert got[:3] == [gone, gone, appears], "a counter that appears has not grown by its value"
            assert got[3:] == [["0", "0", "-50", "0"], ["10", "100", "-50", "0"], ["10", "100", "-50", "0"]]
        else:
            assert got == [["0", "\\N", "\\N", "0"], ["20", "200", "-50", "0"]]
    lost, = database.rows(f"SELECT mac, tx_failed FROM station_1s WHERE mac = 5 AND t = '{DAY} 00:00:00'")
    assert lost == ["5", "\\N"]


def test_what_a_driver_does_not_count_of_an_access_category_is_null(database):
    database.insert("station_ac", [{
        **station(s * 1_000_000), "ac": 2, "msdu_pkts": 7 * s, "msdu_failed": None, "drops": None if s < 2 else 40 * s,
        "backlog_bytes": None, "backlog_pkts": 3
    } for s in range(4)])
    columns = "msdu_pkts, msdu_failed, drops, backlog_bytes_avg, backlog_bytes_max, backlog_pkts_avg"
    got = database.rows(f"SELECT {columns} FROM v_station_ac_1s({RANGE}) ORDER BY t")
    assert got == [["0", "\\N", "\\N", "\\N", "\\N", "3"], ["7", "\\N", "\\N", "\\N", "\\N", "3"],
                   ["7", "\\N", "0", "\\N", "\\N", "3"], ["7", "\\N", "40", "\\N", "\\N", "3"]]


def test_a_mean_is_over_time_not_over_rows(database):
    """0 bytes for 100 ms, 1000 for 50 ms, 0 for the rest of the batch: 1000 * 50 / 252, though one row in three says
    1000.
    """
    rows = [(0, 0), (100_000, 1000), (150_000, 0)]
    database.insert("station_ac", [{**station(us), "ac": 2, "backlog_bytes": v} for us, v in rows])
    assert database.rows(f"SELECT backlog_bytes_avg, backlog_bytes_max, held_us FROM v_station_ac_1s({RANGE})") == [[
        str(round(1000 * 50 / 252, 1)), "1000", "252000"
    ]]


def test_a_mean_does_not_depend_on_how_batches_are_put_into_blocks(database):
    rng = random.Random(7)
    rows = []
    for batch in range(40):
        ticks = [0] + sorted(rng.sample(range(1, 63), rng.randrange(0, 20)))
        rows += [{
            **station(batch * 252_000 + t * 4000), "batch_seq": batch, "ac": 2, "backlog_bytes": rng.randrange(100_000)
        } for t in ticks]
    database.insert("station_ac", rows)
    together = database.rows(
        f"SELECT t, backlog_bytes_avg, backlog_bytes_max, held_us FROM v_station_ac_1s({RANGE}) ORDER BY t")
    database.truncate("station_ac", "station_ac_1s", "station_ac_1m")
    batches = list(range(40))
    rng.shuffle(batches)
    for b in batches:
        block = [r for r in rows if r["batch_seq"] == b]
        rng.shuffle(block)
        database.insert("station_ac", block)
    assert database.rows(
        f"SELECT t, backlog_bytes_avg, backlog_bytes_max, held_us FROM v_station_ac_1s({RANGE}) ORDER BY t") == together


@pytest.mark.parametrize("seed", range(3))
def test_increases_add_up_to_what_was_counted(database, seed):
    """Stations that come, go, restart and wrap; the views against plain arithmetic over every row, first second aside.
    """
    rng = random.Random(seed)
    rows, expected = [], {}
    for mac in range(4):
        value = rng.choice([0, 10**6, 2**32 - 40_000])
        top = None  # the largest value of the second before
        for second in range(150):
            seen = []
            for tick in sorted(rng.sample(range(0, 250), 5)):
                value = (value + rng.randrange(0, 300)) % 2**32
                seen.append(value)
                us = second * 1_000_000 + tick * 4000
                rows.append({**station(us), "mac": mac, "tx_pkts": value, "msdu": 0})
            new = max(seen)
            if top is not None:
                old = top
                gain = new - old if new >= old else new + 2**32 - old if old - new > 2**31 else new
                expected[mac] = expected.get(mac, 0) + gain
            top = new
            if rng.random() < 0.03:
                value = 0  # associates anew
    for r in rows:
        del r["msdu"]
    rng.shuffle(rows)
    for start in range(0, len(rows), 700):
        database.insert("station", rows[start:start + 700])
    got = {
        int(m): int(v) for m, v in database.rows(f"SELECT mac, sum(tx_pkts) FROM v_station_1s({RANGE}) GROUP BY mac")
    }
    assert got == expected


def test_minutes_add_up_to_seconds(filled):
    """The generator's counters neither restart nor wrap: but for the first second, both resolutions see the same."""
    r = "from = '2026-11-20 12:00:00', to = '2026-11-20 12:02:00'"
    for source, columns in (("station", "sum(tx_bytes), sum(tx_pkts), sum(tx_retries), sum(tx_airtime_us), sum(rows)"),
                            ("station_ac",
                             "sum(msdu_pkts), sum(drops), sum(rows)"), ("queue", "sum(bytes), sum(drops), sum(rows)"),
                            ("channel", "sum(active_ms), sum(busy_ms), sum(rows)")):
        seconds = filled.rows(f"SELECT ap_id, {columns} FROM v_{source}_1s({r}) GROUP BY ap_id ORDER BY ap_id")
        assert seconds == filled.rows(
            f"SELECT ap_id, {columns} FROM v_{source}_1m({r}) GROUP BY ap_id ORDER BY ap_id"), source
        assert all(int(v) >= 0 for row in seconds for v in row[1:]) and int(seconds[0][1]) > 0


def test_event_rollups_add_up_to_the_rows(filled):
    for g in ("1s", "1m"):
        assert filled.rows(
            f"SELECT direction, sum(pkts), sum(payload_pkts), sum(payload_bytes), sum(sack_pkts) FROM packet_{g} GROUP"
            " BY direction ORDER BY direction"
        ) == filled.rows(
            "SELECT direction, count(), countIf(payload_bytes > 0), sum(payload_bytes), countIf(sack_blocks > 0) FROM"
            " packet GROUP BY direction ORDER BY direction"
        )
        assert filled.rows(
            f"SELECT cause, sum(events), sum(pkts) FROM drop_event_{g} GROUP BY cause ORDER BY cause") == filled.rows(
                "SELECT cause, count(), sum(count) FROM drop_event GROUP BY cause ORDER BY cause")
    assert filled.rows("SELECT sum(batches), sum(bytes), sum(rows) FROM batch_1m") == filled.rows(
        "SELECT count(), sum(bytes), sum(rows) FROM batch")
    assert filled.rows("SELECT sum(windows), sum(poor), sum(bad) FROM label_1m") == filled.rows(
        "SELECT count(), countIf(class = 'Poor'), countIf(class = 'Bad') FROM label")


def test_labels_are_added_over_windows_that_do_not_overlap(database):
    """A window starts each 100 ms and lasts a second: ten windows see each packet, one of them is added."""
    database.insert("label", [{
        "ap_id": "a", "site": "s", "ts": at(i * 100_000), "window_us": 1_000_000, "offered_pkts": 100, "lost_pkts": 7,
        "complete": 1, "class": "Poor"
    } for i in range(600)])
    assert database.rows(
        "SELECT sum(windows), sum(poor), sum(tiles), sum(offered_pkts), sum(lost_pkts) FROM label_1m") == [[
            "600", "600", "60", "6000", "420"
        ]]


def test_flow_counters_start_with_the_flow(database):
    flow = {"ap_id": "a", "flow_id": 9, "direction": 0, "client_addr": "::1", "server_addr": "::2"}
    database.insert("flow", [{
        **flow, "ts": at(s * 1_000_000), "sent_pkts": 10 * s + 10, "retrans_pkts": s,
        "rtt_down_us": 0 if s == 0 else 1000 * s
    } for s in range(100)])
    got = database.rows(f"SELECT sent_pkts, retrans_pkts, rtt_min_ms, rtt_max_ms, minutes FROM v_flows({RANGE})")
    assert got == [["1000", "99", "1", "99", "2"]]
    later = f"from = '{DAY} 00:01:00', to = '{DAY} 02:00:00'"
    assert database.rows(f"SELECT sent_pkts, minutes FROM v_flows({later})") == [[
        "400", "1"
    ]], "a flow that began before the range counts from its minute before"


def test_a_flow_brings_what_is_in_range_alone(database):
    """It slept longer than the view looks back; its counters go on."""
    flow = {"ap_id": "a", "direction": 0, "client_addr": "::1", "server_addr": "::2"}
    database.insert("flow", [
        {**flow, "flow_id": 9, "ts": at(0), "sent_pkts": 100_000, "retrans_pkts": 900},
        *({**flow, "flow_id": 9, "ts": at((1800 + s) * 1_000_000), "sent_pkts": 100_010 + 10 * s,
           "retrans_pkts": 900 + s} for s in range(100)),
        {**flow, "flow_id": 10, "ts": at(1800 * 1_000_000), "sent_pkts": 40, "retrans_pkts": 2}])
    later = f"from = '{DAY} 00:30:00', to = '{DAY} 02:00:00'"
    got = database.rows(f"SELECT flow, sent_pkts, retrans_pkts, minutes FROM v_flows({later}) ORDER BY sent_pkts")
    assert got == [["0a", "40", "2", "1"], ["09", "990", "99", "2"]]


def test_rows_of_zeros_stop_no_insert(database):
    """Whatever a row holds, an INSERT must not fail in a rollup: it would be repeated for ever."""
    for table in database.tables("MergeTree"):
        database.insert(table, [{"ts": f"{DAY} 00:00:00"}])
        assert database.rows(f"SELECT count() FROM {table}") == [["1"]]
    assert database.rows("SELECT windows, tiles FROM label_1m") == [["1", "0"]]
    database.query("SELECT * FROM v_worst_aps(within_s = 4000000000) FORMAT Null")


def test_rows_of_largest_values_stop_no_insert(database):
    largest = {
        "UInt8": 2**8 - 1, "UInt16": 2**16 - 1, "UInt32": 2**32 - 1, "UInt64": 2**64 - 1, "Int8": -(2**7),
        "Int16": -(2**15), "Int32": -(2**31), "Int64": -(2**63)
    }
    for table in database.tables("MergeTree"):
        columns = database.rows(
            f"SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '{table}' AND"
            " default_kind != 'MATERIALIZED'"
        )
        row = {
            n: largest[t] for n, t in ((n, t.removeprefix("Nullable(").removesuffix(")")) for n, t in columns)
            if t in largest
        }
        for second in (0, 1):
            database.insert(table, [{**row, "ts": f"{DAY} 00:00:0{second}"}])
        assert database.rows(f"SELECT count() FROM {table}") == [["2"]]
    for view in ("v_station_1m", "v_queue_1m", "v_channel_1m", "v_station_ac_1m", "v_ap_1m", "v_flows", "v_loss_where",
                 "v_queue_delay"):
        database.query(f"SELECT * FROM {view}({RANGE}) FORMAT Null")
