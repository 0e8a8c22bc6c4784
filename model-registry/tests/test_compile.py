"""Compiled models answer as scikit-learn and XGBoost do, in Python and in the AP's C code; what cannot be compiled is
refused with what to do.
"""

import ctypes

import c_evaluator
import numpy as np
import parity
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oal_registry import compile as compiler
from oal_registry.compile_nodes import Nodes, flatten, greatest_left
from oal_schema.tree import MISSING
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

SEEDS = st.integers(0, (1 << 32) - 1)
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
done = {"tree": 0, "window": 0}


@pytest.fixture(scope="module")
def lib(tmp_path_factory) -> ctypes.CDLL:
    return c_evaluator.build(tmp_path_factory.mktemp("evaluator"))


@settings(max_examples=45, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=SEEDS)
def test_tree_is_exactly_scikit_learns(lib, seed):
    done["tree"] += parity.tree_cases(lib, seed, 2500)


@settings(max_examples=45, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=SEEDS)
def test_window_model_is_within_its_bound(lib, seed):
    done["window"] += parity.window_cases(lib, seed, 2500)[0]


def test_a_hundred_thousand_cases_of_each_were_compared(capsys):
    with capsys.disabled():
        print(f" parity: {done['tree']} cases of trees, {done['window']} of window models ", end="")
    assert min(done.values()) >= 100_000


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.floats(allow_nan=False), st.floats(allow_nan=False, width=32), st.integers(INT64_MIN, INT64_MAX).map(float)
    ),
    st.booleans(),
)
def test_threshold_is_the_last_integer_that_goes_left(t, strict):
    def left(n: int) -> bool:
        x = float(np.int64(n).astype(np.float32))
        return x < t if strict else x <= t

    n = int(greatest_left(np.array([t]), strict)[0])
    assert n == INT64_MIN or left(n)
    assert n == INT64_MAX or not left(n + 1)


def test_nan_threshold_is_refused():
    with pytest.raises(ValueError, match="threshold"):
        greatest_left(np.array([1.0, np.nan]), False)


@pytest.mark.parametrize(
    "left, right, message",
    [
        ([1, 0, -1], [2, 2, -1], "two parents|not a tree"),
        ([1, -1, -1], [9, -1, -1], "node 9"),
        ([1, -1, -1], [-1, -1, -1], "node -1"),
        ([1, -1], [1, -1], "two parents|not a tree"),
    ],
)
def test_children_that_are_no_tree_are_refused(left, right, message):
    n = len(left)
    with pytest.raises(ValueError, match=message):
        flatten(Nodes(np.array(left), np.array(right), np.zeros(n, int), np.zeros(n), False, np.zeros(n, bool)))


def data(n_classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.integers(-1000, 1000, (200, 3))
    return x, rng.integers(0, n_classes, 200)


def test_missing_goes_where_the_library_sends_it():
    x, y = data()
    x[::3, 0] = MISSING
    y[::3] = 3
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(compiler.as_floats(x), y)
    tree = compiler.tree(model, 0)
    assert tree.missing_right.any() and (tree.predict(x) == model.predict(compiler.as_floats(x))).all()


def test_one_class_and_one_leaf():
    x, y = data()
    tree = compiler.tree(DecisionTreeClassifier().fit(x, np.full(len(y), 2)), 7)
    assert (
        tree.n_nodes == 1
        and tree.leaf_class[0] == 2
        and list(tree.leaf_permille[0]) == [0, 1000, 0]
        and tree.feature_hash == 7
    )


def test_probabilities_sum_to_1000():
    x, y = data(3)
    tree = compiler.tree(DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, y), 0)
    leaf = tree.feature < 0
    assert (tree.leaf_permille[leaf].astype(int).sum(axis=1) <= 1000).all() and not tree.leaf_permille[~leaf].any()
    assert (tree.leaf_permille[leaf, 2] == 0).all()  # class 3 was never seen


def test_a_tie_is_decided_as_predict_does():
    x = np.array([[0], [0], [1], [1]])
    model = DecisionTreeClassifier(max_depth=1).fit(x, [3, 1, 2, 1])
    assert list(compiler.tree(model, 0).predict(np.array([[0], [1]]))) == list(model.predict([[0], [1]])) == [1, 1]


