"""Scenarios as a whole: a short one comes up and its counters agree; the congested one loses what the kernel says it
lost; wrong files.
"""
import json
import pathlib

import pytest
from host import scenario

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "scenarios"


def test_smoke_associates_carries_traffic_and_counts(play):
    import yaml
    truth = play("smoke", yaml.safe_load((FOLDER / "smoke.yaml").read_text()))
    assert len(truth["end"]["stations"]) == 2
    assert all(flow["received_bytes"] > 500_000 for flow in truth["flows"])
    assert truth["increase"]["tx_retries"] > 100
    needed = sum(flow["retransmits"] - flow["spurious"] for flow in truth["flows"] if flow["direction"] == "down")
    assert abs(needed - truth["queue_drops"] - truth["mac_failures"]) <= 5 + 0.1 * truth["queue_drops"]


def test_congested_retransmits_what_the_kernel_dropped(play):
    import yaml
    truth = play("congested", yaml.safe_load((FOLDER / "congested.yaml").read_text()))
    lost = truth["queue_drops"] + truth["mac_failures"]
    assert truth["mac_failures"] >= 10
    assert truth["down_retrans_segs"] == pytest.approx(lost, rel=0.1)
    ratios = [(b["qdisc_drops"] - a["qdisc_drops"]) / max(1, b["down_out_segs"] - a["down_out_segs"])
              for a, b in zip(truth["seconds"], truth["seconds"][1:])]
    assert sum(ratio >= 0.12 for ratio in ratios) >= 5
    assert sum(ratio < 0.02 for ratio in ratios) >= 3


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_file_is_valid(path):
    plan = scenario.load(str(path))
    assert plan["stations"] and plan["flows"]
    assert scenario.radios(plan) <= 100


@pytest.mark.parametrize(("given", "complaint"), [
    ({"station": []}, "unknown key station"),
    ({"stations": []}, "no stations"),
    ({"stations": [{"name": "a", "loss": 3}]}, "not a share"),
    ({"stations": [{"name": "a", "ap": 1}]}, "there are 1"),
    ({"stations": [{"name": "a"}], "flows": [{"station": "b"}]}, "no station b"),
    ({"stations": [{"name": "a"}], "flows": [{"station": "a", "direction": "sideways"}]}, "down or up"),
    ({"stations": [{"name": "a"}], "changes": [{"stations": ["a"]}]}, "needs at_s"),
    ({"stations": [{"name": "a"}], "ap": {"queue": {"mode": "magic"}}}, "txq or qdisc"),
    ({"stations": [{"name": "a"}], "ap": {"queue": {"mode": "qdisc", "ce_us": 1000}}}, "only with mode txq"),
    ({"stations": [{"name": "a"}], "wired": {"loss": 1}}, "wired.loss: a share below 1"),
    ({"stations": [{"name": "a"}], "wired": {"jitter_ms": 30}}, "30 is more than the delay, 20"),
    ({"stations": [{"name": "a"}], "wired": {"rate_mbps": -1}}, "wired.rate_mbps: a number from 0 on"),
    ({"stations": [{"name": "a"}], "wired": {"limit_pkts": 0}}, "wired.limit_pkts: a whole number from 1 on"),
    ({"stations": [{"name": "a"}], "ecn": "yes"}, "ecn: true or false"),
    ({"stations": [{"name": "a"}], "flows": [{"station": "a", "cc": "cubik"}]}, "cubik is none of reno, cubic"),
    ({"stations": [{"name": "a"}], "flows": [{"station": "a", "peer_cc": "bbr3"}]}, "peer_cc: bbr3 is none of"),
])
def test_a_wrong_scenario_is_refused_by_name(given, complaint):
    with pytest.raises(scenario.ScenarioError, match=complaint):
        scenario.plan("wrong", given)


def test_two_aps_share_the_medium_and_an_ovs_bridge_carries_traffic(play):
    flows = [{"station": "near", "start_s": 0.5}, {"station": "other", "start_s": 0.5}]
    stations = [{"name": "near", "rate_mbps": 65}, {"name": "other", "rate_mbps": 65, "ap": 1}]
    shared = play("shared", {"duration_s": 6, "aps": 2, "stations": stations, "flows": flows})
    alone = play("single", {"duration_s": 6, "ap": {"bridge": "ovs"}, "stations": stations[:1], "flows": flows[:1]})
    mine, whole = shared["flows"][0]["received_bytes"], alone["flows"][0]["received_bytes"]
    assert len(shared["flows"]) == 1
    assert 0.25 < mine / whole < 0.75


def test_a_longer_run_plays_the_scenario_again(play):
    plan = {
        "duration_s": 4, "stations": [{"name": "sta"}],
        "flows": [{"station": "sta", "start_s": 1, "stop_s": 2, "rate_mbps": 4}]
    }
    once = play("once", plan)["flows"][0]["received_bytes"]
    again = play("again", plan, duration_s=8)["flows"][0]
    assert again["received_bytes"] == pytest.approx(2 * once, rel=0.1)
    assert again["connections"] == 2


