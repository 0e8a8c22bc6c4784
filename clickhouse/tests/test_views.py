"""Every view runs; the questions of README.md give the answers shown there; hand-made data give answers known
beforehand.
"""

import json
import re

import pytest
import questions
import samples
from conftest import FOLDER

ALL = sorted(
    set(
        re.findall(r"CREATE OR REPLACE VIEW (\w+)",
                   "".join(f.read_text() for f in (FOLDER / "migrations").glob("*.sql")))))
CONTRACT = FOLDER.parent / "schema/generated/schema.json"
WATCHED = FOLDER.parent / "ap-exporter/src/sample/refresh.c"
PARAMETERS = {
    "from": "'2026-11-20 12:00:00'", "to": "'2026-11-20 12:02:00'", "ap_id": "'ap-03'", "mac": "'02:00:00:00:03:02'",
    "within_s": "4000000000", "name": "'jvm'"
}
RANGE = "from = '2026-11-20 00:00:00', to = '2026-11-20 02:00:00'"


def call(database, view: str) -> str:
    """The view with values for its parameters, and for those of the views that it reads."""
    ddl = database.query(f"SHOW CREATE TABLE {view} FORMAT TSVRaw")
    names = sorted(set(re.findall(r"\{(\w+):", ddl)))
    return f"{view}({', '.join(f'{n} = {PARAMETERS[n]}' for n in names)})" if names else view


@pytest.fixture(scope="module")
def reported(filled):
    """Three readings of each name that a view asks for, of each component, in the data's range and now."""
    text = "".join(f.read_text() for f in (FOLDER / "migrations").glob("*.sql"))
    names = sorted(set(re.findall(r"name (?:= |IN \()'(\w+)'", text)))
    labels = "map('topic', 'ap.samples.v1', 'partition', '0', 'operator_name', 'decode', 'result', 'ok')"
    values = ", ".join(f"'{name}', number + 1" for name in (
        "LogEndOffset", "LogStartOffset", "result_code", "pendingRecords", "enddate", "expiry", "x"))
    for start in ("toDateTime64('2026-11-20 12:00:10', 3, 'UTC')", "now64(3, 'UTC') - 30"):
        filled.query(f"""INSERT INTO platform_metric (ts, name, component, instance, host, labels, values)
SELECT {start} + number * 10, arrayJoin({names}),
arrayJoin(['kafka', 'push', 'trainer', 'model-registry', 'mlflow', 'host']),
'i', 'h', {labels}, CAST(map({values}), 'Map(String, Float64)') FROM numbers(3)""")
    yield
    filled.query("TRUNCATE TABLE platform_metric")


@pytest.mark.parametrize("view", ALL)
def test_every_view_runs_and_has_rows(filled, reported, view):
    rows = int(filled.query(f"SELECT count() FROM (SELECT * FROM {call(filled, view)})"))
    if view.startswith("v_platform_"):
        assert rows > 0, "of a platform that Telegraf reports on"
    # these look at the present; the data are of a fixed day
    if view not in ("v_aps", "v_station_last_minute", "v_control"):
        assert rows > 0


@pytest.mark.parametrize("view", ALL)
def test_every_view_runs_on_empty_tables(database, view):
    database.query(f"SELECT * FROM {call(database, view)} FORMAT Null")


@pytest.mark.parametrize("view", ALL)
def test_every_view_is_named_in_the_readme(view):
    text = (FOLDER / "README.md").read_text()
    assert view in text or re.sub(r"_1[sm]$", "_…", view) in text


@pytest.mark.parametrize("q", questions.load(), ids=lambda q: f"{q.number}")
def test_the_readme_shows_what_the_question_answers(filled, q):
    assert samples.answer(filled.query, q, filled.name) == q.answer, "run: make -C clickhouse samples"


def test_the_readme_asks_at_least_ten_questions():
    assert [q.number for q in questions.load()][:10] == list(range(1, 11))


def test_views_are_found_from_any_database(filled):
    """Views that read parameterised views name their database, so that a client need not be in it."""
    assert int(
        filled.server.query(
            f"SELECT count() FROM {filled.name}.v_queue_delay(from = '2026-11-20 12:00:00', to = '2026-11-20 12:02:00')"
        )) > 0


