"""Intervals, changes, shares and limits, of figures whose answers are known."""
import math
import pathlib

import numpy as np
import pytest
import yaml
from evaluate import bundle, paper, scenarios, spread, table, verdict
from evaluate.methods import ABLATIONS, ALL, PAST, POLICIES, Method, MethodError, method, to_play
from evaluate.play import Cell, Settings, overrides
from evaluate.results import FLOW, MADE_OF, Results, fairness
from oal_schema.bundle import decode, split_signed


class Fixed:
    """Results by (method, figure) → values by seed."""

    def __init__(self, values: dict):
        self.known, self.scenarios, self.methods = values, ["x"], [
            method(name) for name in dict.fromkeys(m for m, _ in values)
        ]

    def values(self, scenario: str, which: Method, figure: str) -> dict[int, float]:
        return dict(enumerate(self.known.get((which.name, figure), [])))


def test_mean_has_students_interval():
    f = spread.mean([1.0, 2.0, 3.0])
    assert f.value == 2 and f.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-5)
    assert math.isnan(spread.mean([4.0]).low) and spread.mean([]) is None


def test_a_change_is_of_the_seeds_that_both_have():
    c = spread.change({1: 110.0, 2: 110.0, 3: 999.0}, {1: 100.0, 2: 100.0})
    assert c.value == pytest.approx(0.1) and c.low == pytest.approx(0.1) == c.high and c.runs == 2
    assert spread.change({1: 1.0}, {2: 1.0}) is None and spread.change({1: 1.0}, {1: 0.0}) is None
    wide = spread.change({n: 100.0 + 10 * n for n in range(6)}, {n: 100.0 for n in range(6)})
    assert wide.low < 0.25 < wide.high
    # Equal to Student's interval where the baseline is constant: no resampling of six makes it narrower.
    assert wide.half == pytest.approx(spread.mean([10.0 * n for n in range(6)]).half / 100)


def test_a_change_is_paired_by_seed():
    """Seeds that differ tenfold say nothing against a method that takes a tenth off each; zeros are figures too."""
    before = {n: 10.0**n for n in range(5)}
    paired = spread.change({n: 0.9 * value for n, value in before.items()}, before)
    assert paired.value == pytest.approx(-0.1) and paired.half == pytest.approx(0, abs=1e-12)
    zeros = spread.change({1: 0.0, 2: 0.0, 3: 1.0}, {1: 2.0, 2: 1.0, 3: 3.0})
    assert zeros.value == pytest.approx(-5 / 6) and zeros.low < -5 / 6 < zeros.high < 0


def test_the_interval_covers_what_it_says():
    """Of 2,000 experiments of six seeds, the true change lies outside in about one of twenty."""
    draw = np.random.default_rng(3)
    outside = 0
    for _ in range(2000):
        level = draw.normal(100, 20, 6)
        new, old = 0.8 * level + draw.normal(0, 5, 6), level + draw.normal(0, 5, 6)
        c = spread.change(dict(enumerate(new)), dict(enumerate(old)))
        outside += not c.low <= -0.2 <= c.high
    assert 70 <= outside <= 130


def test_a_mean_over_scenarios_takes_a_seed_as_one_draw():
    """What one seed does to all scenarios does not average out; a seed that one scenario lacks is left out."""
    old = {n: 100.0 for n in range(4)}
    new = {n: 90.0 + n for n in range(4)}
    one, many = spread.change(new, old), spread.mean_change([(new, old)] * 9)
    assert many.value == pytest.approx(one.value) and many.half == pytest.approx(one.half)
    assert spread.mean_change([(new, old), ({0: 50.0, 1: 50.0}, old)]).runs == 2
    assert spread.mean_change([({}, old)]) is None


def flows(rates: dict[str, float]) -> list[dict]:
    return [dict.fromkeys(FLOW) | {"station": name, "kind": "long", "goodput_mbps": rate}
            for name, rate in rates.items()]


