"""What the project's README says of learning in control is what the committed results say, and those are what the
committed cells give.
"""
import pathlib
import re
import sys

import pytest
from evaluate import __main__ as command
from evaluate import harm, learned, results, spread, table, verdict
from evaluate.methods import method

ROOT = pathlib.Path(__file__).resolve().parents[3]
KEPT = ROOT / "lab/evaluate/results/ablation"
BEHIND_A_FIFO = ROOT / "lab/evaluate/results/fifo"
ONLINE, LEAN, FORECAST, NEWCOMERS, LINK = (ROOT / "lab/evaluate/results" / name
                                           for name in ("online", "lean", "forecast", "newcomers", "link"))


def section(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table below a heading, its two head rows left out; marks of emphasis taken off."""
    below = text.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    rows = [[cell.strip().replace("*", "").replace("−", "-") for cell in line.strip("|").split("|")]
            for line in below[below.index("|"):].split("\n\n")[0].splitlines()]
    return rows[2:]


def columns(row: list[str]) -> list[str]:
    """Throughput, mean, p95 delay, jitter, congestion loss and a new flow's first drops, of a row of `beside_paper`."""
    return [row[i] for i in (1, 2, 3, 5, 6, 8)]


def low(figure: str) -> int:
    return int(re.search(r"\[([-+]\d+),", figure)[1])


def high(figure: str) -> int:
    return int(re.search(r", ([-+]\d+)\]", figure)[1])


def test_readme_says_what_the_results_say():
    kept = (KEPT / "table.md").read_text()
    beside = {row[0]: columns(row) for row in section(kept, "Beside the paper")}
    added = next(row for row in section(kept, "What each part adds")
                 if row[:2] == ["mean", "cubic-fq+oal against cubic-fq+queue"])
    wanted = [beside["cubic-fq+queue"], beside["cubic-fq+oal"], [*added[2:7], added[8]], beside["cubic-fq+oracle"]]
    said = [row[1:] for row in section((ROOT / "README.md").read_text(), "What learning adds")]
    assert said[:4] == wanted


def test_readme_says_whom_it_costs():
    rows = {row[0]: row for row in section((KEPT / "table.md").read_text(), "Whom it costs")}
    page = " ".join((ROOT / "README.md").read_text().split())
    found = re.search(r"(\d+) of (\d+) stations of scenarios lose more than 10 % of their goodput \(([\d.]+) would by"
                      " chance", page)
    assert list(found.groups()) == [rows["cubic-fq+queue"][i] for i in (2, 1, 3)]
    oracle = rows["cubic-fq+oracle"]
    kept = results.Results.read(KEPT)
    mine, best = (harm.explained(harm.stations(kept, method(f"cubic-fq+{act}"))) for act in ("queue", "oracle"))
    assert (f"{mine['harmed_over_equal']} of these {mine['harmed']} had more than an equal part of their access point's"
            " air without control" in page)
    assert (f"The oracle, which divides the air equally by what really comes, harms {oracle[2]} of the same"
            f" {oracle[1]}, {best['harmed_over_equal']} of them such stations:" in page)
    beside = " ".join((ROOT / "lab/evaluate/README.md").read_text().split())
    assert (f"{mine['harmed_slowest']} of them the slowest of their access point. `harm.py` says why: shares divide air"
            f" equally, and without control {mine['over_equal']} of the {mine['stations']} had more than an equal part,"
            f" {mine['harmed_over_equal']} of the {mine['harmed']} among them; of the {best['harmed']} that the oracle"
            f" harms, {best['harmed_over_equal']} had") in beside
    assert [str(of["harmed"]) for of in (mine, best)] == [rows["cubic-fq+queue"][2], oracle[2]]


def test_the_page_says_what_the_results_behind_a_fifo_say():
    kept = (BEHIND_A_FIFO / "table.md").read_text()
    beside = {row[0]: columns(row) for row in section(kept, "Beside the paper")}
    added = next(row for row in section(kept, "What each part adds") if row[0] == "mean")
    aims = section(kept, "Aims")
    drops = [row[3] == "yes" for row in aims if row[0].startswith("a new flow behind a FIFO")]
    better = [row[3] == "yes" for row in aims if row[0].startswith("cubic-fifo+oal better than cubic-fifo+queue")]
    harmed = next(row[2] for row in aims if row[0].startswith("no station loses"))
    page = " ".join((ROOT / "lab/evaluate/README.md").read_text().split()).replace("−", "-")
    for words in (
        f"Control by the queue alone changes the mean delay by {beside['cubic-fifo+queue'][1]}.",
        f"changes the mean delay by {added[3]}, p95 by {added[4]} and congestion loss by {added[6]} of a small figure",
        f"drops in a new flow's first second: {added[8]},",
        f"at most a quarter of the drops in {sum(drops)} of {len(drops)} scenarios",
        f"{re.search(r'[0-9]+ of [0-9]+', harmed)[0]} stations of scenarios",
    ):
        assert words in page, words
    front = " ".join((ROOT / "README.md").read_text().split()).replace("−", "-")
    assert f"Behind a FIFO, 10 seeds too, the model takes off drops in a new flow's first second, {added[8]}," in front
    assert not any(better) and "in none of the 12 scenarios" in page and len(better) == 12


def test_the_policys_page_bounds_what_a_forecast_is_worth():
    r = results.Results.read(KEPT)
    oracle, queue = method("cubic-fq+oracle"), method("cubic-fq+queue")
    page = " ".join((ROOT / "policies/rwnd-fair/README.md").read_text().split()).replace("−", "-")
    for figure, words in (("delay_mean_ms", "changes the mean delay by {}, p95"), ("delay_p95_ms", "p95 by {}, drops"),
                          ("first_second_drops", "first second by {} and throughput"),
                          ("throughput_mbps", "throughput by {}. -")):
        assert words.format(table.interval(verdict.overall(r, oracle, queue, figure))) in page
    for scenario in ("fading", "swings", "stepped", "variable", "foreign", "constant", "web", "churn"):
        change = verdict.change(r, scenario, oracle, queue, "delay_p95_ms")
        assert f"{scenario} {table.interval(change)}" in page


def test_the_policys_page_says_what_a_forecast_gave_in_a_law_and_what_each_piece_adds():
    r, kept = results.Results.read(FORECAST), results.Results.read(KEPT)
    late, some, ahead, queue = (method(f"cubic-fq+{act}") for act in ("late", "forecast", "ahead", "queue"))
    page = " ".join((ROOT / "policies/rwnd-fair/README.md").read_text().split()).replace("−", "-")
    figures = ("throughput_mbps", "delay_mean_ms", "delay_p95_ms", "congestion_loss_ratio")
    of = lambda new, old, r=r: [table.interval(verdict.overall(r, new, old, f)) for f in figures]
    words = "throughput by {}, mean delay by {}, p95 by {} and congestion loss by {}"
    seeds = {3: "three"}.get(len(r.seeds), len(r.seeds))
    assert f"the seven scenarios in which feedback gets less than 80 % of the oracle's gain, {seeds} seeds" in page
    assert {*r.scenarios} == {name for name in kept.scenarios
                              if verdict.share_of_oracle(kept, name, method("cubic-fq+oal")) < 0.8}
    assert "the forecast changes " + words.format(*of(some, late)) in page
    assert "knowing it all, " + words.format(*of(ahead, late)) in page
    throughput, mean, p95, _ = of(late, queue)
    assert f"it changes mean delay by {mean}, p95 by {p95} and throughput by {throughput}:" in page
    behind = results.Results.read(ONLINE)
    online, committed = method("cubic-fifo+oal-online"), method("cubic-fifo+oal")
    for piece, new, old, of_which in (("`+forecast`)", some, late, r), ("`+oal`", method("cubic-fq+oal"), queue, kept),
                                      ("`+oal-online`, behind a FIFO", online, committed, behind)):
        throughput, _, p95, _ = of(new, old, of_which)
        assert f"{piece} | p95 delay {p95}, throughput {throughput} |" in page, piece
        assert low(p95) <= 0 <= high(p95), "the page says that no piece shows a gain"


def test_the_policys_page_says_what_following_links_gave():
    r, beside = results.Results.read(LINK), results.Results.read(FORECAST)
    link, queue = method("cubic-fq+link"), method("cubic-fq+queue")
    page = " ".join((ROOT / "policies/rwnd-fair/README.md").read_text().split()).replace("−", "-")
    moving = ("fading", "stepped", "swings", "variable")
    figures = ("throughput_mbps", "delay_mean_ms", "delay_p95_ms", "congestion_loss_ratio")

    def words(names):
        found = [spread.mean_change([(r.values(s, link, f), r.values(s, queue, f)) for s in names]) for f in figures]
        return "throughput by {}, mean delay by {}, p95 by {} and congestion loss by {}".format(
            *map(table.interval, found))

    assert r.scenarios == beside.scenarios and r.seeds == beside.seeds, "the same as `+late` has"
    assert "in fading, stepped, swings and variable it changes " + words(moving) in page
    assert "whose links stay, it changes " + words([s for s in r.scenarios if s not in moving]) in page
    assert f"In all {len(r.scenarios)}, {words(r.scenarios)}." in page
    lost = {m: verdict.stations(r, m, m.baseline) for m in (link, queue)}
    counts = [len(found) for found in lost.values()]
    assert counts[0] == counts[1]
    harmed, sure = ([sum(getattr(s, what) for s in lost[m]) for m in (link, queue)] for what in ("harmed", "sure"))
    assert (f"{harmed[0]} of {counts[0]} stations of scenarios lose more than a tenth of what they have without"
            f" control, {sure[0]} beyond chance; with `+queue` {harmed[1]} and {sure[1]}." in page)


def test_the_page_says_what_online_learning_and_leaning_shares_gave():
    page = " ".join((ROOT / "lab/evaluate/README.md").read_text().split()).replace("−", "-")
    online, lean = ((folder / "table.md").read_text() for folder in (ONLINE, LEAN))
    added = {row[0]: row for row in section(online, "What each part adds")
             if row[1] == "cubic-fifo+oal-online against cubic-fifo+oal"}
    web, churn = added["web"], added["churn"]
    assert (f"in web a mean delay of {web[3]}, congestion loss of {web[6]} and throughput of {web[2]}; in churn"
            f" {churn[3]}, {churn[6]} and {churn[2]}: nothing beyond chance" in page)
    assert all(low(figure) < 0 < high(figure) for row in (web, churn) for figure in (row[2], row[3], row[6]))
    context = learned.read(learned.KEPT)["contexts"]
    shipped = {name: sum(n > 0 for n in context[f"judge/{name}"]["shipped"].values())
               for name in ("web/cubic-fq", "churn/cubic-fq", "web/cubic-fifo", "churn/cubic-fifo")}
    assert shipped == {"web/cubic-fq": 0, "churn/cubic-fq": 0, "web/cubic-fifo": 3, "churn/cubic-fifo": 1}
    costs = {row[0]: row for row in section(lean, "Whom it costs")}
    leaned, equal = costs["cubic-fq+lean"], costs["cubic-fq+queue"]
    assert (f"{leaned[2]} of {leaned[1]} stations are harmed where it is {equal[2]} without, {leaned[4]} and {equal[4]}"
            f" beyond chance; Jain's index {leaned[7]} for {equal[7]}; throughput" in page)
    added = next(row for row in section(lean, "What each part adds") if row[0] == "mean")
    assert f"throughput {added[2]}. No mend" in page.replace("*", "")


@pytest.mark.parametrize("folder", [KEPT, BEHIND_A_FIFO, ONLINE, LEAN, FORECAST, NEWCOMERS, LINK],
                         ids=lambda folder: folder.name)
def test_the_committed_table_is_that_of_the_committed_cells(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "--from", str(folder), "--report", str(tmp_path)])
    assert command.main() in (0, None)
    tables = [(kept / "table.md").read_text().split("\n## ", 1)[1] for kept in (folder, tmp_path)]
    assert tables[0] == tables[1]