def test_a_range_may_be_an_expression(filled):
    filled.query("SELECT * FROM v_station_1s(from = now() - INTERVAL 1 HOUR, to = now64(6)) FORMAT Null")


def test_mac_addresses_are_written_as_people_do(filled):
    assert filled.rows(
        "SELECT DISTINCT station FROM v_station_1s(from = '2026-11-20 12:00:00', to = '2026-11-20 12:00:05') WHERE"
        " ap_id = 'ap-03' AND mac = 0x020000000301"
    ) == [["02:00:00:00:03:01"]]


def label(us: int, **values) -> dict:
    return {
        "ap_id": "a", "site": "s",
        "ts": f"2026-11-20 00:{us // 60_000_000:02d}:{us // 1_000_000 % 60:02d}.{us % 1_000_000:06d}",
        "window_us": 1_000_000, "offered_pkts": 100, "complete": 1, "class": "Good", "loss_ratio": 0, **values
    }


def test_loss_cdf_leaves_out_what_says_nothing(database):
    rows = [label(i * 100_000, loss_ratio=i / 1000) for i in range(100)]
    rows += [label(20_000_000, loss_ratio=0.9, complete=0), label(20_100_000, loss_ratio=0.8, offered_pkts=0)]
    database.insert("label", rows)
    cdf = database.rows(f"SELECT share, loss_ratio, windows FROM v_loss_cdf({RANGE}) WHERE share IN (0.5, 0.9, 1)")
    assert cdf == [["0.5", "0.05", "100"], ["0.9", "0.09", "100"], ["1", "0.099", "100"]]


@pytest.mark.parametrize("congestion, mac, place", [(0, 0, "none"), (20, 3, "queue"), (3, 20, "air"), (10, 9, "both")])
def test_loss_where(database, congestion, mac, place):
    database.insert("label", [
        label(0, lost_pkts=congestion + mac, mac_lost_pkts=mac, congestion_lost_pkts=congestion,
              queue_drop_pkts=congestion)
    ])
    assert database.rows(
        f"SELECT offered_pkts, congestion_lost_pkts, mac_lost_pkts, lost_in FROM v_loss_where({RANGE})") == [[
            "100", str(congestion), str(mac), place
        ]]


def test_worst_aps_come_first(database):
    now = int(database.query("SELECT toUnixTimestamp(now())"))
    for ap, bad in (("quiet", 0), ("bad", 8), ("worse", 9)):
        database.insert("label", [{
            **label(0), "ap_id": ap, "ts": now - 10 + i, "class": "Bad" if i < bad else "Good",
            "congestion_lost_pkts": 20 if i < bad else 0
        } for i in range(10)])
    database.insert("label", [{**label(0), "ap_id": "gone", "ts": now - 3600, "class": "Bad"}])
    assert database.rows("SELECT ap_id, poor_or_bad_share FROM v_worst_aps(within_s = 60)") == [["worse", "0.9"],
                                                                                                ["bad", "0.8"],
                                                                                                ["quiet", "0"]]


def arrived(database, ap: str, received_ago_s: int, behind_s: int) -> None:
    """A batch that the broker took so long ago, of an AP whose clock is so far behind the broker's."""
    now = int(database.query("SELECT toUnixTimestamp(now())"))
    received = now - received_ago_s
    database.insert("batch", [{"ap_id": ap, "site": "s", "topic": "t", "ts": received - behind_s, "kafka_ts": received,
                               "boot_id": 7, "clock_state": 1, "bytes": 600}])


def test_now_is_the_broker_s_time(database):
    """Whose clock is behind is not silent, and who is silent is so whatever its clock says."""
    for ap, ago, behind in (("well", 5, 0), ("slow", 5, 600), ("days", 5, 3 * 86400), ("fast", 5, -50),
                            ("gone", 700, 0), ("silent", 300, 2 * 86400)):
        arrived(database, ap, ago, behind)
    found = {row[0]: row[1:] for row in database.rows("SELECT ap_id, age_s, behind_s, boot_id, bytes_per_s FROM v_aps")}
    assert {ap: float(row[1]) for ap, row in found.items()} == {
        "well": 0, "slow": 600, "days": 259200, "fast": -50, "silent": 172800}
    assert all(5 <= int(row[0]) < 60 for ap, row in found.items() if ap != "silent") and 300 <= int(
        found["silent"][0]) < 360
    assert {tuple(row[2:]) for row in found.values()} == {("7", "1")}


