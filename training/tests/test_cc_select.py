"""Trees from a session to the next one's congestion control."""
import numpy as np
import pandas as pd
import pytest
from oal_training.cc_select import plain, statistics, trees
from oal_training.cc_select.utility import Utility

STEADY, LOSSY, START = 0, 1, 0


def lesson(conditions: int = 60, seed: int = 0) -> trees.Lesson:
    """Two kinds of paths, told by the first statistic: where it is high the second algorithm has twice the speed, else
    3 % less. The second statistic says nothing.
    """
    rng = np.random.default_rng(seed)
    condition = np.repeat(np.arange(conditions), 2)
    lossy = condition % 2
    worth = np.column_stack([np.zeros(len(lossy)), np.where(lossy, np.log(2), np.log(0.97))])
    seen = np.column_stack([lossy + rng.normal(0, 0.05, len(lossy)), rng.random(len(lossy))])
    return trees.Lesson(START, seen, worth + rng.normal(0, 0.005, worth.shape), condition, lossy[:, None])


@pytest.mark.parametrize("kind", trees.KINDS)
def test_each_kind_finds_what_a_statistic_tells(kind):
    learned, asked = lesson(), lesson(seed=1)
    chosen = trees.fitted(kind, learned).choose(asked.statistics)
    lossy = asked.quality[:, 0] == 1
    assert (chosen[lossy] == 1).all() and trees.brings(chosen, asked).mean() > np.log(1.3)
    if kind != "anchored":
        assert (chosen[~lossy] == 0).all()


def test_a_small_predicted_gain_changes_nothing():
    predicted = np.log([[1, 1.04, 1.0], [1, 1.06, 1.0], [1, 0.5, 0.9]])
    assert list(trees.kept(predicted, 0)) == [0, 1, 0]
    assert list(trees.kept(predicted, 2)) == [2, 1, 0]


def test_anchored_leaves_the_best_for_all_only_for_enough():
    of = lesson()
    model = trees.Anchored(8).fit(of)
    assert model.anchor == 1
    assert (model.choose(of.statistics) == 1).all(), "3 % more do not outweigh a wrong guess"
    assert set(trees.Anchored(8, least_gain=np.log(1.01)).fit(of).choose(of.statistics)) == {0, 1}


def test_quality_that_the_table_lacks_is_judged_by_its_neighbours():
    model = trees.Quality(4).fit(lesson())
    model.known = np.array([[0], [5]])
    model.trees = [type("Says", (), {"predict": staticmethod(lambda statistics: np.array([4, 1]))})]
    model.gains = np.array([[0.0, -1.0], [0.0, 1.0]])
    assert list(model.choose(np.zeros((2, 2)))) == [1, 0]


def test_plain_trees_choose_as_the_fitted_ones():
    learned, asked = lesson(), lesson(seed=2)
    model = trees.Gains(16).fit(learned)
    of = {"algorithms": ["a", "b"], "least_gain": trees.LEAST_GAIN, "trees": {"a": plain.nodes(model, ["x", "y"])}}
    chosen = [plain.choose(of, "a", dict(zip("xy", row))) for row in asked.statistics]
    assert chosen == ["ab"[n] for n in model.choose(asked.statistics)] and set(chosen) == {"a", "b"}
    assert plain.choose(of, "c", {}) == "c"


def sessions(**changed) -> pd.DataFrame:
    row = {"seen_us": 10_000_000, "bytes_acked": 12_500_000, "segs_in": 5000, "data_segs_out": 10_000,
           "retrans_pkts": 100, "delivered_pkts": 9900, "dsack_dups": 0, "reorderings": 0, "reordering_pkts": 3,
           "min_rtt_us": 20_000, "rtt_us_mean": 30_000.0, "rtt_us_p95": 40_000, "rttvar_us_mean": 2000.0,
           "delivery_rate_bytes_p95": 1_250_000, "delivery_rate_bytes_mean": 1_200_000.0, "cwnd_pkts_mean": 30.0,
           "mss_bytes": 1448}
    return pd.DataFrame([{**row, **changed}])


def test_statistics_do_not_depend_on_how_long_a_session_was():
    long = {"seen_us": 20_000_000, "bytes_acked": 25_000_000, "segs_in": 10_000, "data_segs_out": 20_000,
            "retrans_pkts": 200}
    assert statistics.statistics(sessions()).equals(statistics.statistics(sessions(**long)))
    assert not statistics.statistics(sessions(data_segs_out=0, retrans_pkts=0)).isna().any(axis=None)


def test_utility_is_speed_less_what_its_queue_and_repetitions_cost():
    speed = np.log(10.0)
    assert Utility().of(sessions())[0] == pytest.approx(speed)
    assert Utility(per_s=5).of(sessions())[0] == pytest.approx(speed - 5 * 0.02)
    assert Utility(per_ratio=2).of(sessions())[0] == pytest.approx(speed - 2 * 0.01)
    assert np.isfinite(Utility().of(sessions(bytes_acked=0))[0])
