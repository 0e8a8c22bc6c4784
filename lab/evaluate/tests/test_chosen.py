"""Sessions of senders in Wi-Fi, senders that choose by an earlier one, and what is made of such cells."""
import dataclasses
import json
import struct

import numpy as np
import pandas as pd
import pytest
from evaluate import chosen, methods, scenarios, sender_models, sessions
from evaluate.methods import method
from grid import wifi
from guest.session import FINAL, INFO_BYTES, Looks
from guest.wifi import radio_mac
from oal_schema.centroids import AIR, QUEUE, Centroids

SESSION = {
    "flow": 0, "station": "one", "ap": 0, "cc": "cubic", "rtt_us": 60_000, "rttvar_us": 4_000, "min_rtt_us": 31_000,
    "bytes_acked": 12_500_000, "segs_out": 9_000, "segs_in": 4_500, "data_segs_out": 9_000, "retrans_pkts": 90,
    "delivered_pkts": 8_900, "dsack_dups": 0, "reorderings": 0, "reordering_pkts": 3, "delivery_rate_bytes": 1_200_000,
    "busy_us": 10_000_000, "rwnd_limited_us": 0, "sndbuf_limited_us": 0, "cwnd_pkts": 50, "mss_bytes": 1448,
    "seen_us": 10_000_000, "looks": 50, "rtt_us_min": 31_500, "rtt_us_mean": 58_000.0, "rtt_us_p95": 71_000,
    "rttvar_us_min": 2_000, "rttvar_us_mean": 5_000.0, "rttvar_us_p95": 9_000, "cwnd_pkts_min": 10,
    "cwnd_pkts_mean": 45.0, "cwnd_pkts_p95": 70, "delivery_rate_bytes_min": 800_000,
    "delivery_rate_bytes_mean": 1_200_000.0, "delivery_rate_bytes_p95": 1_500_000, "ap_link_mbps": 24.7,
    "ap_tx_packets": 9_000, "ap_tx_retries": 500, "ap_msdu_failed": 60, "ap_txq_drops": 10,
    "ap_airtime_us": 6_000_000, "ap_lost_air": 60, "ap_lost_queue": 30, "ap_busy_ms": 9_000, "ap_survey_ms": 10_000
}


class Socket:
    """What a sender's kernel says, look after look."""

    def __init__(self, *of: dict):
        self.of = list(of)

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        raw = bytearray(INFO_BYTES)
        for name, value in self.of.pop(0).items():
            at, kind = FINAL[name]
            struct.pack_into("=" + kind, raw, at, value)
        assert size == INFO_BYTES
        return bytes(raw)


def test_looks_before_the_first_round_trip_are_not_counted():
    rtts = [0, *range(1000, 101_000, 1000)]
    sock, looks = Socket(*({"rtt_us": us, "min_rtt_us": min(us, 1000), "bytes_acked": us} for us in rtts)), Looks()
    for _ in rtts:
        looks.look(sock)
    found = looks.figures(20.2)
    assert (found["looks"], found["seen_us"], found["bytes_acked"]) == (100, 20_200_000, 100_000)
    assert (found["rtt_us_min"], found["rtt_us_mean"], found["rtt_us_p95"]) == (1000, 50_500, 95_000)


def test_a_session_without_a_round_trip_has_no_means_and_its_cell_no_worth():
    looks = Looks()
    looks.look(Socket({}))
    found = looks.figures(0.2)
    assert found["looks"] == 0 and "rtt_us_mean" not in found
    assert sessions.worths([SESSION, SESSION | found]) == {"worth_speed": None, "worth_queue": None}
    assert sessions.worths([]) == {}


def test_a_cells_worth_is_the_mean_of_its_sessions():
    found = sessions.worths([SESSION, SESSION | {"bytes_acked": 25_000_000}])
    assert found["worth_speed"] == pytest.approx((np.log(10) + np.log(20)) / 2)
    assert found["worth_queue"] == pytest.approx(found["worth_speed"] - 5 * 0.04 - 2 * 0.01)