def test_an_ap_whose_clock_is_off_is_among_the_worst(database):
    now = int(database.query("SELECT toUnixTimestamp(now())"))
    for ap, behind in (("well", 0), ("slow", 600), ("days", 3 * 86400)):
        arrived(database, ap, 1, behind)
        for age, kind in ((10, "Bad"), (120, "Good")):
            database.insert("label", [{**label(0), "ap_id": ap, "ts": now - age - behind, "class": kind}])
    found = database.rows("SELECT ap_id, class_now, poor_or_bad_share, age_s < 60 FROM v_worst_aps(within_s = 60)")
    assert found == [[ap, "Bad", "1", "1"] for ap in ("days", "slow", "well")]


def test_a_station_s_last_minute_is_there(database):
    now = int(database.query("SELECT toUnixTimestamp(now())"))
    database.insert("station", [{
        "ap_id": "a", "ts": now - 100 + s, "batch_seq": s, "mac": 5, "device": "w", "tx_bytes": 125_000 * s,
        "signal_dbm": -60
    } for s in range(100)])
    rows = database.rows(
        "SELECT tx_kbps, signal_dbm_avg FROM v_station_last_minute(ap_id = 'a', mac = '00:00:00:00:00:05')")
    assert 55 <= len(rows) <= 60 and {tuple(r) for r in rows} == {("1000", "-60")}


def test_queue_delay_is_backlog_over_throughput(database):
    """100 packets wait all the time, 1000 leave each second: 100 ms."""
    rows = [{
        "ap_id": "a", "ts": f"2026-11-20 00:{s // 60:02d}:{s % 60:02d}", "batch_seq": s, "mac": 5, "device": "w",
        "ac": 2, "backlog_pkts": 100, "backlog_bytes": 150_000, "tx_pkts": 1000 * s // 4
    } for s in range(240)]
    database.insert("station_ac", rows)  # a row is held for the batch, a quarter of a second, in which 250 leave
    (got,) = database.rows(f"SELECT source, queue, backlog_bytes_avg, delay_avg_ms FROM v_queue_delay({RANGE})")
    assert got[:3] == ["wifi", "BE", "150000"] and float(got[3]) == pytest.approx(100, rel=0.02)


def batch(seq: int, **values) -> dict:
    return {
        "ap_id": "a", "site": "s", "ts": f"2026-11-20 00:00:{seq % 60:02d}", "topic": "ap.samples.v1", "boot_id": 1,
        "seq": seq, "ticks": 63, "ticks_missed": 0, **values
    }


def test_completeness_finds_holes_reboots_and_refusals(database):
    database.insert("batch", [batch(s, ticks_missed=2 if s == 3 else 0)
                              for s in (0, 1, 2, 3, 6, 7)] + [batch(s, boot_id=2) for s in (0, 1)])
    database.insert("gap", [{
        "ap_id": "a", "ts": "2026-11-20 00:00:06", "topic": "ap.samples.v1", "kind": "missing", "boot_id": 1,
        "from_seq": 4, "to_seq": 5, "batches": 2
    }])
    database.insert("late", [{"ap_id": "a", "ts": "2026-11-20 00:00:06", "topic": "ap.samples.v1", "seq": 5}])
    database.insert("dead_letter",
                    [{"ts": "2026-11-20 00:00:06", "topic": "ap.samples.v1", "key": "b", "reason": "truncated"}])
    got = database.rows(
        "SELECT ap_id, batches, missing_batches, reboots, ticks_missed, gap_batches, late_batches, dead_letters,"
        f" verdict FROM v_completeness({RANGE})"
    )
    assert got == [["a", "8", "2", "1", "2", "2", "1", "0", "incomplete"],
                   ["b", "0", "0", "0", "0", "0", "0", "1", "incomplete"]]


