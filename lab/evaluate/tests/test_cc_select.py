"""What the page of cc-select says is what the committed figures say, and those are what the committed sessions give."""
import json
import pathlib

import numpy as np
import pytest
from evaluate import aims, results
from grid import harm, held_out, judge, kept, paths, report, table, wifi, wifi_more
from oal_training.cc_select import plain
from oal_training.cc_select.statistics import ALL
from oal_training.cc_select.utility import Utility

ROOT = pathlib.Path(__file__).resolve().parents[3]
RESULTS = kept.FILE.parent
PAGE = ROOT / "policies/cc-select/README.md"
GRID = paths.load()


@pytest.fixture(scope="module")
def judged():
    return json.loads((RESULTS / "judged.json").read_text())


@pytest.fixture(scope="module")
def speed():
    return table.table(kept.read(), GRID["congestion_controls"], Utility(**GRID["utilities"]["speed"]))


def words(path: pathlib.Path) -> str:
    return " ".join(path.read_text().split())


def test_every_path_of_the_grid_was_played(speed, judged):
    assert set(speed.paths.index) == {p["name"] for p in paths.paths(GRID)}
    assert judged["sessions"] == speed.worth.size and judged["conditions"] == speed.paths.condition.nunique()


def test_figures_without_trees_are_what_the_sessions_give(speed, judged):
    boot = judge.Bootstrap.of(speed.paths.condition.to_numpy())
    now = judge.swapped(speed.worth)
    assert judge.winners(speed) == judged["speed"]["winners"]
    for s, cc in enumerate(speed.algorithms):
        said = judged["speed"]["starts"][cc]
        gain = lambda worth, s=s: (worth - now[:, s]).mean(axis=1)
        assert judge.percent(boot, gain(judge.hindsight(speed))) == pytest.approx(said["possible"], abs=1e-3)
        assert judge.percent(boot, gain(judge.fixed(speed))) == pytest.approx(said["fixed"], abs=1e-3)


def test_what_trees_bring_is_what_fitting_them_again_gives(speed, judged):
    """Of one seed and one start; ties of splits may fall otherwise on another machine."""
    start = speed.algorithms.index(judge.START)
    fold = held_out.folds(speed.paths.condition.to_numpy(), 0)
    chosen = held_out.choices(speed, "gains", fold, starts=[start])
    real = (judge.of_choice(speed, chosen) - judge.swapped(speed.worth))[:, start].mean()
    assert 100 * np.expm1(real) == pytest.approx(judged["speed"]["by_seed"][0], abs=0.5)


def test_committed_trees_see_statistics_of_a_session_and_say_an_algorithm(speed):
    """They were fitted on these sessions: far more right than wrong there."""
    model = json.loads((RESULTS / "trees.json").read_text())["speed"]
    start, now = speed.algorithms.index(judge.START), judge.swapped(speed.worth)
    gains = [now[p, model["algorithms"].index(
        plain.choose(model, judge.START, dict(zip(ALL, speed.statistics[p, start, 0])))), 0] - now[p, start, 0]
        for p in range(len(now))]
    assert set(model["trees"]) == set(GRID["congestion_controls"]) and np.mean(gains) > 0


def test_what_was_played_again_is_what_its_sessions_give(judged):
    wanted = {}
    for row in judged["harm"]["paths"]:
        wanted.setdefault(row["path"], []).append(row["cc"])
    assert len(wanted) == judged["harm"]["doubtful"]
    assert harm.judged(kept.read(RESULTS / "harm.parquet"), wanted) == judged["harm"]["paths"]


def test_the_tables_are_what_the_figures_give(judged):
    assert (RESULTS / "table.md").read_text() == report.page(judged)


def test_the_page_has_every_aim_with_its_verdict(judged):
    page = PAGE.read_text()
    for row in report.aims(judged)[1:]:
        assert "| " + " | ".join(row) + " |" in page, row[0]


