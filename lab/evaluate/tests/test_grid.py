"""The grid of policies/cc-select: its paths, what is made of sessions, and that the guest's paths are what they say."""
import dataclasses

import numpy as np
import pandas as pd
import pytest
from grid import held_out, judge, life, paths, play, report, table
from oal_training.cc_select.statistics import ALL
from oal_training.cc_select.utility import Utility

GRID = paths.load()


def test_the_grid_is_whole_but_for_the_sparse_rate():
    every = paths.paths(GRID)
    dense = [p for p in every if p["rate_mbps"] != GRID["sparse"]["rate_mbps"]]
    axes = [len(GRID[name]) for name in ("losses", "delays_ms", "jitter_ratios", "queues")]
    assert len(dense) == 3 * np.prod(axes) and len(every) - len(dense) == np.prod(axes) / GRID["sparse"]["of"]
    assert len({p["name"] for p in every}) == len(every)


def test_of_the_sparse_rate_each_delay_and_jitter_is_there_once_and_every_loss():
    sparse = [p for p in paths.paths(GRID) if p["rate_mbps"] == GRID["sparse"]["rate_mbps"] and p["queue"] == "fifo"]
    assert len({(p["delay_ms"], p["jitter_ms"]) for p in sparse}) == len(sparse)
    assert {p["loss"] for p in sparse} == set(GRID["losses"])


def test_a_drop_tail_queue_holds_a_product_and_never_less_than_its_packets():
    of = {p["name"]: p for p in paths.paths(GRID)}
    assert of["100M-0.001-25ms-0-fifo"]["queue_bytes"] == 312_500
    assert of["1M-0.001-1ms-0-fifo"]["queue_bytes"] == GRID["least_queue_pkts"] * paths.PACKET_BYTES


def test_the_order_is_the_same_each_time_and_mixed():
    order = paths.in_order(paths.paths(GRID))
    assert order == paths.in_order(list(reversed(order)))
    assert {p["rate_mbps"] for p in order[:24]} >= {1, 10, 100}


def sessions(worths: np.ndarray) -> pd.DataFrame:
    """path × algorithm × repetition of log speeds → rows as the guest leaves them."""
    out = []
    for (p, a, r), log in np.ndenumerate(worths):
        out.append({
            "path": f"p{p}", "cc": GRID["congestion_controls"][a], "repetition": r, "condition": f"c{p // 2}",
            "queue": ("fifo", "fq_codel")[p % 2], "rate_mbps": 10, "loss": 0.001, "delay_ms": 10 + p // 2,
            "jitter_ms": 0.0, "seen_us": 10_000_000, "bytes_acked": np.exp(log) * 1e7 / 8, "segs_in": 1000,
            "data_segs_out": 1000, "retrans_pkts": a, "dsack_dups": 0, "reorderings": 0, "reordering_pkts": 3,
            "min_rtt_us": 20_000 + p, "rtt_us_mean": 30_000.0, "rtt_us_p95": 40_000, "rttvar_us_mean": 2000.0,
            "delivery_rate_bytes_p95": 1_250_000, "delivery_rate_bytes_mean": 1_200_000.0, "cwnd_pkts_mean": 30.0,
            "mss_bytes": 1448
        })
    return pd.DataFrame(out)


@pytest.fixture
def luck():
    """Algorithms that are all alike: what differs between sessions is chance."""
    worths = np.random.default_rng(0).normal(1, 0.1, (60, len(GRID["congestion_controls"]), 2))
    return table.table(sessions(worths), GRID["congestion_controls"], Utility())


def test_a_path_without_one_of_its_sessions_is_left_out():
    rows = sessions(np.ones((4, 6, 2)))
    assert list(table.table(rows.drop(5), GRID["congestion_controls"], Utility()).paths.index) == ["p1", "p2", "p3"]
    with pytest.raises(ValueError, match="twice"):
        table.table(pd.concat([rows, rows[:1]]), GRID["congestion_controls"], Utility())


