"""Two experiments on what bounds a model: features of later, and fewer runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oal_training.batch import limits
from oal_training.batch.models import ModelSpec
from oal_training.errors import TrainingError


@pytest.fixture
def telltale(learning):
    """Items of two runs whose only feature says at each instant what the label of 0.3 s before was."""
    n = 1500
    rng = np.random.default_rng(1)
    y = np.where(rng.random(n) < 0.2, 3, 0)
    ts = np.arange(n, dtype=np.int64) * 100_000
    told = np.concatenate([[0, 0, 0], y[:-3]]).astype(float)
    one = replace(learning[np.arange(n)], x=told[:, None], names=("told",), y=y, now=np.zeros(n, np.int64), ts_us=ts,
                  loss_now=np.zeros(n))
    names = np.array(["train01a-1", "train02a-1", "validation01a-1"])
    parts = [replace(one, group=np.full(n, name)) for name in names]
    whole = {k: np.concatenate([getattr(p, k) for p in parts]) for k in ("x", "y", "now", "ts_us", "group", "loss_now")}
    return replace(one, **whole)


def test_features_of_later_are_those_of_the_same_access_point(telltale):
    moved, there = limits.later(telltale, 3, 100_000)
    assert np.array_equal(moved.x[there, 0], telltale.y[there]) and np.array_equal(moved.y, telltale.y)
    assert not there[telltale.ts_us > telltale.ts_us.max() - 300_000].any() and np.isnan(moved.x[~there]).all()


def test_what_is_told_late_shows_in_looking_ahead_and_nowhere_else(telltale):
    spec = ModelSpec("decision_tree", {"max_leaf_nodes": 4})
    found = limits.run(telltale, spec, log=lambda _line: None)
    by_time = {row["later_s"]: row["onset_ap"] for row in found["look_ahead"]}
    assert by_time[0.3] == 1.0 and max(by_time[0.0], by_time[1.0]) < 0.4
    assert [row["ap_runs"] for row in found["runs"]] == [1, 1, 1, 2]
    assert "| 0.3 " in limits.text(found, spec).replace("|   ", "| ").replace("|  ", "| ")


def test_items_of_no_corpus_are_refused(learning):
    with pytest.raises(TrainingError, match="lab/corpus/run --where"):
        limits.run(learning, ModelSpec("decision_tree"), log=lambda _line: None)
