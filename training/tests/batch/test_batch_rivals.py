"""Rules without fitting, items before the first drop, lead times, and the corpus's way of splitting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from oal_training import rules
from oal_training.batch import adaptive, before, corpus, rivals, scores, split, validation
from oal_training.batch.scores import Predictions
from oal_training.stored import parquet
from sklearn.metrics import average_precision_score

CAPTURES = Path(__file__).resolve().parents[3] / "lab" / "captures"
quiet = lambda _line: None


def test_the_best_column_is_found_with_its_way_round_and_missing_values_are_the_least_likely():
    rng = np.random.default_rng(1)
    positive = rng.random(500) < 0.2
    x = rng.normal(size=(500, 3))
    x[:, 1] -= 2 * positive
    x[::7, 1] = np.nan
    column = rules.best_columns(x, positive)[0]
    assert (column.at, column.sign) == (1, -1)
    assert np.isneginf(column.score(x)[::7]).all()
    quality = rules.average_precisions(rules.known(x), positive)
    assert np.isclose(quality[0, 0], average_precision_score(positive, x[:, 0]))
    assert rules.best_columns(x, np.zeros(500, bool)) == []


def test_two_thresholds_find_what_needs_both():
    rng = np.random.default_rng(2)
    x = rng.random((3000, 4))
    positive = (x[:, 0] > 0.6) & (x[:, 2] > 0.6)
    rule = rules.best_thresholds(x, positive, rules.best_columns(x, positive, 4))
    assert {c.at for c in rule.columns} == {0, 2} and rule.share[1, 1] > 0.9 > 0.1 > rule.share[0, 1]
    assert average_precision_score(positive, rule.score(x)) > 0.9
    assert rules.best_thresholds(x, np.zeros(3000, bool), []) is None


def test_a_rule_is_chosen_on_the_training_items_and_keeps_the_order_of_its_column(learning):
    early, late = learning[:3000], learning[3200:]
    rule = rivals.Rule(rivals.COLUMN, 4).fit(early)
    value = late.x[:, early.names.index(rule.said.lstrip("−"))]
    c = late.candidates
    assert np.isclose(
        scores.average_precision(late.congested[c], rule.score(late)[c]),
        scores.average_precision(late.congested[c], rule.rule.score(late.x)[c]),
    )
    order = np.argsort(rule.score(late) * rule.rule.sign, kind="stable")
    assert (np.diff(value[order]) >= 0).all()
    assert (rule.predict(late) == rule.base.predict(late)).all(), "its classes are those of persistence"
    pair = rivals.Rule(rivals.THRESHOLDS, 4).fit(early)
    assert np.allclose(pair.proba(late).sum(axis=1), 1) and len(np.unique(pair.score(late))) <= 4


def test_items_after_a_drop_are_left_out_and_an_episode_begins_with_a_drop_after_a_calm_second(learning):
    calm = before.not_yet_dropped(learning)
    drops = learning.x[:, learning.names.index("qdisc_drops_1s")]
    assert (drops[calm] == 0).all() and (drops[~calm] > 0).any()
    block = validation.blocks(learning, 30)
    found = before.episodes(learning, block)
    assert len(found.at) == len(found.block) > 10
    first = found.at[:, 0]
    assert calm[first].all() and (~calm[first + 1]).all() and (found.lead_s[:, 0] < 0.35).all()


def test_an_alarm_leads_as_long_as_it_stands_without_a_break():
    at, lead_s = np.array([[4, 3, 2], [9, 8, -1]]), np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0]])
    episodes = before.Episodes(at, lead_s, np.zeros(2, int))
    alarm = np.zeros(10, bool)
    assert (episodes.lead(alarm) == 0).all()
    alarm[[4, 2, 8]] = True
    assert episodes.lead(alarm).tolist() == [0.1, 0.0], "one broke off, the other was over before the drop"
    alarm[[3, 9]] = True
    assert episodes.lead(alarm).tolist() == [0.3, 0.2]
    assert before.alarms(np.zeros(100), np.arange(100) < 50, 0.2).sum() == 10, "ties are broken by lot"


def test_every_model_raises_as_many_alarms_and_who_knows_the_drop_foresees_it(learning):
    block = validation.blocks(learning, 30)
    episodes = before.episodes(learning, block)
    knows = np.zeros(len(learning))
    for row, lead in zip(episodes.at, episodes.lead_s):
        knows[row[(row >= 0) & (lead <= 0.55)]] = 1
    c = learning.candidates & before.not_yet_dropped(learning)
    made = Predictions(learning.y, learning.y, np.eye(4)[learning.y], knows, learning.candidates, block, 2, c, episodes)
    blind = replace(made, score=np.zeros(len(learning)))
    mine, its = scores.score(made), scores.score(blind)
    assert mine.foreseen > 0.9 and mine.lead_s >= 0.3 and its.lead_s == 0 and mine.calibration_error == 0
    drawn = scores.bootstrap({"a": made, "b": blind}, 100)
    for i, figure in enumerate(scores.FIGURES):
        low, high = scores.interval(drawn["a"][:, i])
        assert low <= getattr(mine, figure) <= high, figure
    assert scores.interval(drawn["a"][:, 6] - drawn["b"][:, 6])[0] > 0


def runs_of(learning):
    """Two runs of two access points each, an hour apart, as three sites of the corpus name theirs."""
    few = learning[:1500]
    every = []
    for i, name in enumerate(("train01a", "train01a-1", "validation01a", "test01a")):
        every.append(replace(few, group=np.full(1500, name), ts_us=few.ts_us + (i + 1) // 2 * 3_600_000_000 + i))
    columns = ("x", "group", "ts_us", "y", "now", "loss_now")
    joined = {k: np.concatenate([getattr(e, k) for e in every]) for k in columns}
    return replace(few, **joined)


def test_access_points_of_one_run_are_never_on_both_sides(learning):
    items = runs_of(learning)
    assert split.runs(items, 5_000_000) == [["train01a"], ["train01a-1", "validation01a"], ["test01a"]]
    found = split.folds(items, split.SplitSpec("run", groups=3))
    assert len(found) == 3 and "3 runs with 4 AP-runs" in split.name(items, split.SplitSpec("run", groups=3))
    for fold in found:
        here, there = items.ts_us[fold.test], items.ts_us[fold.train]
        assert not set(items.group[fold.test]) & set(items.group[fold.train])
        assert ((there < here.min() - 5_000_000) | (there > here.max() + 5_000_000)).all()
    assert np.concatenate([f.test for f in found]).size == len(items)
    validation_part = split.by_part(items, "validation")
    assert set(items.group[validation_part.train]) == {"train01a", "train01a-1"}
    last = split.by_part(items, "test")
    assert set(items.group[last.train]) == {"train01a", "train01a-1", "validation01a"}
    assert set(items.group[last.test]) == {"test01a"}


def test_files_of_several_runs_keep_their_access_points_apart(tmp_path, learning):
    columns, metadata = parquet.read_columns(CAPTURES / "learning.items.parquet")
    some = {k: v[:400] for k, v in columns.items()}
    for name in ("one", "two"):
        parquet.write(tmp_path / "deep" / f"{name}.items.parquet", some, {})
    _, _, items = corpus.read([tmp_path], quiet)
    assert items.groups == ["one", "two"] and len(items) <= 800 and "2 files" in items.source["file"]


def test_the_adaptive_forest_learns_an_item_only_when_its_label_has_settled(learning):
    few = learning[:160]
    fold = split.Fold(np.arange(0, 100), np.arange(100, 160))
    klass, proba = adaptive.predict(few, [fold], most=50)
    assert np.allclose(proba[100:].sum(axis=1), 1) and (klass[:100] == 0).all()
    lied = replace(few, y=np.where(np.arange(160) >= 150, 3 - few.y, few.y))
    assert (adaptive.predict(lied, [fold], most=50)[1] == proba).all(), "labels within 1.2 s of the end are never read"