def test_latency_is_from_the_last_tick_to_the_row(database):
    """Inserted now, sampled a batch ago: the latency is what passed since the batch ended, the broker's share apart."""
    now_us = int(database.query("SELECT toUnixTimestamp64Micro(now64(6))"))
    start = now_us - 1_252_000
    database.query(
        "INSERT INTO batch (ap_id, ts, topic, ticks, rows, bytes, kafka_ts) SETTINGS async_insert = 0 SELECT 'a',"
        f" fromUnixTimestamp64Micro({start}), 't', 63, 10, 5000,"
        f" fromUnixTimestamp64Milli({(start + 252_000) // 1000 + 40})"
    )
    assert database.rows("SELECT bytes_per_s, rows_per_s FROM v_latency(from = now() - 60, to = now() + 60)") == [[
        str(round(5000 / 0.252)), str(round(10 / 0.252))
    ]]
    ((row_ms, broker_ms), ) = database.rows(
        "SELECT sample_to_row_p50_ms, sample_to_broker_p50_ms FROM v_latency(from = now() - 60, to = now() + 60)")
    inserted = int(database.query("SELECT max(toUnixTimestamp64Milli(inserted_at)) FROM batch"))
    assert int(row_ms) == pytest.approx(inserted - (start + 252_000) / 1000, abs=1) and int(broker_ms) in (39, 40)


def test_onsets_are_told_from_what_lasts(database):
    pairs = [("Good", "Bad"), ("Acceptable", "Poor"), ("Poor", "Bad"), ("Good", "Good"), ("Bad", "Good")]
    database.insert("item", [{"ap_id": "a", "ts": f"2026-11-20 00:00:0{i}", "class_now": n, "class": c, "complete": 1}
                             for i, (n, c) in enumerate(pairs)])
    assert {(n, c): o for n, c, o in database.rows(f"SELECT class_now, class, onset FROM v_items({RANGE})")
            } == {p: "1" if i < 2 else "0" for i, p in enumerate(pairs)}


def test_air_is_split_into_ours_and_others(database):
    row = {"ap_id": "a", "device": "w", "frequency_mhz": 5180, "noise_dbm": -95}
    database.insert("channel", [{
        **row, "ts": f"2026-11-20 00:00:{s:02d}", "batch_seq": s, "active_ms": 1000 * s, "busy_ms": 700 * s,
        "tx_ms": 400 * s, "rx_ms": 100 * s
    } for s in range(60)])
    assert database.rows(f"SELECT busy_ratio, tx_ratio, rx_ratio, other_ratio, noise_dbm_avg FROM v_air({RANGE})") == [[
        "0.7", "0.4", "0.1", "0.2", "-95"
    ]]


def test_an_access_point_s_queues_are_counted_once(database):
    """A root qdisc stands for its children, and mac80211's own queue for the station queues."""
    queue = {"ap_id": "a", "device": "w", "backlog_bytes": 1000}
    queues = [{**queue, "handle": 65536, "parent": 4294967295,
               "kind": "mq"}, {**queue, "handle": 0, "parent": 65537, "kind": "fq_codel"},
              {**queue, "handle": 0, "parent": 4294967295, "kind": "mac80211"}]
    database.insert("queue", [{**q, "ts": f"2026-11-20 00:00:0{s}", "batch_seq": s, "drops": 10 * s} for q in queues
                              for s in (0, 1, 2)])
    database.insert("station_ac", [{
        "ap_id": "a", "mac": 5, "device": "w", "ac": 2, "ts": f"2026-11-20 00:00:0{s}", "batch_seq": s,
        "drops": 100 * s, "backlog_bytes": 50
    } for s in (0, 1, 2)])
    for view, drops in (("v_ap_1s", ["0", "110", "110"]), ("v_ap_1m", ["220"])):
        assert database.rows(f"SELECT queue_drops, backlog_bytes_avg FROM {view}({RANGE})") == [[d, "1050"]
                                                                                                for d in drops]


def test_a_neighbour_counts_once_on_the_channel_of_its_last_beacon(database):
    row = lambda second, bssid, mhz, ap="a", **more: {
        "ap_id": ap, "ts": f"2026-11-20 00:00:{second:02d}", "device": "wlan0", "bssid": bssid, "frequency_mhz": mhz,
        "signal_dbm": -60, **more
    }
    database.insert("beacon", [
        row(1, 1, 2412), row(2, 1, 2437), row(3, 1, 2437, "b"), row(3, 2, 2437), row(3, 3, 2484), row(3, 4, 5180),
        row(3, 5, 5955), row(3, 6, 2412)
    ])
    found = database.rows(f"SELECT band, channel, bss, share, heard_by_max FROM v_channel_histogram({RANGE})")
    assert found == [["2.4 GHz", "1", "1", "0.25", "1"], ["2.4 GHz", "6", "2", "0.5", "2"],
                     ["2.4 GHz", "14", "1", "0.25", "1"], ["5 GHz", "36", "1", "1", "1"], ["6 GHz", "1", "1", "1", "1"]]


