"""Four ways to say a class from one model's probabilities, on items whose answer is known; and what the page says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from oal_training.batch import choosing, split
from oal_training.batch.models import ModelSpec

LEAF = ModelSpec("decision_tree", {"max_leaf_nodes": 12, "min_samples_leaf": 60})


def coins(learning, n: int = 2000):
    """A quarter of the items are Bad, by a chance that the one feature says and that is below a half; what is so now is
    so next in six of ten.
    """
    rng = np.random.default_rng(7)
    chance = rng.uniform(0, 0.4, n)
    y = np.where(rng.random(n) < chance, 3, 0)
    now = np.where(rng.random(n) < 0.6, y, 3 - y)
    ts = np.arange(n, dtype=np.int64) * 100_000
    return replace(learning[np.arange(n)], x=chance[:, None], names=("chance",), y=y, now=now, ts_us=ts,
                   loss_now=np.full(n, np.nan))


def test_weights_say_each_class_as_often_as_it_came():
    rng = np.random.default_rng(3)
    y = rng.choice(4, 6000, p=[0.6, 0.2, 0.15, 0.05])
    proba = np.array([0.6, 0.2, 0.15, 0.05]) * rng.uniform(0.2, 1.8, (6000, 4)) + 0.3 * np.eye(4)[y]
    proba /= proba.sum(axis=1, keepdims=True)
    wanted, plain = np.bincount(y, minlength=4), np.bincount(proba.argmax(axis=1), minlength=4)
    said = np.bincount((proba * choosing.weights(proba, y)).argmax(axis=1), minlength=4)
    assert np.abs(said - wanted).max() < 60 < np.abs(plain - wanted).max()


def test_a_margin_is_chosen_that_keeps_what_the_present_knows_better():
    proba, now, y = np.array([[0.55, 0.45]] * 10 + [[0.05, 0.95]] * 10), np.array([1] * 10 + [0] * 10), np.ones(20, int)
    found = choosing.margin(proba, now, y)
    assert 0.1 < found < 0.9 and (choosing.stay(proba, now, found) == 1).all()


def test_rules_trade_right_for_saying_what_is_rare(learning):
    items = coins(learning)
    train, test = items[np.arange(1200)], items[np.arange(1200, 2000)]
    said, proba = choosing.chosen(train, test, LEAF)
    assert list(said) == list(choosing.RULES) and proba.shape == (800, len(items.classes))
    share = {rule: np.mean(classes == 3) for rule, classes in said.items()}
    right = {rule: np.mean(classes == test.y) for rule, classes in said.items()}
    assert share[choosing.LIKELIEST] < 0.02, "hardly an item is Bad by more than a half"
    assert share[choosing.WEIGHED] > 0.1
    assert right[choosing.LIKELIEST] > right[choosing.WEIGHED]


def test_nothing_is_learned_from_what_is_judged(learning):
    items = coins(learning)
    train, test = items[np.arange(1200)], items[np.arange(1200, 2000)]
    known = choosing.chosen(train, test, LEAF)[0]
    other = choosing.chosen(train, replace(test, y=3 - test.y), LEAF)[0]
    assert all(np.array_equal(known[rule], other[rule]) for rule in choosing.RULES)
    assert len(split.tail(train)[0]) < 900