def test_what_the_access_point_lost_is_counted_by_station_and_cause(tmp_path):
    columns = "t_ns,device,cause,protocol,source,source_port,destination,destination_port,ip_id,seq,payload_bytes"
    lines = ["1,wlan0,queue,6,10.20.0.1,1,10.20.0.10,2,3,4,1448", "2,wlan0,air,6,10.20.0.1,1,10.20.0.10,2,3,5,1448",
             "3,wlan0,air,6,10.20.0.1,1,10.20.0.11,2,3,5,1448", "4,wlan0,air,6,10.20.0.1,1,10.20.0.10,2,3,5,0",
             "5,wlan1,air,6,10.20.1.1,1,10.20.0.10,2,3,5,9", "6,wlan0,air,17,10.20.0.1,1,10.20.0.10,2,3,5,9"]
    (tmp_path / "x.csv").write_text("\n".join([columns, *lines]) + "\n")
    assert sessions.lost(tmp_path / "x.csv")["wlan0", "10.20.0.10"] == {"queue": 1, "air": 1}


def test_a_session_has_its_stations_figures_and_those_of_a_second_period_are_left_out(tmp_path):
    made = plan("cubic")
    (tmp_path / f"{made['name']}.losses.csv").write_text(
        "t_ns,device,cause,protocol,source,source_port,destination,destination_port,ip_id,seq,payload_bytes\n"
        f"1,wlan0,air,6,10.20.0.1,1,10.20.0.{made['stations'][1]['host']},2,3,4,1448\n")
    survey = {"start": {"survey": {"time_ms": 100, "busy_ms": 10}}, "end": {"survey": {"time_ms": 1100, "busy_ms": 60}}}
    counters = {radio_mac(made["stations"][1]["radio"]): {name: 7 for name in sessions.COUNTERS}}
    played = [(n, {"station": made["flows"][n]["station"], "cc": "cubic", "sessions": [{"looks": 1}, {"looks": 2}]})
              for n in (1, 0)]
    second, first = sessions.rows(made, [survey | {"stations": counters}], played, tmp_path)
    assert [one["flow"] for one in (first, second)] == [0, 1] and [first["looks"], second["looks"]] == [1, 1]
    assert (second["ap_lost_air"], second["ap_tx_retries"], second["ap_busy_ms"], second["ap_survey_ms"]
            ) == (1, 7, 50, 1000)
    assert second["ap_link_mbps"] == pytest.approx(26 * 0.95) and first["ap_tx_retries"] is None, "absent is not zero"


def plan(control: str, name: str = "beside-two") -> dict:
    return scenarios.plan(scenarios.load("choose", name), name, method(f"{control}-fq"), 1001)


def test_what_the_trees_choose_goes_to_all_senders_but_the_plain_one(monkeypatch):
    model = {"algorithms": ["cubic", "bbr"], "least_gain": 0.05, "trees": {"cubic": [
        {"at": "retrans_ratio", "above": 0.005, "left": 1, "right": 2}, {"gains": [0, 0.04]}, {"gains": [0, 0.3]}]}}
    monkeypatch.setattr(chosen, "trees", lambda: {"speed": model, "queue": model})
    before = [SESSION, SESSION | {"flow": 1}]
    made = plan("cs_speed")
    chosen.apply(made, "cs_speed", before)
    assert [flow["cc"] for flow in made["flows"]] == ["bbr", "cubic"], "the second is plain"
    made = plan("cs_queue", "both-two")
    chosen.apply(made, "cs_queue", [SESSION | {"retrans_pkts": 0}, SESSION | {"flow": 1, "looks": 0}])
    assert [flow["cc"] for flow in made["flows"]] == ["cubic", "cubic"], "too little gained, and nothing known"


def test_oal_lc_goes_to_whom_the_access_point_says_that_the_air_lost_most():
    made = plan("lc_told", "both-two")
    chosen.apply(made, "lc_told", [SESSION, SESSION | {"flow": 1, "ap_lost_air": 44}])
    assert [flow["cc"] for flow in made["flows"]] == ["oal_lc", "cubic"] and made["ecn"]
    _, *numbers = sender_models.LAYOUT.unpack(bytes.fromhex(made["oal_lc"]))
    rule = Centroids((numbers[1],), (numbers[5],), (numbers[9],), (numbers[13],), True)
    assert [rule.answer([us]) for us in (4 * 31_000 - 100, 4 * 31_000 + 100)] == [AIR, QUEUE]
    assert not chosen.told_air(SESSION | {"retrans_pkts": 0}), "nothing was lost"