def test_the_wire_s_round_trip_is_told_from_the_air_s_in_both_directions(database):
    rows = [{
        "ap_id": "a", "ts": f"2026-11-20 00:00:{i % 60:02d}.{i:06d}", "flow_id": i % 2, "direction": i % 2,
        "server_addr": "::ffff:192.0.2.1", "rtt_up_us": (20_000, 5_000 + 1000 * i)[i % 2],
        "rtt_down_us": (5_000 + 1000 * i, 20_000)[i % 2]
    } for i in range(100)]
    rows += [rows[0] | {"server_addr": "::ffff:192.0.2.2", "ts": f"2026-11-20 00:00:{i:02d}"} for i in range(19)]
    rows += [rows[0] | {"ap_id": "b", "ts": f"2026-11-20 00:00:{i:02d}", "rtt_up_us": 0} for i in range(20)]
    database.insert("flow", rows)
    found = database.rows("SELECT ap_id, server, flows, wired_p50_ms, wired_spread, air_p50_ms > 50, air_spread > 1"
                          f" FROM v_wired_rtt({RANGE})")
    assert found == [["a", "192.0.2.1", "2", "20", "0", "1", "1"], ["b", "192.0.2.1", "1", "\\N", "\\N", "0", "0"]]


def test_exporters_say_what_sampling_costs(database):
    """Two starts of one access point: means and largest values over a start, counters as they are at its end."""
    def health(second: int, boot: int, **values) -> dict:
        cost = dict.fromkeys(
            ("sampling_permille", "samples_late", "sample_max_us", "sampling_pace", "counters_mended",
             "stations_bypassed"), 0)
        at = f"2026-11-20 00:00:{second:02d}"
        return {"ap_id": "a", "ts": at, "boot_id": boot, "version": "1", **cost, **values}

    database.insert("health", [
        health(1, 1, sampling_permille=30, samples_late=4, sample_max_us=9000, sampling_pace=0, counters_mended=1),
        health(2, 1, sampling_permille=50, samples_late=9, sample_max_us=2000, sampling_pace=2, counters_mended=3,
               stations_bypassed=2),
        health(30, 2)
    ])
    assert database.rows(
        "SELECT sampling_cpu_ratio, sample_max_us, samples_late, sampling_pace, counters_mended, stations_bypassed"
        f" FROM v_exporters({RANGE})"
    ) == [["0.04", "9000", "9", "2", "3", "2"], ["0", "0", "0", "0", "0", "0"]]


def test_counters_are_named_as_in_the_contract(database):
    """Each that the exporter watches (ap-exporter/src/sample/refresh.c), by its numbers; the last period counts."""
    watched = re.findall(r"OAL_(STATION|CHANNEL)_(\w+)[, ]", WATCHED.read_text())
    tables = {t["name"]: t for t in json.loads(CONTRACT.read_text())["tables"]}
    named = [(table, column) for table, column in ((t.lower(), c.lower()) for t, c in watched)
             if column in {c["name"] for c in tables[table]["columns"]}]
    assert len(named) == 14
    rows, expected = [], []
    for n, (table, column) in enumerate(named):
        field, = (c["field"] for c in tables[table]["columns"] if c["name"] == column)
        for second, period in ((1, 4000), (2, 1000 * (n + 1))):
            rows.append({"ap_id": "a", "ts": f"2026-11-20 00:00:{second:02d}", "boot_id": 1, "device": "phy0-ap0",
                         "of_table": tables[table]["id"], "of_field": field, "period_us": period})
        expected.append(["phy0-ap0", f"{table}.{column}", str(n + 1)])
    database.insert("counter_refresh", rows)
    found = database.rows(f"SELECT device, counter, period_ms FROM v_counter_refresh({RANGE})")
    assert sorted(found) == sorted(expected)


