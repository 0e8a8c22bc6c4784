"""What a policy must show: read, played in which cells, and judged, by figures made here."""
import sys

import pytest
import yaml
from evaluate import aims, play, results, spread
from evaluate.aims import Aim, AimError, Limit
from evaluate.methods import POLICIES, method

MARK, PLAIN = method("cubic_ecn-fq+mark"), method("cubic-fq")


def kept(ratios: dict[str, list[float]], figure: str = "queueing_p95_ms", base: float = 100.0) -> results.Results:
    """The baseline at 100 in every seed, the method at so many times that, by scenario."""
    found = {}
    for name, of in ratios.items():
        for n, ratio in enumerate(of):
            for which, value in ((PLAIN, base), (MARK, base * ratio)):
                flows = [{"kind": "long", "station": "a", "goodput_mbps": value, "delay_mean_ms": 1, "jitter_ms": 1}]
                found[play.Cell("judge", name, which, 1001 + n)] = {"cell": {figure: value}, "flows": flows,
                                                                    "cost": {"cpu_s": 1.0}, "made_of": {}}
    return results.Results(list(found), found, {})


def aim(*limits: Limit, baseline=PLAIN, where=("constant",)) -> Aim:
    return Aim("wait", "less", MARK, baseline, limits, "judge", where)


HALF = Limit("queueing_p95_ms", at_most=0.5)


@pytest.mark.parametrize(("ratios", "said"), [
    ([0.4, 0.41, 0.42, 0.4], "met, surely"), ([0.2, 0.7, 0.3, 0.6], "met"),
    ([0.3, 0.8, 0.5, 0.6], "missed, within chance"), ([0.8, 0.81, 0.79, 0.8], "missed")])
def test_a_limit_is_met_by_the_mean_and_surely_by_the_whole_interval(ratios, said):
    found, = aims.judge(kept({"constant": ratios}), aim(HALF))
    assert found.said == said and found.found.value == pytest.approx(sum(ratios) / 4) and found.found.runs == 4


def test_an_aim_is_met_only_if_what_must_hold_with_it_does():
    r = kept({"constant": [0.4, 0.41, 0.42]})
    both = aims.judge(r, aim(HALF, Limit("queueing_p95_ms", at_least=0.98)))
    assert [v.said for v in both] == ["met, surely", "missed"] and aims.verdict_of(both) == "missed"
    assert aims.verdict_of(aims.judge(r, aim(HALF, Limit("jain_ecn", at_least=0.9)))) == "not played"
    assert aims.verdict_of(both[:1]) == "met, surely"
    assert aims.verdict_of(aims.judge(kept({"constant": [0.4]}), aim(HALF))) == "not judged: one seed"


def test_a_ratio_is_the_mean_over_scenarios_and_a_value_that_of_their_means():
    r = kept({"constant": [0.4, 0.4], "web": [0.8, 0.8]})
    assert aims.judge(r, aim(HALF, where=("constant", "web")))[0].found.value == pytest.approx(0.6)
    value, = aims.judge(r, aim(Limit("queueing_p95_ms", at_least=50), baseline=None, where=("constant", "web")))
    assert value.found.value == pytest.approx(60) and value.said.startswith("met")


def test_the_tables_name_each_aim_its_scenarios_and_whom_it_costs(tmp_path):
    r = kept({"constant": [0.4, 0.42], "web": [0.8, 0.81]})
    many = [aim(HALF, where=("constant", "web")), Aim("later", "x", MARK, None, (HALF,), "", (), open="nobody did")]
    page = aims.write(r, many, tmp_path, "mark")
    head, first, later = aims.rows(r, many)
    assert dict(zip(head, first))["by scenario"].startswith("constant 0.410 [") and first[-1] == "missed"
    assert later[-1] == "open: nobody did"
    (harmed,) = aims.harm(r, many)[1:]
    assert harmed[:4] == ["cubic_ecn-fq+mark", "cubic-fq", "2", "2"], "a station that has 0.4 of its goodput is harmed"
    assert "missed" in (tmp_path / "table.md").read_text() and "<table>" in page.read_text()
    again = results.Results.read(tmp_path)
    assert aims.rows(again, many) == aims.rows(r, many), "what is kept says the same"


