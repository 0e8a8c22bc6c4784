"""Every model learns on a small real set, also where values are missing or a class never occurs; the distilled tree
follows its teacher.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oal_training.batch import distil, experiment, run
from oal_training.batch.calibration import Calibrator
from oal_training.batch.compare import MODELS, experiment_of
from oal_training.batch.distil import Distilled
from oal_training.batch.models import FACTORIES, Model, ModelSpec, sample_weight
from oal_training.errors import TrainingError
from sklearn.metrics import f1_score

SMALL = {
    "random_forest": {"n_estimators": 20},
    "xgboost_multiclass": {"n_estimators": 20},
    "xgboost_ordinal": {"n_estimators": 20},
    "lightgbm": {"n_estimators": 20},
    "mlp": {"max_iter": 40},
}


@pytest.fixture(scope="module")
def small(learning):
    """1,500 items, of which some have missing values, and one feature nothing else."""
    items = learning[1000:2500]
    x = items.x.copy()
    x[np.random.default_rng(0).random(x.shape) < 0.02] = np.nan
    x[:, 3] = np.nan
    return replace(items, x=x)


@pytest.mark.parametrize("kind", FACTORIES)
def test_every_model_learns_from_real_items_with_missing_values(small, kind):
    model = Model(ModelSpec(kind, SMALL.get(kind, {}), class_weight="sqrt" if FACTORIES[kind][1] else "none"), 4).fit(
        small[:1000]
    )
    later = small[1012:]
    proba = model.proba(later.x)
    assert proba.shape == (len(later), 4) and np.allclose(proba.sum(axis=1), 1) and proba.min() >= 0
    predicted = model.predict(later.x)
    assert set(predicted.tolist()) <= {0, 1, 2, 3}
    constant = np.full(len(later), np.bincount(later.y).argmax())
    assert f1_score(later.y, predicted, average="macro") > f1_score(
        later.y, constant, average="macro"
    ), "no better than the commonest class"


@pytest.mark.parametrize("kind", FACTORIES)
def test_a_class_that_training_items_lack_has_probability_zero(small, kind):
    few = small[np.isin(small.y, (0, 3))]
    model = Model(ModelSpec(kind, SMALL.get(kind, {})), 4).fit(few)
    proba = model.proba(small.x)
    assert proba[:, 1:3].max() < 1e-9 or kind == "xgboost_ordinal"
    assert set(model.predict(few.x).tolist()) == {0, 3}
    one = Model(ModelSpec(kind), 4).fit(few[few.y == 3])
    assert (one.predict(small.x) == 3).all() and (one.proba(small.x)[:, 3] == 1).all()


def test_an_order_of_classes_is_kept(small):
    model = Model(ModelSpec("xgboost_ordinal", {"n_estimators": 20}), 4).fit(small)
    cuts = model.estimator.cuts
    assert (np.diff(cuts) >= 0).all()
    value = model.estimator.model.predict(small.x)
    assert (np.diff(model.predict(small.x)[np.argsort(value)]) >= 0).all(), "a greater value has a lower class"


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_probabilities_come_true(method):
    rng = np.random.default_rng(1)
    true = rng.dirichlet(np.ones(4), 6000)
    y = np.array([rng.choice(4, p=p) for p in true])
    wrong = true**3 / (true**3).sum(axis=1, keepdims=True)  # too sure of itself
    calibrated = Calibrator(method).fit(wrong[:3000], y[:3000])(wrong[3000:])
    brier = lambda p: np.mean(np.sum((p - np.eye(4)[y[3000:]]) ** 2, axis=1))
    assert np.allclose(calibrated.sum(axis=1), 1)
    assert brier(calibrated) < brier(wrong[3000:]) - 0.01


@pytest.mark.parametrize("method", ["none", "sigmoid", "isotonic"])
def test_a_calibrated_tree_carries_its_calibration_in_its_leaves(small, method):
    model = Model(ModelSpec("decision_tree", {"max_leaf_nodes": 12}, calibration=method), 4).fit(small)
    before = model.proba(small.x)
    tree = run.as_tree(model)
    assert np.allclose(tree.predict_proba(small.x), before[:, tree.classes_])
    assert (tree.predict(small.x) == tree.classes_[np.argmax(before[:, tree.classes_], axis=1)]).all()


def test_the_classes_of_a_tree_are_those_of_the_items(small):
    few = small[np.isin(small.y, (0, 2))]
    tree = run.as_tree(Model(ModelSpec("decision_tree", {"max_leaf_nodes": 8}), 4).fit(few))
    assert tree.classes_.tolist() == [0, 2] and set(tree.predict(few.x).tolist()) == {0, 2}


def test_the_distilled_tree_is_small_and_follows_its_teacher(small):
    spec = ModelSpec(
        "distilled",
        class_weight="sqrt",
        distil={"teachers": ["random_forest"], "max_nodes": 63, "copies": 4, "truth": 0},
    )
    model = Distilled(spec, 4).fit(small[:1000])
    assert model.tree.tree_.node_count <= 63
    same, distance = model.fidelity(small.x[:1000])
    assert same > 0.7 and distance < 0.12
    assert model.tree.predict_proba(small.x).shape[1] == 4


def test_many_items_get_fewer_copies(small, monkeypatch):
    monkeypatch.setattr(distil, "MAX_ROWS", 700)
    model = Distilled(
        ModelSpec("distilled", distil={"teachers": ["xgboost_multiclass"], "max_nodes": 31, "copies": 8}), 4
    ).fit(small[:300])
    assert model.tree.tree_.n_node_samples[0] <= 700 * 4 and model.tree.tree_.node_count <= 31
    assert (
        Distilled(ModelSpec("distilled", distil={"teachers": ["xgboost_multiclass"]}), 4)
        .fit(small[:900])
        .tree.tree_.n_node_samples[0]
        <= 700 * 4
    )


def test_the_best_teacher_is_chosen_on_items_that_it_did_not_learn_from(small):
    poor_at_it = ModelSpec("distilled", distil={"teachers": ["random_forest", "xgboost_multiclass"], "copies": 0})
    assert Distilled(poor_at_it, 4)._best(small) in ("random_forest", "xgboost_multiclass")


def test_weights_have_mean_one_and_balance_classes():
    y = np.repeat([0, 1, 3], (80, 15, 5))
    for kind, ratio in (("none", 1.0), ("balanced", 16.0), ("sqrt", 4.0)):
        weight = sample_weight(y, kind)
        assert weight.mean() == pytest.approx(1) and weight[-1] / weight[0] == pytest.approx(ratio)


@pytest.mark.parametrize("name", MODELS)
def test_every_committed_experiment_can_be_read(name):
    found = experiment.load(experiment_of(name))
    kind, splits = ("distilled", {"run"}) if name == "corpus" else (name, {"time", "group"})
    assert found.model.kind == kind and {s.kind for s in found.splits} == splits


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: x\nmodel: {kind: tree}", "model.kind 'tree' is none of decision_tree"),
        ("name: x\nmodel: {kind: knn, leaves: 3}", "unknown leaves; known: calibrate_on"),
        ("name: x\nmodel: {kind: knn}\nsplits: [{kind: random}]", "split 'random' is none of time"),
        ("name: x\nmodel: {kind: knn}\nsplit: time", "unknown split"),
        ("name: x\nmodel: {kind: knn}\ncolumns: {label: y, target: {names: [a]}}", "columns: unknown names"),
        ("name: x", "needs `name` and `model`"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_wrong_experiment_is_refused_with_what_is_wrong(text, says):
    with pytest.raises(TrainingError, match=says):
        experiment.parse(text, "e.yaml")


def test_a_parameter_that_the_library_does_not_know_is_named(small):
    with pytest.raises(TrainingError, match="decision_tree with {'leaves': 3}"):
        Model(ModelSpec("decision_tree", {"leaves": 3}), 4).fit(small)


def test_a_blend_is_the_mean_of_its_teachers_and_one_tree_tells_it(learning):
    few = learning[:1500]
    params = {"lightgbm": {"n_estimators": 5}, "random_forest": {"n_estimators": 5}}
    options = {"teachers": list(params), "blend": True, "params": params, "max_nodes": 31, "copies": 0}
    spec = ModelSpec("distilled", class_weight=0.25, distil=options)
    made = Distilled(spec, 4).fit(few)
    one, two = (model.proba(few.x) for model in made.teacher.models)
    assert np.allclose(made.teacher.proba(few.x), (one + two) / 2)
    assert made.tree.tree_.node_count <= 31 and made.teacher_kind == "lightgbm + random_forest"
    assert made.fidelity(few.x)[0] > 0.7
