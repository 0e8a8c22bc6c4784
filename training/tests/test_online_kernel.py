"""The tree kernel: well-formed, exact, as good as scikit-learn, and deterministic about missing values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oal_training.online.kernel import MISSING, Binning, Evaluator, Fitter
from oal_training.online.window import Window

EVEN = np.ones(4, np.float32)


def binned(x: np.ndarray, bins: int = 64) -> tuple[Binning, np.ndarray]:
    binning = Binning(x.shape[1], bins)
    for feature in range(x.shape[1]):
        binning.make_edges(feature, x)
    out = np.zeros((len(x), binning.stride), np.uint8)
    binning.bin_rows(x, out)
    return binning, out


def fit(x: np.ndarray, y: np.ndarray, rows=None, weight=EVEN, **limits):
    limits = {"max_nodes": 255, "max_depth": 20, "min_leaf": 1, "min_gain": 0.0, "smoothing": 1.0, **limits}
    x = np.ascontiguousarray(x, np.int64)
    binning, b = binned(x)
    rows = np.arange(len(x), dtype=np.int32) if rows is None else rows
    return Fitter(**limits).fit(binning, b, np.asarray(y, np.uint8), rows, weight, 7)


def made_up(rng: np.random.Generator, n: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.integers(0, 1_000_000, (n, features))
    x[:, 1] = (rng.random(n) < 0.1) * rng.integers(1, 50, n)
    x[:, 2] = np.cumsum(rng.normal(0, 100, n))
    s = x[:, 0] / 1e6 + x[:, 3] / 1e6 * (x[:, 1] > 0) + rng.normal(0, 0.2, n) + np.sin(x[:, 2] / 1000)
    return x, np.digitize(s, np.quantile(s, [0.5, 0.75, 0.9])).astype(np.uint8)


@given(
    st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 6), st.sampled_from([1, 3, 17, 255]), st.integers(1, 30)
)
@settings(max_examples=60, deadline=None)
def test_trees_of_any_data_are_well_formed_and_evaluate_alike(seed, n, features, max_nodes, min_leaf):
    rng = np.random.default_rng(seed)
    magnitude = int(rng.integers(1, 62))
    x = rng.integers(-(1 << magnitude), 1 << magnitude, (n, features))
    x[rng.random(x.shape) < 0.2] = MISSING
    x[rng.random(x.shape) < 0.1] = np.iinfo(np.int64).max
    x[rng.random(x.shape) < 0.1] = np.iinfo(np.int64).min + 1
    y = rng.integers(0, 4, n)
    tree = fit(x, y, max_nodes=max_nodes, min_leaf=min_leaf)
    tree.check(features)
    assert tree.n_nodes <= max_nodes
    leaves = Evaluator(tree).leaves(x, np.arange(n, dtype=np.int32))
    assert (leaves == tree.apply(x)).all()
    counts = np.bincount(leaves, minlength=tree.n_nodes)[tree.feature < 0]
    assert counts.min() >= min(min_leaf, n), "training items reach the leaves that they were counted in"


def test_a_separable_world_is_learnt_exactly():
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.integers(0, 60, 3000), rng.integers(-30, 30, 3000)])
    y = np.digitize(x[:, 0], [10, 30, 45])
    tree = fit(x, y)
    assert tree.n_nodes == 7
    assert (tree.predict(x) == y).all()
    assert sorted(tree.threshold[tree.feature >= 0]) == [
        9,
        29,
        44,
    ], "an edge lies halfway between neighbouring values, rounded down"


def test_probabilities_are_smoothed_and_sum_up():
    x = np.repeat([[0], [1]], 50, axis=0)
    y = np.repeat([0, 3], 50)
    tree = fit(x, y, smoothing=10.0)
    # Root (50 + 2.5) / 110; a leaf mixes ten items of that: (50 + 10 * 52.5 / 110) / 60.
    bad = tree.leaf_permille[tree.apply(np.array([[1]]))[0]]
    assert bad[2] == round(1000 * (50 + 10 * 52.5 / 110) / 60)
    assert (tree.leaf_permille.sum(axis=1) <= 1000).all() and (bad > 0).all()


def test_missing_values_go_where_their_class_is():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1000, (2000, 2))
    y = (x[:, 0] > 500) * 2
    x[:300, 0], y[:300] = MISSING, 2
    tree = fit(x, y)
    assert tree.predict(np.array([[MISSING, 5]]))[0] == 2
    y[:300] = 0
    assert fit(x, y).predict(np.array([[MISSING, 5]]))[0] == 0


@pytest.mark.parametrize("seed", range(4))
def test_as_good_as_scikit_learn_on_later_items(seed):
    from sklearn.metrics import f1_score
    from sklearn.tree import DecisionTreeClassifier

    x, y = made_up(np.random.default_rng(seed), 6000, 12)
    train, test = slice(0, 4000), slice(4000, None)
    ours = fit(x, y, np.arange(4000, dtype=np.int32), max_nodes=127, max_depth=12, min_leaf=10)
    theirs = DecisionTreeClassifier(max_leaf_nodes=64, max_depth=12, min_samples_leaf=10, random_state=0).fit(
        x[train], y[train]
    )
    assert (
        f1_score(y[test], ours.predict(x[test]), average="macro")
        > f1_score(y[test], theirs.predict(x[test]), average="macro") - 0.02
    )


def test_class_weights_decide_between_classes():
    x, y = np.zeros((100, 1)), np.repeat([0, 3], [80, 20])
    assert fit(x, y).leaf_class[0] == 0
    assert fit(x, y, weight=np.array([1, 1, 1, 5], np.float32)).leaf_class[0] == 3


def test_arguments_out_of_range_are_refused():
    x, y = np.zeros((10, 1)), np.zeros(10)
    with pytest.raises(ValueError, match="class weights"):
        fit(x, y, weight=np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="0 items"):
        fit(x, y, rows=np.zeros(0, np.int32))
    with pytest.raises(ValueError, match="max_nodes"):
        fit(x, y, max_nodes=1001)
    with pytest.raises(ValueError, match="bins"):
        Binning(3, 300)


def test_edges_hold_equally_many_items_and_rare_values_share():
    x = np.concatenate([np.zeros(5000), np.arange(1, 5001)]).astype(np.int64).reshape(-1, 1)
    binning, b = binned(x, 32)
    counts = np.bincount(b[:, 0])
    assert counts[1] == 5000 and counts[0] == 0, "the frequent value has a bin of its own; bin 0 is for missing ones"
    assert counts[2:].max() <= 2 * counts[2:].min()


def test_a_window_keeps_the_latest_items_binned_as_if_anew():
    rng = np.random.default_rng(3)
    window = Window(500, 3, 64, edges_per_fit=1)
    every = rng.integers(0, 10_000, (2300, 3))
    every[:, 1] = 7
    for i, row in enumerate(every):
        window.add(
            row,
            ts_us=i,
            class_now=0,
            truth=i % 4,
            loss=0,
            loss_now=0,
            held_class=0,
            held_congested=0,
            offset=i,
            doubtful=0,
        )
        if i % 97 == 0:
            window.prepare()
    window.prepare()
    assert (
        len(window) == 500 and (window.values == every[-500:]).all() and (window.ts_us == np.arange(1800, 2300)).all()
    )
    fresh = np.zeros_like(window.binned)
    window.binning.bin_rows(np.ascontiguousarray(window.values), fresh)
    assert (fresh == window.binned).all(), "incremental binning is what binning of everything gives"


CHECKED = Path(__file__).resolve().parent.parent / "build" / "liboal_tree_checked.so"


def test_the_kernel_under_address_and_undefined_behaviour_sanitizers():
    """These tests again but for this one, in a process whose kernel is checked."""
    sanitizer = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    env = {
        **os.environ,
        "LD_PRELOAD": sanitizer,
        "ASAN_OPTIONS": "detect_leaks=0",
        "OAL_TREE_LIBRARY": str(CHECKED),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "not scikit and not sanitizers",
            __file__,
        ],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