def test_the_page_says_what_a_connect_costs():
    """Of `make -C ap-exporter bench-connect`, paired, on the machine of the committed result."""
    of = {f["name"]: f for f in json.loads((RESULTS / "connect.json").read_text())}
    cost = {name: f"+{f['value']:.2f} µs [{f['low']:.2f}, {f['high']:.2f}]" for name, f in of.items()}
    worst, page = of["cc_connect_both_4096"], words(PAGE)
    assert worst["high"] <= 50 and worst["value"] == max(f["value"] for f in of.values())
    for said in (f"both ends choose | ≤ 50 µs | {cost['cc_connect_both_4096']} | met, surely |",
                 f"without it: {worst['without']:.0f} µs over loopback", f"{cost['cc_connect_1']} with 1 prefix",
                 f"{cost['cc_connect_4096']} with 4,096"):
        assert said in page, said
    for file, said in (("host-agent.md", f"takes {worst['value']:.1f} µs longer to begin"),
                       ("figures.md", f"{worst['value']:.2f} µs on {worst['without']:.0f} µs")):
        assert said in words(ROOT / "docs" / file), file


def test_the_page_says_what_it_is_worth(speed, judged):
    """The words of its first chapter."""
    page, s, j, q = words(PAGE), report.signed, judged["speed"], judged["queue"]
    low, high, cubic = report.short_queues(speed)
    for said in (
            f"trees bring {s(j['starts']['cubic']['gains']['real'])}, BBR without any tree"
            f" {s(j['starts']['cubic']['fixed'])}",
            f"within 2 % of the best on {100 * report.near(speed, 'bbr'):.0f} % of paths",
            f"add to that is {s(j['rivals']['all']['best fixed'])}",
            f"BBR has {low:.0f} to {high:.0f} Mbit/s, CUBIC {cubic:.0f} or more",
            f"Over FQ-CoDel they lose {s(j['rivals']['queue fq_codel']['bbr'])}",
            f"no lesson had it is {s(judged['splits']['rate_mbps']['over best fixed'])}",
            f"that none had {s(judged['splits']['delay_ms']['over best fixed'])}",
            f"worse than with BBR for all, {s(j['lives']['20']['model over best fixed'])}",
            f"they are {s(j['lives']['20']['model over bandit'])}",
            f"choosing pays**: {s(q['rivals']['all']['best fixed'])} over the best algorithm for all,"
            f" {s(q['lives']['20']['model over best fixed'])} in 20 sessions",
            f"Vegas is best on {100 * q['winners']['vegas']:.0f} % of paths then, BBR on"
            f" {100 * q['winners']['bbr']:.0f} %"):
        assert said in page, said


def test_the_page_says_why_gains_are_far_from_the_papers(speed):
    where = (speed.paths.rate_mbps == 100) & (speed.paths.delay_ms == 100) & (speed.paths.loss == 0.01)
    of = {cc: speed.speed_mbps[where, n].mean(axis=1) for n, cc in enumerate(speed.algorithms)}
    assert (f"CUBIC gets about {of['cubic'].mean():.0f} of 100 Mbit/s, BBR {of['bbr'].min():.0f} to"
            f" {of['bbr'].max():.0f}") in words(PAGE)


@pytest.mark.parametrize("of", ["speed", "queue"])
def test_the_page_has_what_each_start_and_each_kind_of_trees_brings(judged, of):
    page = PAGE.read_text()
    for rows in (report.starts(judged[of]), report.models(judged[of])):
        for row in rows[1:]:
            assert "| " + " | ".join(row) + " |" in page, (of, row[0])


WIFI = RESULTS.with_name("cc-select-wifi")
FITTED = ("With and without", "With more candidates")  # tables whose trees are fitted anew


@pytest.fixture(scope="module")
def behind():
    return wifi.whole(results.Results.read(WIFI))


def test_choices_behind_access_points_are_what_the_sessions_give(behind):
    said = (WIFI / wifi.PAGE).read_text()
    for heading, rows in wifi.tables(behind).items():
        assert f"## {heading}\n" in said
        if not heading.startswith(FITTED):
            assert report.markdown(rows) in said, heading


def test_the_page_has_every_choice_behind_access_points():
    page = PAGE.read_text()
    for line in (WIFI / wifi.PAGE).read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            assert line in page, line


def test_the_access_points_figures_are_dropped(behind):
    """They are offered only where they add by a whole interval, on scenarios that no lesson had."""
    assert len(behind["speed"]["scenarios"]) > 1
    for utility in GRID["utilities"]:
        for start in wifi.STARTS:
            added = behind[utility]["last hop"]["scenario"][start]["added"]
            assert wifi.kept(added).endswith("dropped"), (utility, start)


