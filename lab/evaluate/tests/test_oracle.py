"""The oracle's shares of a run whose capacity is known, the scenarios' traces, and what a cell's hash depends on."""
import dataclasses

import numpy as np
import pytest
from evaluate import forecast, oracle, play, scenarios
from evaluate.methods import ALL, FORECASTS, method
from host import scenario

PLAN = scenario.plan(
    "x", {
        "duration_s": 4, "stations": [{"name": "fast", "rate_mbps": 60, "loss": 0}, {
            "name": "slow", "rate_mbps": 20, "loss": 0
        }], "flows": [{"station": "fast"}, {"station": "slow"}],
        "changes": [{"at_s": 2, "stations": ["slow"], "leave": True}], "wired": {"delay_ms": 20}
    })


def received(fast: int, slow: int) -> dict:
    """Bytes per 100 ms: first both, then the fast station alone."""
    return {"step_s": 0.1, "bytes": {"fast": [fast] * 20 + [75_000] * 20, "slow": [slow] * 20 + [0] * 20}}


@pytest.mark.parametrize(("fast", "slow"), [(37_500, 12_500), (18_750, 18_750), (75_000, 0)])
def test_equal_airtime_is_found_however_the_queue_shared_it(fast, slow):
    """100 ms of air carry 75,000 bytes to the fast station or 25,000 to the slow one."""
    shares = oracle.shares(PLAN, received(fast, slow))
    assert shares["fast"][8] == pytest.approx(375_000, rel=0.01) and shares["slow"][8] == pytest.approx(
        125_000, rel=0.01)
    assert shares["fast"][35] == pytest.approx(750_000, rel=0.01), "alone it has all"


def test_the_window_is_the_share_times_round_trip_and_target():
    spec = oracle.schedule(PLAN, {"rates": received(37_500, 12_500)}, target_us=10_000)
    assert spec["steps"] == 40 and spec["stations"]["fast"][8] == pytest.approx(375_000 * 0.030, rel=0.01)
    assert spec["stations"]["slow"][30] == 0, "it has left"


def test_every_scenario_of_both_sets_is_valid_and_the_sets_differ():
    assert scenarios.names("tune") == scenarios.names("judge") == [
        "bursts", "churn", "constant", "fading", "foreign", "lossy", "mixed", "shorts", "stepped", "swings", "variable",
        "web"
    ]
    for name in scenarios.names("tune"):
        tune, judge = (scenarios.plan(scenarios.load(which, name), name, method("bbr-fq"), 1)
                       for which in ("tune", "judge"))
        assert tune["aps"] == judge["aps"] == 3 and len(tune["stations"]) == len(judge["stations"]) == 9
        assert {f["cc"] for f in tune["flows"]} == ({"bbr", "cubic"} if name == "mixed" else {"bbr"})
        assert tune["wired"]["delay_ms"] != judge["wired"]["delay_ms"] and 10 <= judge["wired"]["delay_ms"] <= 60
        assert [s["rate_kbps"] for s in tune["stations"]] != [s["rate_kbps"] for s in judge["stations"]]


def test_a_trace_keeps_its_shape_within_its_limits():
    changes = scenarios.trace({"file": "verizon-evdo-44.csv", "begin_s": 0, "low": 0.25, "high": 2}, 14)
    scales = [c["scale"] for c in changes]
    assert len(scales) == 28 and min(scales) == 0.25 and max(scales) == 2 and 0.8 < np.mean(scales) < 1.2
    assert len(scenarios.trace({"file": "verizon-evdo-44.csv", "begin_s": 10, "low": 0.25, "high": 2}, 14)) == 8


