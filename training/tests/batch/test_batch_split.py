"""No item is judged by a model that saw its like: not the item, not its label window, not its AP's minute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oal_training.batch import split
from oal_training.errors import TrainingError
from oal_training.stored.items import Items
from sklearn.tree import DecisionTreeClassifier

MINUTE_US = 60_000_000


def several_aps(items, n=3):
    """The same items as those of n APs, a few milliseconds apart."""
    every = [replace(items, group=np.full(len(items), f"ap-{i}"), ts_us=items.ts_us + 1000 * i) for i in range(n)]
    joined = {
        k: np.concatenate([getattr(e, k) for e in every]) for k in ("x", "group", "ts_us", "y", "now", "loss_now")
    }
    return replace(items, **joined)


@pytest.mark.parametrize("kind", ["time", "group", "group_time"])
def test_no_ap_minute_is_on_both_sides(learning, kind):
    items = several_aps(learning)
    ap_minutes = list(zip(items.group.tolist(), (items.ts_us // MINUTE_US).tolist()))
    found = split.folds(items, split.SplitSpec(kind, folds=3))
    assert len(found) == {"time": 3, "group": 9, "group_time": 9}[kind]
    judged = np.concatenate([fold.test for fold in found])
    assert len(judged) == len(set(judged.tolist())), "an item is judged twice"
    for fold in found:
        assert not {ap_minutes[i] for i in fold.train} & {ap_minutes[i] for i in fold.test}


@pytest.mark.parametrize("kind", ["time", "group_time"])
def test_every_label_trained_on_was_settled_before_the_first_item_judged(learning, kind):
    for items in (
        (learning, learning[:400]) if kind == "time" else (several_aps(learning),)
    ):  # 40 s of items are cut at whole seconds
        for fold in split.folds(items, split.SplitSpec(kind, folds=2)):
            label_ends = items.ts_us[fold.train] + items.horizon_us + items.label_window_us
            assert label_ends.max() <= items.ts_us[fold.test].min()


def test_leave_ap_out_trains_on_no_item_of_the_aps_judged(learning):
    items = several_aps(learning, 5)
    for fold in split.folds(items, split.SplitSpec("group", groups=2)):
        assert not set(items.group[fold.train]) & set(items.group[fold.test])


def one_channel(n_aps: int = 4, seconds: int = 600) -> Items:
    """Items of really different APs on one channel: each has levels of its own, and all see a number that tells which
    second it is, as a shared medium does. What comes true is drawn anew each second, for all of them: nothing foretells
    it.
    """
    rng = np.random.default_rng(3)
    second = np.repeat(np.arange(seconds), 10)
    air, truth = rng.integers(0, 1 << 20, seconds), rng.integers(0, 2, seconds) * 3
    x, group = [], []
    for ap in range(n_aps):
        own = rng.normal(1000 * ap, 10 * (ap + 1), (len(second), 2))
        x.append(np.column_stack([own, air[second]]))
        group += [f"ap-{ap}"] * len(second)
    y = np.tile(truth[second], n_aps)
    return Items(
        x=np.concatenate(x),
        names=("own1", "own2", "air"),
        group=np.array(group),
        ts_us=np.tile(np.arange(len(second)) * 100_000, n_aps) + 1_700_000_000_000_000,
        y=y,
        now=np.zeros(len(y), np.int64),
        loss_now=np.zeros(len(y)),
        classes=("Good", "Acceptable", "Poor", "Bad"),
        congested_from=2,
        horizon_us=200_000,
        label_window_us=1_000_000,
    )


def test_what_others_saw_in_the_same_seconds_is_not_learned_from():
    items = one_channel()
    right, n = 0, 0
    for fold in split.folds(items, split.SplitSpec("group", groups=4, folds=3)):
        train, test = items[fold.train], items[fold.test]
        assert not set(train.groups) & set(test.groups)
        for begin in (test.ts_us.min(), test.ts_us.max()):
            assert np.abs(train.ts_us - begin).min() >= items.embargo_us + 5_000_000
        tree = DecisionTreeClassifier(min_samples_leaf=5).fit(train.x, train.y)
        right, n = right + int((tree.predict(test.x) == test.y).sum()), n + len(test)
    assert n == len(items) and right / n < 0.65, "the answer is in the others' items of the same second"


def test_calibration_is_learned_on_later_items(learning):
    early, late = split.tail(learning)
    assert learning.ts_us[early].max() + learning.embargo_us <= learning.ts_us[late].min()
    early, late = split.tail(several_aps(learning), by="group")
    assert len(early) and len(late)


def test_the_way_of_splitting_is_named(learning):
    assert "1.2 s between (horizon + label window), cut at whole 60 s" in split.name(learning, split.SplitSpec("time"))
    assert "cut at whole 1 s" in split.name(learning[:300], split.SplitSpec("time"))


def test_what_cannot_be_split_is_refused(learning):
    with pytest.raises(TrainingError, match="items of one AP cannot be split by AP"):
        split.folds(learning, split.SplitSpec("group"))
    with pytest.raises(TrainingError, match="too few for 4 folds by time"):
        split.folds(learning[:20], split.SplitSpec("time"))
    with pytest.raises(TrainingError, match="random"):
        split.SplitSpec("random")
