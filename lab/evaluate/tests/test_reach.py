"""Every line that was asked of learning: the page says what the command prints, the command what the results say."""
import json
import re

import pytest
from evaluate import reach, results, verdict
from evaluate.methods import method


@pytest.fixture(scope="module")
def found() -> list[reach.Line]:
    return reach.lines()


def test_the_page_is_what_the_command_prints(found, capsys, monkeypatch):
    monkeypatch.setattr(reach, "lines", lambda: found)
    monkeypatch.setattr(reach.sys, "argv", ["reach"])
    assert reach.main() == 0
    page = reach.PAGE.read_text().split(reach.BEGIN, 1)[1].split(reach.END, 1)[0]
    assert page.strip() == capsys.readouterr().out.strip(), "lab/evaluate/reach --page"


def test_every_miss_has_an_experiment_with_figures(found):
    assert len(found) == 15
    for line in found:
        assert line.met or len(re.findall(r"\d", line.why)) >= 4 or line.why.startswith("As above"), line.asked


def test_lines_are_of_the_committed_figures(found):
    """Against the tables that reports print, and the models' file, read in another way."""
    by = {line.asked: line for line in found}
    aims = (reach.RESULTS / "ablation/table.md").read_text().split("## Aims", 1)[1].split("\n## ", 1)[0]
    reached = [row.count("| yes |") for row in aims.splitlines() if row.startswith("| 80 % of the oracle's gain")]
    share = next(line for asked, line in by.items() if asked.startswith("80 %"))
    assert share.measured.startswith(f"{sum(reached)} of {len(reached)};") and not share.met
    harmed = re.search(r"cubic-fq\+oal: (\d+ of \d+) do", aims)[1]
    assert by["no station loses more than 10 % of its goodput beyond chance, over FQ-CoDel"].measured.startswith(harmed)
    models = next(iter(json.loads((reach.TRAINED / "corpus-models.json").read_text())["splits"].values()))["models"]
    cheap = [name for name in models if name.startswith(("best", "two", "pers"))]
    assert max(cheap, key=lambda name: models[name]["before_ap"]) == reach.RULE and len(cheap) == 5
    times = models["corpus"]["before_ap"] / models[reach.RULE]["before_ap"]
    assert f"{times:.2f} ×" in found[0].measured and found[0].met == (times >= 1.5)


def test_a_line_is_met_only_by_what_is_measured(monkeypatch):
    """Cells in which the model halves every p95 delay: the line that asks for it is met."""
    read = results.Results.read

    def better(folder):
        r = read(folder)
        for cell, one in r.found.items():
            if cell.method in (method("cubic-fq+oal"), method("cubic-fifo+oal")):
                one["cell"]["delay_p95_ms"] *= 0.5
        return r

    monkeypatch.setattr(reach.Results, "read", better)
    over, behind, *others = reach.controlling()
    assert over.met and behind.met and over.measured.startswith("12 of 12;") and not any(o.met for o in others)


def test_what_is_missed_is_the_command_that_says_so(found):
    fifo = results.Results.read(reach.RESULTS / "fifo")
    which = method("cubic-fifo+oal")
    drops = next(line for line in found if "new flow" in line.asked)
    for name in fifo.scenarios:
        if c := verdict.change(fifo, name, which, which.baseline, "first_second_drops"):
            assert f"{name} " in drops.measured
            assert (f"{name} " in drops.why) == (c.value > reach.DROPS - 1)