def fitted(model, n_classes: int = 4):
    x, y = data(n_classes)
    return model.fit(x, y)


@pytest.mark.parametrize(
    "model, message",
    [
        (lambda: fitted(RandomForestClassifier(n_estimators=2)), "distil"),
        (lambda: fitted(DecisionTreeRegressor()), "distil"),
        (lambda: fitted(LinearRegression()), "distil"),
        (lambda: DecisionTreeClassifier(), "not been fitted"),
        (lambda: DecisionTreeClassifier().fit([[0], [1]], [0, 4]), "classes"),
        (lambda: DecisionTreeClassifier().fit([[0], [1]], ["Good", "Bad"]), "classes"),
        (lambda: DecisionTreeClassifier().fit([[0], [1]], [[0, 1], [1, 0]]), "outputs"),
    ],
)
def test_what_is_no_congestion_tree(model, message):
    with pytest.raises(ValueError, match=message):
        compiler.tree(model(), 0)


def test_xgboost_classifier_is_no_tree():
    import xgboost

    x, y = data(2)
    model = xgboost.XGBClassifier(n_estimators=1, n_jobs=1).fit(x, y)
    with pytest.raises(ValueError, match="distil"):
        compiler.tree(model, 0)
    with pytest.raises(ValueError, match="not a regression"):
        compiler.window(model, [0, 1, 2], 0)


def test_a_tree_too_large_for_an_ap_is_refused():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 20, (6000, 3))
    with pytest.raises(Exception, match="bad_tree: .* at most 4095"):
        compiler.tree(DecisionTreeClassifier().fit(x, rng.integers(0, 4, 6000)), 0)


@pytest.mark.parametrize(
    "model, message",
    [
        (lambda: fitted(LinearRegression()), "cannot be compiled"),
        (
            lambda: fitted(GradientBoostingRegressor(n_estimators=2, init=LinearRegression())),
            "starts from a LinearRegression",
        ),
        (lambda: DecisionTreeRegressor().fit(data()[0], np.zeros((200, 2))), "several outputs"),
        (lambda: DecisionTreeRegressor().fit(data()[0], np.full(200, 1e15)), "bytes"),
    ],
)
def test_what_is_no_window_model(model, message):
    with pytest.raises(ValueError, match=message):
        compiler.window(model(), [0, 1, 2], 0)


def test_inputs_must_be_as_many_as_columns():
    with pytest.raises(ValueError, match="3 columns, and 2 inputs"):
        compiler.window(fitted(RandomForestRegressor(n_estimators=2)), [0, 1], 0)


@pytest.mark.parametrize("objective", ["reg:squaredlogerror", "count:poisson", "binary:logistic"])
def test_xgboost_objectives_whose_output_is_transformed(objective):
    import xgboost

    x, y = data(2)
    model = xgboost.XGBRegressor(n_estimators=2, objective=objective, n_jobs=1).fit(x, y)
    if objective == "reg:squaredlogerror":  # its output is the prediction itself
        assert compiler.window(model, [0, 1, 2], 0)[1] > 0
    else:
        with pytest.raises(ValueError, match="objective"):
            compiler.window(model, [0, 1, 2], 0)


def test_early_stopping_ends_where_predict_does():
    import xgboost

    x, _ = data()
    y = x[:, 0] * 30 + np.random.default_rng(1).normal(0, 5000, len(x)) + 50_000
    model = xgboost.XGBRegressor(n_estimators=200, early_stopping_rounds=3, n_jobs=1).fit(
        x[:150], y[:150], eval_set=[(x[150:], y[150:])], verbose=False
    )
    window, bound = compiler.window(model, [0, 1, 2], 0)
    assert len(window.trees) == model.best_iteration + 1 < 200
    assert np.abs(window.predict(x) - np.clip(model.predict(compiler.as_floats(x)), 0, None)).max() <= bound
    assert bound < 2


def test_a_booster_alone_is_enough():
    import xgboost

    x, _ = data()
    booster = xgboost.train(
        {"max_depth": 3, "nthread": 1}, xgboost.DMatrix(compiler.as_floats(x), label=x[:, 1] * 10 + 20_000), 10
    )
    window, bound = compiler.window(booster, [0, 1, 2], 0)
    assert np.abs(window.predict(x) - booster.predict(xgboost.DMatrix(compiler.as_floats(x)))).max() <= bound