def results(by_method: dict[str, list[dict[str, float]]]) -> Results:
    """Of one scenario: by method, and seed, the stations' goodputs."""
    found = {}
    for name, seeds in by_method.items():
        for seed, rates in enumerate(seeds):
            cell = dict.fromkeys(table.PARTS) | {"throughput_mbps": sum(rates.values()), "jain_goodput": 1.0}
            found[Cell("judge", "x", method(name), seed)] = {
                "cell": cell, "flows": flows(rates), "cost": {"cpu_s": 1.0},
                "made_of": dict.fromkeys(MADE_OF) | {"policy": "p" if "+" in name else None}
            }
    return Results(list(found), found, {})


def test_a_station_that_pays_for_the_others_is_found():
    r = results({"cubic-fq": [{"near": 10, "far": 4}, {"near": 11, "far": 4}, {"near": 12, "far": 4}],
                 "cubic-fq+oal": [{"near": 14, "far": 3}, {"near": 14, "far": 3}, {"near": 16, "far": 3.1}]})
    worst, best = verdict.stations(r, method("cubic-fq+oal"), method("cubic-fq"))
    assert (worst.station, worst.harmed, worst.sure) == ("far", True, True)
    assert worst.change.value == pytest.approx(9.1 / 12 - 1)
    assert (best.station, best.harmed) == ("near", False)
    row = table.stations(r).splitlines()[-1]
    assert row.startswith("| cubic-fq+oal | 2 | 1 | 0.1 | 1 | 1 | far in x: -24.2 %")
    shaky = results({"cubic-fq": [{"far": 4}, {"far": 4}], "cubic-fq+oal": [{"far": 3.8}, {"far": 3}]})
    only, = verdict.stations(shaky, method("cubic-fq+oal"), method("cubic-fq"))
    assert only.harmed and not only.sure and not only.surely_harmed
    assert only.by_chance == pytest.approx(0.25, abs=0.01), "two seeds so far apart: a loss of 10 % is hardly news"
    assert worst.by_chance < 0.02


def test_what_the_model_adds_is_told_against_the_policy_without_it():
    r = results({name: [{"near": rate + seed} for seed in range(3)]
                 for name, rate in (("cubic-fq", 10), ("cubic-fq+oal", 12), ("cubic-fq+queue", 11))})
    text = table.ablation(r)
    assert "| x | cubic-fq+oal against cubic-fq+queue | **+8.3 % [" in text and "| **mean** |" in text
    assert "+tree" not in text, "what was not played has no row"
    del r.methods[-1]
    assert table.ablation(r) == ""


def test_ablations_are_numbers_over_the_policys_own():
    how = Settings(overrides=(("act_class", 3), ("confirm", 2)))
    of = lambda name: dict(overrides(Cell("judge", "x", method(name), 1), how))
    assert of("cubic-fq+oal") == {"act_class": 3, "confirm": 2}
    assert of("cubic-fq+queue") == {"act_class": 4, "confirm": 2, "link_follow_permille": 0}
    assert of("cubic-fq+link") == of("cubic-fq+queue") | {"link_follow_permille": 1000}
    assert method("cubic-fq+clamp").policy is None and method("cubic-fq").policy is None
    for name in ABLATIONS:  # the policy has such numbers, within their bounds
        bundle.read_policy(None, tuple(method(f"cubic-fq+{name}").policy.items()))


def test_a_method_whose_numbers_are_gone_is_reported_and_never_played():
    how = Settings()
    for act in PAST:
        assert method(f"cubic-fq+{act}").act == act and act not in {m.act for m in ALL}
        with pytest.raises(MethodError, match=f"cubic-fq.{act} is no longer played"):
            to_play(f"cubic-fq+{act}")
        with pytest.raises(MethodError, match="no longer played"):
            overrides(Cell("judge", "x", method(f"cubic-fq+{act}"), 1), how)
    assert to_play("cubic-fq+queue") == method("cubic-fq+queue")


def test_results_that_were_written_are_read(tmp_path):
    r = results({"cubic-fq": [{"near": 10}], "cubic-fq+oal": [{"near": 12}]})
    failed = Cell("judge", "x", method("bbr-fq"), 0)
    r.cells.append(failed)
    r.failures[failed] = "the guest fell over"
    r.write(tmp_path)
    again = Results.read(tmp_path)
    assert again.cells == r.cells and again.failures == r.failures and again.found == r.found