def test_both_queues_of_a_condition_are_in_the_same_fold(luck):
    fold = held_out.folds(luck.paths.condition.to_numpy(), seed=3)
    assert len(np.unique(fold)) == held_out.FOLDS
    assert luck.paths.assign(fold=fold).groupby("condition").fold.nunique().eq(1).all()


def test_luck_of_one_repetition_is_no_gain_in_the_other(luck):
    boot = judge.Bootstrap.of(luck.paths.condition.to_numpy())
    gain = lambda worth: (worth - judge.swapped(luck.worth)[:, 0]).mean(axis=1)
    assert judge.percent(boot, gain(judge.hindsight(luck)))[1] > 5  # what nobody can have
    low, high = judge.percent(boot, gain(judge.tried(luck)))[1:]
    assert low < 0 < high


def test_models_choose_by_one_repetition_and_are_judged_by_the_other(luck):
    """A statistic that says how lucky its own session was is worth nothing."""
    told = luck.statistics.copy()
    told[..., ALL.index("retrans_ratio")] = luck.worth
    fold = held_out.folds(luck.paths.condition.to_numpy(), 0)
    chosen = held_out.choices(dataclasses.replace(luck, statistics=told), "gains", fold)
    boot = judge.Bootstrap.of(luck.paths.condition.to_numpy())
    found = judge.percent(boot, (judge.of_choice(luck, chosen)[:, 0] - judge.swapped(luck.worth)[:, 0]).mean(axis=1))
    assert found[1] < 1


def test_lives_of_a_model_that_is_right_and_of_a_bandit():
    """The second algorithm has twice the speed: a model knows that after a session, a bandit finds it by chance."""
    worths = np.zeros((20, 6, 2))
    worths[:, 1] = np.log(2)
    of = table.table(sessions(worths), GRID["congestion_controls"], Utility())
    right = np.ones((20, 6, 2), int)
    model = np.exp(life.by_model(of, right, 0, 30).mean(axis=0))
    bandit = np.exp(life.by_bandit(of, 0, 30).mean(axis=0))
    assert model[0] == pytest.approx(1) and model[1:].min() > 1.9
    assert bandit[1] < 1.2 and bandit[-1] > bandit[1]


def test_a_verdict_is_sure_where_its_interval_is():
    assert [report.verdict(f, 0) for f in ([1, 0.5, 2], [1, -1, 2], [-1, -2, 1], [-1, -2, -0.5])] == [
        "met, surely", "met", "missed", "missed, surely"]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Sessions of CUBIC over two paths of the real guest, by path."""
    some = [{"rate_mbps": 10, "delay_ms": 20, "jitter_ms": 0, **path, **paths.queue(GRID, path["queue"], 10, 20)}
            for path in ({"name": "queue", "loss": 0, "queue": "fifo"}, {"name": "loss", "loss": 0.05,
                                                                        "queue": "fq_codel"})]
    file = tmp_path_factory.mktemp("grid") / "0-test.jsonl"
    play.one((file, some, {**GRID, "congestion_controls": ["cubic"]}, 0))
    rows = pd.read_json(file, lines=True)
    return {row.path: row for row in rows.itertuples()}


def test_the_guests_path_has_the_grids_rate_delay_and_queue(played):
    row = played["queue"]
    assert 9.3 < row.bytes_acked * 8 / row.seen_us < 9.6
    assert 20_000 <= row.min_rtt_us < 20_500
    full_us = paths.queue(GRID, "fifo", 10, 20)["queue_bytes"] * 8 / 10
    assert 0.8 * full_us < row.rtt_us_p95 - 20_000 < 1.1 * full_us
    assert row.rwnd_limited_us == row.sndbuf_limited_us == 0


def test_the_guests_path_loses_what_the_grid_says(played):
    assert 0.035 < played["loss"].retrans_pkts / played["loss"].data_segs_out < 0.075