SESSIONS = {
    "duration_s": 200, "seed": 3, "stations": [{"name": "sta", "count": 3}], "sessions": [{
        "station": "sta", "active_s": [5, 20], "idle_s": [5, 20], "parallel": [1, 4], "size_kb": [10, 100],
        "every_s": [1, 5]
    }, {"station": "sta", "together": True, "active_s": [5, 20], "idle_s": [5, 20], "rate_mbps": [0.1, 2]}],
    "drifts": [{"hold_s": [5, 30], "levels": [{"foreign": 0.1}, {"foreign": 0.5}, {"foreign": 0.3}]}, {
        "stations": ["sta1", "sta2"], "hold_s": 10, "levels": [{"rate_mbps": 65}, {"rate_mbps": 13, "loss": 0.1}]
    }]
}


def test_chance_draws_the_same_again_and_within_its_spans():
    plan, again, other = (scenario.plan("drawn", {**SESSIONS, "seed": seed}) for seed in (3, 3, 4))
    assert plan["flows"] == again["flows"] and plan["changes"] == again["changes"]
    assert plan["flows"] != other["flows"] and plan["changes"] != other["changes"]
    pages, streams = plan["flows"][:3], plan["flows"][3:]
    assert pages[0]["arrivals"] != pages[1]["arrivals"] and streams[0]["arrivals"] == streams[1][
        "arrivals"], "each for itself; all together"
    for arrival in (a for f in pages for a in f["arrivals"]):
        assert 1 <= arrival["parallel"] <= 4 and 10 <= arrival["size_kb"] <= 100 and arrival["start_s"] < arrival[
            "stop_s"] <= 200
    assert all(0.1 <= a["rate_mbps"] <= 2 and 4.9 <= a["stop_s"] - a["start_s"] <= 20.1 or a["stop_s"] == 200
               for a in streams[0]["arrivals"])
    foreign = [c["foreign_permille"] for c in plan["changes"] if "foreign_permille" in c]
    assert len(foreign) >= 6 and all(a != b for a, b in zip(foreign, foreign[1:])) and set(foreign) == {100, 300, 500}
    assert {tuple(c["stations"]) for c in plan["changes"] if "stations" in c} == {("sta1",), ("sta2",)}


def test_one_entry_more_leaves_the_others_draws_alone():
    more = {**SESSIONS, "sessions": [*SESSIONS["sessions"], {"station": "sta1"}]}
    assert scenario.plan("drawn", more)["flows"][:6] == scenario.plan("drawn", SESSIONS)["flows"]


@pytest.mark.parametrize(("given", "complaint"),
                         [({"sessions": [{"station": "x"}]}, "no station x"),
                          ({"sessions": [{"station": "a", "active_s": [5, 1]}]}, "smallest, largest"),
                          ({"sessions": [{"station": "a", "idle_s": 0}]}, "more than 0 s"),
                          ({"sessions": [{"station": "a", "size_kb": 5, "every_s": 0}]}, "more than 0 s"),
                          ({"sessions": [{"station": "a", "direction": "left"}]}, "down or up"),
                          ({"drifts": [{"levels": [{"foreign": 0.1}]}]}, "at least two"),
                          ({"drifts": [{"levels": [{"foreign": 0.1}, {"foreing": 0.2}]}]}, "unknown key foreing"),
                          ({"drifts": [{"hold_s": -1, "levels": [{}, {}]}]}, "smallest, largest")])
def test_wrong_sessions_and_drifts_are_refused_by_name(given, complaint):
    with pytest.raises(scenario.ScenarioError, match=complaint):
        scenario.plan("wrong", {"stations": [{"name": "a"}], **given})


def test_sessions_play_and_a_run_that_is_cut_short_opens_nothing_at_its_end(play):
    given = {
        "duration_s": 60, "seed": 5, "stations": [{"name": "sta"}],
        "sessions": [{"station": "sta", "active_s": 50, "idle_s": 1, "parallel": 2, "size_kb": 30, "every_s": 0.5}]
    }
    expected = sum(2 for f in scenario.plan("pages", given)["flows"] for a in f["arrivals"] if a["start_s"] < 6)
    flow = play("pages", given, duration_s=6)["flows"][0]
    assert expected - 2 <= flow["connections"] <= expected + 2 and expected >= 16
    assert flow["received_bytes"] == pytest.approx(30_000 * flow["connections"], rel=0.1)


@pytest.mark.parametrize("name", ["learning", "learning2"])
def test_a_capture_to_learn_from_has_every_class_and_many_onsets(name):
    """By the sender's own counters, a second each; a recording anew must not lose what learners live on."""
    seconds = json.loads((FOLDER.parent / "captures" / f"{name}.truth.json").read_text())["seconds"]
    ratios = [(b["down_retrans_segs"] - a["down_retrans_segs"]) / max(1, b["down_out_segs"] - a["down_out_segs"])
              for a, b in zip(seconds, seconds[1:])]
    classes = [sum(ratio >= bound for bound in (0.01, 0.05, 0.12)) for ratio in ratios]
    shares = [classes.count(k) / len(classes) for k in range(4)]
    assert 0.4 < shares[0] < 0.7 and min(shares[1:]) > 0.08
    onsets = [i for i, (a, b) in enumerate(zip(classes, classes[1:])) if a < 2 <= b]
    assert len(onsets) >= 40
    gaps = [b - a for a, b in zip(onsets, onsets[1:])]
    assert max(gaps) > 15 and min(gaps) <= 3, "congestion comes in no rhythm"
