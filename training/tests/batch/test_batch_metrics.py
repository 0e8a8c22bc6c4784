"""Own figures against scikit-learn's and against cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oal_training.batch import persistence, scores
from oal_training.batch.scores import Predictions
from oal_training.macro_f1 import macro_f1
from oal_training.online import score as online
from sklearn.metrics import average_precision_score, brier_score_loss, confusion_matrix, precision_recall_fscore_support


def made(seed: int, n: int, k: int = 4, levels: int = 7) -> Predictions:
    rng = np.random.default_rng(seed)
    proba = rng.integers(0, levels, (n, k)) + 0.01  # few levels: many ties
    proba = proba / proba.sum(axis=1, keepdims=True)
    return Predictions(
        y=rng.integers(0, k, n),
        predicted=rng.integers(0, k, n),
        proba=proba,
        score=np.round(proba[:, 2:].sum(axis=1), 1),
        candidate=rng.random(n) < 0.6,
        block=np.arange(n) // 10,
        congested_from=2,
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 300))
def test_figures_are_those_of_scikit_learn(seed, n):
    p = made(seed, n)
    s = scores.score(p)
    assert (s.confusion == confusion_matrix(p.y, p.predicted, labels=range(4))).all()
    precision, recall, f1, support = precision_recall_fscore_support(p.y, p.predicted, labels=range(4), zero_division=0)
    assert np.allclose([s.precision, s.recall, s.f1, s.support], [precision, recall, f1, support])
    assert s.macro_f1 == pytest.approx(f1[support > 0].mean())
    onset = p.y[p.candidate] >= 2
    if 0 < onset.sum() < len(onset):
        assert s.onset_ap == pytest.approx(average_precision_score(onset, p.score[p.candidate]))
    else:
        assert np.isnan(s.onset_ap)
    if n > 1:
        assert s.brier == pytest.approx(brier_score_loss(p.y, p.proba, labels=range(4), scale_by_half=False))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31))
def test_weighted_average_precision_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    positive, score, weight = rng.random(80) < 0.3, np.round(rng.random(80), 1), rng.integers(0, 4, 80).astype(float)
    if 0 < (positive * weight).sum() < weight.sum():
        assert scores.average_precision(positive, score, weight) == pytest.approx(
            average_precision_score(positive, score, sample_weight=weight)
        )


def test_average_precision_by_hand():
    # thresholds .9: 1 of 1 is an onset, recall 1/2; .5 (a tie): 2 of 3, recall 1
    positive, score = np.array([True, False, True, False]), np.array([0.9, 0.5, 0.5, 0.1])
    assert scores.average_precision(positive, score) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert scores.average_precision(positive, np.ones(4)) == pytest.approx(0.5), "a constant score has the base rate"
    assert np.isnan(scores.average_precision(np.ones(4, bool), score))


def test_onset_is_judged_where_there_is_no_congestion_now():
    p = Predictions(
        y=np.array([2, 0, 3, 3]),
        predicted=np.array([2, 0, 3, 0]),
        proba=np.eye(4)[[2, 0, 3, 0]],
        score=np.array([1.0, 0, 1, 0]),
        candidate=np.array([True, True, False, False]),
        block=np.zeros(4, int),
        congested_from=2,
    )
    s = scores.score(p)
    assert (s.candidates, s.onsets, s.onset_rate, s.onset_ap) == (2, 1, 0.5, 1.0)


def test_macro_f1_is_one_figure_over_the_classes_that_occur_wherever_it_is_computed():
    """Bad is said once and never true: the batch part had 1/3 here, the online trainer 1/2."""
    y, predicted = np.array([0, 1]), np.array([0, 3])
    assert macro_f1(scores.confusion(y, predicted, 4)) == online.macro_f1(predicted, y) == pytest.approx(1 / 2)
    p = Predictions(y, predicted, np.eye(4)[predicted], np.zeros(2), np.ones(2, bool), np.arange(2), 2)
    assert scores.score(p).macro_f1 == pytest.approx(1 / 2)
    assert (scores.bootstrap({"a": p}, 20)["a"][:, 0] <= 1).all()
    assert macro_f1(scores.confusion(y, y, 4)) == 1.0
    assert np.isnan(macro_f1(np.zeros((4, 4)))) and np.isnan(online.macro_f1(y[:0], y[:0]))


def test_intervals_hold_the_figure_and_differences_are_paired():
    p = made(3, 2000)
    better = Predictions(
        p.y, np.where(np.arange(2000) % 3 == 0, p.y, p.predicted), p.proba, p.score, p.candidate, p.block, 2
    )
    drawn = scores.bootstrap({"a": p, "b": better, "again": p}, 200)
    for name, predictions in (("a", p), ("b", better)):
        low, high = scores.interval(drawn[name][:, 0])
        assert low < scores.score(predictions).macro_f1 < high
    assert np.array_equal(drawn["a"], drawn["again"], equal_nan=True)
    assert scores.interval(drawn["b"][:, 0] - drawn["a"][:, 0])[0] > 0
    assert all(np.isnan(scores.interval(np.full(10, np.nan))))


def test_persistence_takes_its_better_score(learning):
    model = persistence.Persistence(4).fit(learning)
    proba = model.proba(learning)
    assert (model.predict(learning) == learning.now).all()
    assert np.allclose(proba.sum(axis=1), 1)
    score, form = persistence.onset_score(learning, proba)
    c = learning.candidates
    onset = learning.congested[c]
    by_class = scores.average_precision(onset, proba[c][:, 2:].sum(axis=1))
    assert scores.average_precision(onset, score[c]) >= by_class
    assert form in ("class now", "loss ratio now")


def test_loss_now_is_the_ratio_of_the_window_that_ends_now(learning):
    at = {t: i for i, t in enumerate(learning.ts_us.tolist())}
    known = [(i, at[t]) for i, t in enumerate((learning.ts_us - learning.embargo_us).tolist()) if t in at]
    assert len(known) > 5000
    bounds = np.array([0.01, 0.05, 0.12])
    for i, before in known[::97]:
        assert learning.y[before] == learning.now[i], "the class of the window that ends now is class_now"
        assert np.searchsorted(bounds, learning.loss_now[i], side="right") == learning.now[i]