def test_sessions_of_hosts_are_summed_by_network_and_congestion_control(database):
    """Two networks of IPv4 and one of IPv6; one connection was over before the first look, one without a round trip."""
    def session(second: int, client: str, prefix: int, control: str, **values) -> dict:
        of = dict.fromkeys(("bytes_acked", "data_segs_out", "retrans_pkts", "rtt_looks", "min_rtt_us", "busy_us",
                            "rwnd_limited_us", "sndbuf_limited_us"), 0) | dict.fromkeys(
                                ("delivered_pkts", "delivered_ce_pkts", "rtt_mean_us", "rtt_p95_us"))
        return {"ap_id": "cache", "ts": f"2026-11-20 00:00:{second:02d}", "boot_id": 1, "client_addr": client,
                "client_prefix": prefix, "congestion_control": control, "end_known": 1, **of, **values}

    looked = {"rtt_looks": 4, "rtt_mean_us": 30_000, "rtt_p95_us": 50_000, "min_rtt_us": 20_000}
    database.insert("sender_session", [
        session(1, "::ffff:192.168.1.7", 0xC0A801, "bbr", bytes_acked=9_000_000, data_segs_out=6400, retrans_pkts=64,
                busy_us=4_000_000, rwnd_limited_us=1_000_000, delivered_pkts=6000, delivered_ce_pkts=60, **looked),
        session(2, "::ffff:192.168.1.9", 0xC0A801, "bbr", end_known=2, bytes_acked=1_000_000),
        session(3, "::ffff:192.168.1.9", 0xC0A801, "", bytes_acked=500),
        session(4, "2001:db8:0:7::1", 0x20010DB800000007, "cubic", bytes_acked=400),
        session(5, "fd00:1::1", int.from_bytes(bytes.fromhex("fd00000100000000"), "big") - (1 << 64), "cubic",
                bytes_acked=300)
    ])
    assert database.rows(
        "SELECT client_network, congestion_control, sessions, retrans_ratio, ce_ratio, rtt_min_ms, rtt_mean_ms,"
        " rtt_p95_ms, busy_kbps, limited_by_ends_ratio, ends_missed, unseen"
        f" FROM v_sender_sessions({RANGE}) FORMAT TSVRaw"
    ) == [["192.168.1.0/24", "bbr", "2", "0.01", "0.01", "20", "30", "50", "20000", "0.25", "1", "0"],
          ["192.168.1.0/24", "", "1", *["\\N"] * 7, "0", "1"],
          ["2001:db8:0:7::/64", "cubic", "1", *["\\N"] * 7, "0", "0"],
          ["fd00:1::/64", "cubic", "1", *["\\N"] * 7, "0", "0"]]


def session_of(control: str, network: int, number: int, **values) -> dict:
    """A connection of 20 segments and 1 s, with a round trip of 10 ms above a least one of 20 ms."""
    return {"ap_id": "cache", "ts": f"2026-11-20 00:{number // 60:02d}:{number % 60:02d}", "boot_id": 1,
            "flow_id": number, "client_addr": f"::ffff:192.0.{network}.7", "client_prefix": (192 << 16) + network,
            "congestion_control": control, "end_known": 1, "bytes_acked": 125_000, "busy_us": 1_000_000,
            "data_segs_out": 20, "retrans_pkts": 0, "rtt_looks": 9, "rtt_mean_us": 30_000, "min_rtt_us": 20_000,
            "rwnd_limited_us": 0, "sndbuf_limited_us": 0, "delivered_pkts": None, "delivered_ce_pkts": None, **values}


def gains(database, *columns: str) -> list[list[str]]:
    return database.rows(f"SELECT client_network, congestion_control, {', '.join(columns)}"
                         f" FROM v_congestion_control_gain({RANGE}) ORDER BY client_network FORMAT TSVRaw")


