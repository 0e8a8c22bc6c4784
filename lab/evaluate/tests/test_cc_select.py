"""What the page of cc-select says is what the committed figures say, and those are what the committed sessions give."""
import json
import pathlib

import numpy as np
import pytest
from grid import held_out, judge, kept, paths, report, table
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


def test_the_tables_are_what_the_figures_give(judged):
    assert (RESULTS / "table.md").read_text() == report.page(judged)


def test_the_page_has_every_aim_with_its_verdict(judged):
    page = PAGE.read_text()
    for row in report.aims(judged)[1:]:
        assert "| " + " | ".join(row) + " |" in page, row[0]


@pytest.mark.parametrize("of", ["speed", "queue"])
def test_the_page_has_what_each_start_and_each_kind_of_trees_brings(judged, of):
    page = PAGE.read_text()
    for rows in (report.starts(judged[of]), report.models(judged[of])):
        for row in rows[1:]:
            assert "| " + " | ".join(row) + " |" in page, (of, row[0])