def sentences(behind: dict) -> list[str]:
    s, speed, price = report.signed, behind["speed"], behind["queue"]
    trees, priced = (j["committed"]["cubic"]["all"] for j in (speed, price))
    added = [j["last hop"]["scenario"]["cubic"]["added"] for j in (speed, price)]
    more = [j["candidates"][queue]["trees"] for j in (speed, price) for queue in wifi.QUEUES]
    return [
        f"BBR for all is worth {s(speed['fixed']['all']['bbr'])} over CUBIC for all",
        f"the trees bring {s(trees['over start'])} over staying with CUBIC and {s(trees['over best fixed'])} over the"
        " best algorithm for all",
        f"Vegas for all is worth {s(price['fixed']['fifo']['vegas'])} behind a FIFO and"
        f" {s(price['fixed']['fq']['vegas'])} over FQ-CoDel, over CUBIC for all",
        f"the trees, which learned on a wire, are worth {s(priced['over best fixed'])} against the best algorithm for"
        " all",
        f"added {s(added[0])} for speed and {s(added[1])} with the price",
        f"add to trees {s(more[0])} behind a FIFO and {s(more[1])} over FQ-CoDel for speed, {s(more[2])} and"
        f" {s(more[3])} with the price"
    ]


def test_the_page_says_what_choosing_is_worth_behind_access_points(behind):
    for said in sentences(behind):
        assert said in words(PAGE), said


def test_the_page_says_what_a_choice_costs_the_server_beside_it():
    r, named = results.Results.read(WIFI), {aim.name: aim for aim in aims.load("cc-select")[0]}
    took_s = [one["cost"]["cpu_s"] for one in r.found.values()]
    assert f"and these took {sum(took_s) / 60:.0f} minutes" in words(PAGE)
    kept = {name: aims.judge(r, named[f"plain-{name}"])[0].found.value for name in wifi.QUEUES}
    assert (f"keeps {100 * kept['fifo']:.0f} % of its throughput behind a FIFO, and {100 * kept['fq']:.0f} % over"
            " FQ-CoDel") in words(PAGE)
    assert 0.3 < kept["fifo"] < 0.37
    for page in (PAGE, ROOT / "README.md", ROOT / "docs/host-agent.md"):
        assert "keeps a third of its throughput" in words(page), page
    assert f"over FQ-CoDel {100 * kept['fq']:.0f} %" in words(ROOT / "docs/host-agent.md")


@pytest.fixture(scope="module")
def elsewhere():
    """BBR for all in scenarios that were not played for this policy."""
    return results.Results.read(wifi_more.EARLIER), results.Results.read(WIFI)


def test_the_page_has_bbr_for_all_in_other_scenarios_as_the_cells_give_it(elsewhere):
    said, page = (WIFI / wifi_more.PAGE).read_text(), PAGE.read_text()
    assert said == wifi_more.page(wifi_more.tables(*elsewhere))
    for line in said.splitlines():
        assert line.startswith("#") or line in page, line


def test_the_page_says_what_bbr_for_all_is_worth_in_other_scenarios(elsewhere):
    r, page, s = elsewhere[0], words(PAGE), report.signed
    each = {q: [wifi_more.over(r, (name,), (q,)) for name in wifi_more.SCENARIOS] for q in wifi.QUEUES}
    assert all(speed[1] <= 0 for rows in each.values() for speed, _ in rows)
    speed = wifi_more.over(r, wifi_more.SCENARIOS, wifi.QUEUES)[0]
    priced = wifi_more.over(r, wifi_more.SCENARIOS, ("fq",))[1]
    behind_fifo = sorted(price[0] for _, price in each["fifo"])
    lost, chance, sure = wifi_more.harmed(r, wifi_more.SCENARIOS, "fq")
    fifo = wifi_more.harmed(r, wifi_more.SCENARIOS, "fifo")
    assert float(fifo[1]) > int(fifo[0].split()[0]) / 2 and float(chance) < int(sure)
    for said in (f"BBR for all is worth {s(speed)} for speed", f"it is worth {s(priced)} over FQ-CoDel",
                 f"from {behind_fifo[0]:+.1f} to {behind_fifo[-1]:+.1f} %".replace("-", "−"),
                 f"Over FQ-CoDel {lost} stations lose more than a tenth, {sure} of them beyond chance; behind a FIFO"
                 f" {fifo[0].split()[0]}, most of them by chance"):
        assert said in page, said
    seeds = {len(r.values(name, wifi_more.method(f"{cc}-{q}"), "throughput_mbps")) for name in wifi_more.SCENARIOS
             for cc in ("bbr", "cubic") for q in wifi.QUEUES}
    assert seeds == {6} and "six seeds" in page