def test_a_congestion_control_is_compared_with_its_hosts_most_used_one_on_the_same_network(database):
    """Network 1: twice as fast, waits half as long. Network 2: one connection too few. Network 3: nothing there."""
    rows = [session_of("cubic", 1, n) for n in range(40)] + [session_of("cubic", 2, n) for n in range(19)]
    rows += [session_of("bbr", 1, n, bytes_acked=250_000, rtt_mean_us=25_000, retrans_pkts=n % 2) for n in range(20)]
    rows += [session_of("bbr", 2, n) for n in range(30)] + [session_of("bbr", 3, n) for n in range(5)]
    database.insert("sender_session", rows)
    assert gains(database, "compared_with", "sessions", "sessions_there", "round(exp(speed_log), 3)",
                 "round(rtt_above_ms, 3)", "round(sent_again, 3)") == [
                     ["192.0.1.0/24", "bbr", "cubic", "20", "40", "2", "-5", "0.025"],
                     ["192.0.2.0/24", "bbr", "cubic", "30", "19", "\\N", "\\N", "\\N"],
                     ["192.0.3.0/24", "bbr", "cubic", "5", "0", "\\N", "\\N", "\\N"]]
    # 20 values of 0 and 0.05 in turns have a variance of 0.025² * 20 / 19.
    assert gains(database, "round(sent_again_within, 6)", "round(speed_log_within, 6)")[0][2:] == [
        str(round(1.96 * 0.025 / 19 ** 0.5, 6)), "0"]


def test_a_connection_within_the_initial_window_or_without_a_look_is_not_compared(database):
    """No congestion control had anything to decide there; it counts all the same."""
    database.insert("sender_session",
                    [session_of("cubic", 1, n) for n in range(30)] + [session_of("bbr", 1, n) for n in range(20)] + [
                        session_of("bbr", 1, n, data_segs_out=10, bytes_acked=1, rtt_mean_us=900_000) for n in range(7)
                    ] +
                    [session_of("", 1, n, bytes_acked=1, rtt_mean_us=None) for n in range(90)])
    assert gains(database, "sessions", "round(exp(speed_log), 3)", "rtt_above_ms") == [
        ["192.0.1.0/24", "bbr", "27", "1", "0"]]
    assert database.rows(f"SELECT congestion_control, sessions, compared FROM v_sender_networks({RANGE})"
                         " ORDER BY congestion_control") == [
                             ["", "90", "0"], ["bbr", "27", "20"], ["cubic", "30", "30"]]


def test_a_minute_of_a_host_has_no_rows_of_the_labs_sniffer(database):
    looked = {"flow_id": 5, "client_port": 40000, "congestion_control": "cubic", "rtt_us": 30_000, "min_rtt_us": 20_000}
    database.insert("sender_tcp", [{"ts": "2026-11-20 00:00:01", "host": "lab"} | looked])
    database.insert("sender_tcp", [{"ap_id": "cache", "ts": f"2026-11-20 00:00:{n:02d}", **looked, "flow_id": n % 3,
                                    "interval_ms": 100 * n, "min_rtt_us": 20_000 * (n < 9)} for n in range(10)])
    assert database.rows("SELECT ap_id, sum(s.rows), uniqMerge(connections), max(s.interval_ms_max), sum(s.above_rows),"
                         " sum(s.above_us) FROM sender_tcp_1m AS s GROUP BY ap_id") == [
                             ["cache", "10", "3", "900", "9", "90000"]]


def test_rows_of_hosts_and_of_the_labs_sniffer_are_one_table(database):
    """Each says what it knows; what it does not know is not taken for a measured 0."""
    seen = {"flow_id": 5, "server_port": 443, "client_port": 40000, "congestion_control": "cubic", "cwnd_bytes": 14480}
    database.insert("sender_tcp", [{"ts": "2026-11-20 00:00:01", "host": "lab", "clock_offset_us": -40,
                                    "clock_offset_error_us": 120} | seen])
    database.insert("sender_tcp", [{"ap_id": "cache", "ts": "2026-11-20 00:00:02", "boot_id": 1, "batch_seq": 4,
                                    "client_addr": "::ffff:10.0.0.1", "interval_ms": 100, "delivered_pkts": 10} | seen])
    assert database.rows("SELECT host, ap_id, interval_ms, delivered_pkts, clock_offset_us, clock_offset_error_us"
                         " FROM sender_tcp WHERE flow_id = 5 ORDER BY ts FORMAT TSVRaw") == [
                             ["lab", "", "0", "\\N", "-40", "120"], ["cache", "cache", "100", "10", "0", "4294967295"]]
