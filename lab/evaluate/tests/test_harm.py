"""Why stations lose: their part of the air beside an equal one, on scenarios whose answer is known."""
import pytest
from evaluate import harm, scenarios
from evaluate.methods import method
from evaluate.play import Cell
from evaluate.results import FLOW, MADE_OF, Results

GIVEN = {"duration_s": 14, "aps": 1, "wired": {"delay_ms": 20},
         "stations": [{"name": "near", "rate_mbps": 40}, {"name": "far", "rate_mbps": 10}],
         "flows": [{"station": "near"}, {"station": "far"}]}


def plan(**more) -> dict:
    return scenarios.plan({**GIVEN, **more}, "x", method("cubic-fq"), 1)


def test_an_equal_part_is_of_those_who_have_a_flow_then():
    both = harm.links(plan(), 2.0)
    assert {name: (equal, always) for name, (_, _, equal, always) in both.items()} == {"near": (0.5, True),
                                                                                      "far": (0.5, True)}
    assert both["near"][1] == pytest.approx(4 * both["far"][1])
    half = harm.links(plan(flows=[{"station": "near"}, {"station": "far", "start_s": 8}]), 2.0)
    assert half["near"][2:] == (pytest.approx(0.75), True) and half["far"][2:] == (pytest.approx(0.25), False)
    assert list(harm.links(plan(flows=[{"station": "far"}]), 2.0)) == ["far"], "no flow, no part"


def results(by_method: dict[str, dict[str, float]]) -> Results:
    found = {}
    for name, rates in by_method.items():
        for seed in (1, 2):
            flows = [dict.fromkeys(FLOW) | {"station": s, "kind": "long", "goodput_mbps": rate + seed / 100}
                     for s, rate in rates.items()]
            found[Cell("judge", "x", method(name), seed)] = {"cell": {}, "flows": flows, "cost": {"cpu_s": 1.0},
                                                            "made_of": dict.fromkeys(MADE_OF)}
    return Results(list(found), found, {})


def test_who_had_more_than_an_equal_part_must_lose_to_equal_air(monkeypatch):
    monkeypatch.setattr(scenarios, "load", lambda _set, _name: GIVEN)
    equal_rates = results({"cubic-fq": {"near": 8, "far": 8}, "cubic-fq+queue": {"near": 20, "far": 5}})
    near, far = harm.stations(equal_rates, method("cubic-fq+queue"))
    assert (near.name, near.slowest, far.slowest, far.lasting) == ("near", False, True, True)
    assert far.over_equal == pytest.approx(1.6, rel=0.01) and near.over_equal == pytest.approx(0.4, rel=0.01)
    assert far.equal_air == pytest.approx(far.change.value, abs=0.01) and far.harmed and not near.harmed
    of = harm.explained([near, far])
    assert (of["stations"], of["over_equal"], of["harmed"], of["harmed_over_equal"], of["harmed_slowest"]) == (
        2, 1, 1, 1, 1)