def test_oal_ecn_marks_from_the_shortest_round_trip_and_a_wait_on():
    made = plan("le_wait", "both-two")
    chosen.apply(made, "le_wait", [SESSION, SESSION | {"flow": 1, "looks": 0, "min_rtt_us": 0}])
    _, *numbers = sender_models.MARKS_LAYOUT.unpack(bytes.fromhex(made["oal_ecn"]))
    assert numbers[-2] == sender_models.STEEP and {flow["cc"] for flow in made["flows"]} == {"oal_ecn"}
    assert numbers[0] == sender_models.log2_q16(31_000 + chosen.WAIT_US - 1)
    with pytest.raises(ValueError):
        chosen.shortest_us([SESSION | {"looks": 0}])


def test_seeds_choose_for_each_other_in_pairs():
    seeds = list(range(1001, 1011))
    assert sorted(map(chosen.seed_before, seeds)) == seeds
    assert all(chosen.seed_before(chosen.seed_before(s)) == s != chosen.seed_before(s) for s in seeds)
    assert {name for name in methods.SENDERS if method(f"{name}-fq").before} == set(methods.CHOSEN)


@pytest.fixture
def chance() -> wifi.Sessions:
    """Algorithms that are all alike, two scenarios of three access points with three flows each, over both queues."""
    rng = np.random.default_rng(0)
    paths = pd.DataFrame([{"scenario": s, "queue": q, "flow": f, "ap": f // 3}
                          for s in ("a", "b") for q in wifi.QUEUES for f in range(9)])
    shape = len(paths), len(wifi.FIXED), 10
    return wifi.Sessions(paths, wifi.FIXED, tuple(range(1001, 1011)), rng.normal(1, 0.1, shape),
                         rng.normal(size=(*shape, len(wifi.ALL) + len(wifi.LAST_HOP))))


def test_luck_of_a_session_is_no_gain_in_the_one_that_judges(chance):
    lucky = dataclasses.replace(chance, statistics=np.where(
        np.arange(chance.statistics.shape[3]) == 0, chance.worth[..., None], chance.statistics))
    worth = wifi.taken(lucky, wifi.fitted(lucky, "cubic", wifi.scenario_folds(lucky), wifi.ALL))
    assert lucky.figure(worth - lucky.next[:, 1])[1] < 1
    assert lucky.figure(lucky.next.max(axis=1) - lucky.next[:, 1])[1] > 5, "what nobody can have"


def test_what_only_an_access_point_knows_is_seen_as_added(chance):
    """At half of the stations BBR has twice the speed, and its column alone says which."""
    worth, stats = chance.worth.copy(), chance.statistics.copy()
    worth[::2, wifi.FIXED.index("bbr")] += np.log(2)
    worth[1::2, wifi.FIXED.index("bbr")] -= np.log(2)
    stats[..., -1] = 0
    stats[::2, ..., -1] = 1
    of = dataclasses.replace(chance, worth=worth, statistics=stats)
    found = wifi.held_out(of, "cubic", wifi.scenario_folds(of), of.next[:, 1])
    assert found["added"][1] > 20 and wifi.kept(found["added"]) == "better"
    assert [wifi.kept([0, low, high]) for low, high in ((-1, 1), (-2, -1))] == ["no gain: dropped", "worse: dropped"]


def test_a_cell_that_is_missing_is_no_figure(tmp_path):
    """Of sessions of six algorithms over a queue: one seed without one of them is refused."""
    rows = [SESSION | {"set": "judge", "scenario": "a", "method": f"{cc}-{queue}", "seed": seed, "cc": cc, "flow": 0}
            for cc in wifi.FIXED for queue in wifi.QUEUES for seed in (1001, 1002)]

    class Kept:
        def __init__(self, of: list[dict]):
            self.of = json.loads(json.dumps(of))

        def of_cells(self, key: str) -> list[dict]:
            return self.of if key == "sessions" else []

    assert wifi.table(Kept(rows), "speed").worth.shape == (2, 6, 2)
    with pytest.raises(ValueError, match="missing"):
        wifi.table(Kept(rows[1:]), "speed")
    with pytest.raises(ValueError, match="round trip"):
        wifi.table(Kept([rows[0] | {"looks": 0}, *rows[1:]]), "speed")
