"""Scenarios as a whole: a short one comes up and its counters agree; the congested one loses what the kernel says it lost; wrong files."""
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
    assert sum(ratio < 0.01 for ratio in ratios) >= 3


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
    plan = {"duration_s": 4, "stations": [{"name": "sta"}], "flows": [{"station": "sta", "start_s": 1, "stop_s": 2, "rate_mbps": 4}]}
    once = play("once", plan)["flows"][0]["received_bytes"]
    again = play("again", plan, duration_s=8)["flows"][0]
    assert again["received_bytes"] == pytest.approx(2 * once, rel=0.1)
    assert again["connections"] == 2
