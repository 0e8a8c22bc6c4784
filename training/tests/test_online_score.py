"""Scores and drift detector against scikit-learn's and river's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oal_training.online.drift import PageHinkley
from oal_training.online.score import average_precision, episodes, macro_f1, onsets, score
from oal_training.online.settings import Drift
from sklearn.metrics import average_precision_score, f1_score


@given(st.lists(st.tuples(st.integers(0, 10_000), st.booleans()), min_size=2, max_size=60))
def test_average_precision_is_scikit_learns(pairs):
    values, positive = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    ours = average_precision(values, positive)
    if positive.all() or not positive.any():
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(average_precision_score(positive, values))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60))
def test_macro_f1_is_scikit_learns_over_the_classes_there_are(pairs):
    predicted, truth = np.array([p[0] for p in pairs], np.uint8), np.array([p[1] for p in pairs], np.uint8)
    assert macro_f1(predicted, truth) == pytest.approx(
        f1_score(truth, predicted, labels=sorted(set(truth.tolist())), average="macro", zero_division=0)
    )


def test_onset_is_judged_among_items_without_congestion():
    now, truth = np.array([0, 1, 2, 3, 0]), np.array([2, 1, 3, 0, 3])
    assert onsets(now, truth).tolist() == [True, False, False, False, True]
    # Of the three calm items both onsets have the higher scores; what the congested ones have does not count.
    assert score(truth, np.array([900, 100, 0, 10_000, 800]), now, truth).onset_ap == 1.0
    assert episodes(np.array([0, 1, 2, 50, 51]), np.array([True, True, False, True, True]), 10) == 2
    assert episodes(np.array([0, 1]), np.array([False, False]), 10) == 0


def test_page_hinkley_is_rivers():
    from river.drift import PageHinkley as Rivers

    rng = np.random.default_rng(0)
    for level in (0.1, 0.3, 0.7):
        ours = PageHinkley(Drift(delta=0.02, threshold=3.0, min_seconds=20, alarm_s=1))
        theirs = Rivers(min_instances=20, delta=0.02, threshold=3.0, alpha=1.0, mode="up")
        errors = np.clip(np.concatenate([rng.normal(0.1, 0.1, 300), rng.normal(level, 0.1, 300)]), 0, 1)
        alarms = [i for i, e in enumerate(errors) if ours.update(float(e))]
        expected = []
        for i, e in enumerate(errors):
            theirs.update(float(e))
            if theirs.drift_detected:
                expected.append(i)
        assert alarms == expected
        assert bool(alarms) == (level > 0.1)