def test_share_of_the_oracles_gain_and_no_room():
    r = Fixed({("bbr-fq", "delay_mean_ms"): [100, 100], ("bbr-fq+oal", "delay_mean_ms"): [60, 60],
               ("bbr-fq+oracle", "delay_mean_ms"): [50, 50]})
    assert verdict.share_of_oracle(r, "x", method("bbr-fq+oal")) == pytest.approx(0.8)
    r.known["bbr-fq+oracle20", "delay_mean_ms"] = [20, 20]
    assert verdict.share_of_oracle(r, "x", method("bbr-fq+oal")) == pytest.approx(0.8), "its throughput is not known"
    for name, rate in (("bbr-fq", 10), ("bbr-fq+oracle", 10), ("bbr-fq+oracle20", 9.9)):
        r.known[name, "throughput_mbps"] = [rate, rate]
    assert verdict.share_of_oracle(r, "x", method("bbr-fq+oal")) == pytest.approx(0.5)
    r.known["bbr-fq+oracle20", "throughput_mbps"] = [9.5, 9.5]
    assert verdict.share_of_oracle(r, "x", method("bbr-fq+oal")) == pytest.approx(0.8), "that one costs too much"
    r.known["bbr-fq+oracle", "delay_mean_ms"] = [99, 99]
    assert verdict.share_of_oracle(r, "x", method("bbr-fq+oal")) is None


def test_limits_of_harm_are_marked_and_said_to_be_sure_or_not():
    r = Fixed({("bbr-fq", "throughput_mbps"): [10, 10, 10], ("bbr-fq+oal", "throughput_mbps"): [9, 9, 9],
               ("bbr-fq", "delay_p95_ms"): [100, 100, 100], ("bbr-fq+oal", "delay_p95_ms"): [80, 100, 150]})
    found = {h.figure: h.sure for h in verdict.harms(r, "x", method("bbr-fq+oal"))}
    assert found == {"throughput_mbps": True, "delay_p95_ms": False}
    text = table.gains(r)
    assert "**throughput**" in text and "**p95 delay (within chance)**" in text
    r.known["bbr-fq+oal", "throughput_mbps"] = [9.9, 9.9, 9.9]
    assert not [h for h in verdict.harms(r, "x", method("bbr-fq+oal")) if h.figure == "throughput_mbps"]


def test_names_of_methods():
    assert len(ALL) == 44 and all(method(m.name) == m for m in ALL)
    assert method("cubic-fq+oal").baseline.name == "cubic-fq"
    for wrong in ("tahoe-fq", "cubic-red", "cubic-fq+", "cubic", "bbr-fq+magic", ""):
        with pytest.raises(MethodError, match="no method"):
            method(wrong)


@pytest.mark.parametrize("policy, act", [("mark", "mark"), ("uplink-cap", "cap")])
def test_acts_of_other_policies_are_those_of_their_folders(policy, act):
    assert method(f"cubic-fq+{act}").of_policy == policy and method("cubic-fq+oal").of_policy == "rwnd-fair"
    said = yaml.safe_load((POLICIES / policy / "evaluate.yaml").read_text())
    for part, numbers in said["ablations"].items():
        assert method(f"cubic-fq+{act}-{part}").policy == numbers
    rivals = {"", *said["acts"], *(f"{act}-{part}" for part in said["ablations"])}  # what the file says that it plays
    for aim in said["aims"]:
        assert method(aim["method"]).of_policy == policy and method(aim.get("baseline", "cubic-fq")).act in rivals
    for control in said["controls"]:
        for queue in said["queues"]:
            assert method(f"{control}-{queue}").name == f"{control}-{queue}"


def test_marks_by_a_prediction_are_refused_where_no_model_predicts(tmp_path):
    """They would be played as marks without one."""
    with pytest.raises(bundle.BundleMistake, match="needs a class model"):
        bundle.make_other(tmp_path, "mark", None, (("mark_ahead", 1),))