def test_a_limit_may_be_of_the_difference():
    limit = aims.Limit("jain_goodput", more_by=0.05)
    assert limit.said == "≥ +0.05" and limit.met(0.06) and not limit.met(0.04)
    pairs = [({1: 3.0, 2: 5.0, 3: 9.0}, {1: 1.0, 2: 2.0}), ({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0})]
    found = spread.mean_difference(pairs)
    assert found.value == 1.75 and found.runs == 2, "(2 + 1) / 2 and (3 + 1) / 2; seed 3 has no partner"


def test_the_figures_of_uploads_are_shown_where_the_file_asks_for_them():
    found, seeds, shown = aims.load("uplink-cap")
    assert seeds >= 10 and "up_rtt_p95_ms" in shown and aims.load("mark")[2] == aims.SHOWN
    assert [aim.name for aim in found if any(limit.more_by for limit in aim.limits)] == ["fairness"]


def test_cells_are_each_baseline_and_method_once_seed_by_seed():
    found, seeds, _ = aims.load("mark")
    cells = aims.cells(found, 2)
    assert seeds >= 10 and len(cells) == len(set(cells)) and {c.seed for c in cells[:len(cells) // 2]} == {1001}
    assert [aim.name for aim in found] == [
        "wait", "throughput", "own", "wait-half", "l4s", "dctcp", "dctcp-1ms", "windows", "fifo", "bbr",
        "others", "harmless", "quic", "prediction"]
    assert not any(c.method.act == "mark-ahead" for c in cells), "what is open is not played"


@pytest.mark.parametrize(("change", "complaint"), [
    ({"figure": None}, "needs figure"), ({"wish": 1}, "unknown key wish"), ({"at_least": 1}, "one of at_most, "),
    ({"at_most": None}, "one of at_most, "), ({"method": "tahoe-fq"}, "no method tahoe-fq"),
    ({"scenarios": ["moon"]}, "no scenario moon"), ({"baseline": "cubic-fq+lean"}, "no longer played"),
    ({"at_most": None, "more_by": 1, "baseline": None}, "more_by needs a baseline")])
def test_a_file_that_says_no_aim_is_refused_with_the_place(tmp_path, change, complaint):
    given = {"name": "wait", "asks": "less", "method": "cubic_ecn-fq+mark", "baseline": "cubic-fq",
             "figure": "queueing_p95_ms", "at_most": 0.5} | change
    given = {key: value for key, value in given.items() if value is not None}
    (tmp_path / "mark").mkdir()
    (tmp_path / "mark/evaluate.yaml").write_text(yaml.safe_dump(
        {"judge": {"set": "judge", "scenarios": ["constant"], "seeds": 10}, "aims": [given]}))
    with pytest.raises(AimError, match=complaint) as found:
        aims.load("mark", tmp_path)
    assert "policies/mark/evaluate.yaml: aim wait: " in str(found.value)


def test_a_scenario_is_judged_in_one_set_alone(tmp_path):
    """Results are told apart by the scenario's name."""
    one = {"name": "a", "asks": "x", "method": "cubic-fq", "figure": "jain_goodput", "at_least": 0.5}
    (tmp_path / "mark").mkdir()
    (tmp_path / "mark/evaluate.yaml").write_text(yaml.safe_dump(
        {"judge": {"set": "judge", "scenarios": ["constant"], "seeds": 10}, "aims": [one, one | {"set": "tune"}]}))
    with pytest.raises(AimError, match="constant is of the sets judge and tune"):
        aims.load("mark", tmp_path)


def test_a_policy_without_aims_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["aims", "rwnd-fair"])
    assert aims.main() == 2 and "needs `aims`" in capsys.readouterr().err
    with pytest.raises(AimError, match="no policies/nobody"):
        aims.load("nobody", POLICIES)