def test_links_swing_within_a_second_and_the_same_again():
    for which in ("tune", "judge"):
        given = scenarios.load(which, "swings")
        spec = scenario.merge(scenarios.SWING, given["swing"], "x")
        levels = np.array([c["scale"] for c in scenarios.swing(spec, given)])
        assert len(levels) == 140 and levels.min() == spec["low"] and levels.max() > 1.3
        within = max(np.ptp(levels[n:n + 10]) for n in range(130))
        assert within > 0.6, "of the mean, within a second"
        assert [c["scale"] for c in scenarios.swing(spec, given)] == levels.tolist()
        assert [c["scale"] for c in scenarios.swing(spec | {"seed": 2}, given)] != levels.tolist()
    given = scenarios.load("judge", "fading")
    changes = scenarios.swing(scenario.merge(scenarios.SWING, given["swing"], "x"), given)
    walks = {name: [c["rate_mbps"] for c in changes if c["stations"] == [name]] for name in ("hall0", "yard2")}
    assert len(changes) == 9 * 140 and np.corrcoef(*walks.values())[0, 1] < 0.9


def test_a_flow_of_the_other_control_is_that_in_every_method():
    for control, other in (("cubic", "bbr"), ("bbr", "cubic")):
        plan = scenarios.plan(scenarios.load("judge", "mixed"), "mixed", method(f"{control}-fq"), 1)
        assert [f["cc"] for f in plan["flows"]].count(other) == 4 and plan["evaluate"]["control"] == control


def test_a_cells_hash_depends_on_what_it_uses_and_on_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(play, "kernel", lambda: "/cache/kernel-1/linux")
    exporter, other = tmp_path / "a", tmp_path / "b"
    exporter.write_text("one")
    other.write_text("two")
    settings = play.Settings(exporter=exporter)
    cell = lambda name, seed=1: play.Cell("tune", "constant", method(name), seed)
    before = {m.name: play.key(cell(m.name), settings) for m in ALL}
    assert len(set(before.values())) == len(ALL)
    changed = lambda **more: {
        m.name for m in ALL if play.key(cell(m.name), dataclasses.replace(settings, **more)) != before[m.name]
    }
    acting = {m.name for m in ALL if m.act}
    assert changed(exporter=other) == acting
    assert changed(overrides=(("target_us", 9000),)) == {m.name for m in ALL if m.policy is not None}
    assert changed(clamp_bytes=1) == {m.name for m in ALL if m.act == "clamp"}
    assert changed(oracle_target_us=1) == {m.name for m in ALL if m.act == "oracle"}
    assert play.key(cell("cubic-fq", 2), settings) != before["cubic-fq"]
    monkeypatch.setattr(play, "kernel", lambda: "/cache/kernel-2/linux")
    assert changed() == {m.name for m in ALL}


def test_a_forecast_takes_off_its_share_of_the_rules_error_at_every_instant():
    rates = np.array([0, 0, 800, 800, 400, 100, 100, 0, 600, 0.0])
    late, some, known = (forecast.ahead(rates, share) for share in (0, 0.25, 1))
    assert late.tolist() == [0, 0, 800, 800, 800, 600, 250, 0, 100, 0], "what the last 200 ms were, or else the next"
    assert known.tolist() == [0, 0, 800, 600, 250, 100, 100, 0, 600, 0], "what the next 200 ms are"
    assert some == pytest.approx(late + 0.25 * (known - late))


def test_forecasts_differ_in_nothing_but_what_they_know():
    specs = {share: forecast.schedule(PLAN, {"rates": received(37_500, 12_500)}, 10_000, share) for share in (0, 1)}
    assert specs[0]["stations"]["fast"][8] == specs[1]["stations"]["fast"][8] == pytest.approx(375_000 * 0.03, rel=0.01)
    assert specs[0]["stations"]["fast"][20] < 0.6 * specs[1]["stations"]["fast"][20], "the other one has just left"
    settings = play.Settings(exporter=play.HERE / "oracle.py", tree=play.bundle.TREE)
    keys = {play.key(play.Cell("judge", "fading", method(f"cubic-fq+{act}"), 1001), settings) for act in FORECASTS}
    assert len(keys) == 3