def test_a_bundle_of_a_policy_without_a_model_has_none(tmp_path):
    file = bundle.make_other(tmp_path, "uplink-cap", None, (("cap_period_us", 10_000_000),))["bundle"]
    held = decode(split_signed(pathlib.Path(file).read_bytes())[0])
    assert (held.models, held.law.name, held.policy.control["cap_period_us"]) == ([], "backlog_cap", 10_000_000)


def test_a_method_says_what_senders_and_queue_are():
    said = lambda name: scenarios.plan({"stations": [{"name": "a"}], "flows": [{"station": "a"}]}, "x", method(name), 1)
    assert said("cubic-fq")["ecn"] is False and said("cubic_ecn-fq")["ecn"] is True
    assert [f["cc"] for f in said("cubic_ecn-fq")["flows"]] == ["cubic"]
    assert [(f["cc"], f["peer_cc"]) for f in said("dctcp-fq-ce5")["flows"]] == [("dctcp", "dctcp")]
    assert said("dctcp-fq-ce5")["ap"]["queue"]["ce_us"] == 5000
    assert said("cubic-fifo")["ap"]["queue"]["kind"] == "pfifo limit 123"
    assert said("cubic-cake-ack")["ap"]["queue"]["kind"] == "cake unlimited ack-filter"


def test_the_papers_own_terms_are_of_access_points_and_count_iterations():
    """Three access points: throughputs of an AP's flows add up, delays are means; a seed is an iteration."""
    def one(rates: tuple, delay: float) -> dict:
        flows = [{"kind": "long", "ap": ap, "goodput_mbps": rate, "delay_mean_ms": delay, "jitter_ms": 1.0}
                 for ap, rate in zip("aabc", rates)]
        return {"cell": {"congestion_loss_ratio": delay / 1000}, "flows": flows}

    ours, bbr = Method("cubic", "fq", "oal"), Method("bbr", "fq")
    found = {Cell("judge", "constant", ours, 1): one((1, 1, 2, 2), 50), Cell("judge", "constant", bbr, 1): one(
        (1, 1, 1, 0), 100), Cell("judge", "constant", ours, 2): one((1, 1, 2, 2), 50),
             Cell("judge", "constant", bbr, 2): one((1, 2, 3, 6), 100)}
    r = Results(list(found), found, {})
    throughput, delay, jitter, loss = paper.TERMS
    assert paper.values(r, "constant", ours, throughput) == {1: 2.0, 2: 2.0}
    assert paper.values(r, "constant", ours, throughput, jain=True)[1] == 1.0
    assert paper.values(r, "constant", bbr, throughput, jain=True)[1] == pytest.approx(9 / (3 * 5))
    assert paper.best(r, ["constant"], ours, bbr, throughput) == (1, 2)
    assert paper.best(r, ["constant"], ours, bbr, delay) == (2, 2) == paper.best(r, ["constant"], ours, bbr, loss)
    lines = {row[0]: row for row in paper.rows(r)}
    assert lines["delay"][1:4] == ["-30.0 %", "-26.0 %", "-50.0 % [-50.0, -50.0]"]
    assert lines["iterations better: throughput"][1:4] == ["7 of 10", "–", "1 of 2"]


def test_fairness_is_told_over_flows_stations_and_access_points():
    rows = [dict.fromkeys(FLOW) | {"station": s, "ap": ap, "kind": "long", "goodput_mbps": rate, "delay_mean_ms": 10.0}
            for s, ap, rate in (("a", 0, 1.0), ("a", 0, 1.0), ("b", 1, 2.0))]
    found = fairness(rows + [dict.fromkeys(FLOW) | {"kind": "short", "station": "a", "ap": 0, "goodput_mbps": 9.0}])
    assert found["jain_throughput_flow"] == pytest.approx(16 / (3 * 6))
    assert found["jain_throughput_station"] == found["jain_throughput_ap"] == pytest.approx(1)
    assert found["jain_delay_flow"] == pytest.approx(1) and found["jain_jitter_ap"] is None
    r = results({"cubic-fq": [{"near": 10, "far": 4}] * 2, "cubic-fq+oal": [{"near": 7, "far": 7}] * 2})
    assert "| cubic-fq+oal | **+18.4 % [+18, +18]**" in table.fairness(r)
