"""No item is judged by a model that saw its like: not the item, not its label window, not its AP's minute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oal_training.batch import split
from oal_training.errors import TrainingError

MINUTE_US = 60_000_000


def several_aps(items, n=3):
    """The same items as those of n APs, a few milliseconds apart."""
    every = [replace(items, group=np.full(len(items), f"ap-{i}"), ts_us=items.ts_us + 1000 * i) for i in range(n)]
    joined = {
        k: np.concatenate([getattr(e, k) for e in every]) for k in ("x", "group", "ts_us", "y", "now", "loss_now")
    }
    return replace(items, **joined)


@pytest.mark.parametrize("kind", split.KINDS)
def test_no_ap_minute_is_on_both_sides(learning, kind):
    items = several_aps(learning)
    ap_minutes = list(zip(items.group.tolist(), (items.ts_us // MINUTE_US).tolist()))
    found = split.folds(items, split.SplitSpec(kind, folds=3))
    assert len(found) == {"time": 3, "group": 3, "group_time": 9}[kind]
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
