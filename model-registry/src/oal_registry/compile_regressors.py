"""Ensembles of regression trees as a sum of trees: scikit-learn's from their arrays, XGBoost's through treelite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .compile_nodes import Nodes, sklearn_nodes

FLOAT32_ROUNDING, FLOAT64_ROUNDING = 2.0**-24, 2.0**-53


@dataclass(frozen=True, eq=False)
class Regression:
    """prediction = base + sum over `trees` of the value of one leaf; (nodes, value of each node).

    float_error: how far the library's own sum may be from that, for its additions round.
    """

    n_inputs: int
    base: float
    trees: list[tuple[Nodes, np.ndarray]]
    float_error: float


def read_regressor(model) -> Regression:
    """Any model that compile.window takes; ValueError for others, and for values that are not finite."""
    from sklearn import ensemble
    from sklearn import tree as sktree

    if isinstance(model, ensemble.GradientBoostingRegressor):
        found = _boosted(model)
    elif isinstance(model, ensemble.RandomForestRegressor | ensemble.ExtraTreesRegressor):
        found = _averaged(model)
    elif isinstance(model, sktree.DecisionTreeRegressor):
        found = _sum(model.n_features_in_, 0.0, [(model.tree_, 1.0)])
    elif type(model).__module__.split(".")[0] == "xgboost":
        found = _xgboost(model)
    else:
        raise ValueError(
            f"a {type(model).__name__} cannot be compiled to a window model: it is a sum of trees, so train"
            " XGBRegressor, or scikit-learn's GradientBoostingRegressor, RandomForestRegressor, ExtraTreesRegressor or"
            " DecisionTreeRegressor"
        )
    if not found.trees:
        raise ValueError("the model has no trees")
    if not np.isfinite(found.base) or not all(np.isfinite(v).all() for _, v in found.trees):
        raise ValueError("the base or a leaf of the model is not a finite number")
    return found


def _error(base: float, trees: list[tuple[Nodes, np.ndarray]], unit: float) -> float:
    """Each addition rounds a partial sum, which is at most the sum of magnitudes; one more for a last division."""
    return (len(trees) + 2) * unit * (abs(base) + sum(float(np.abs(v).max()) for _, v in trees))


def _sum(n_inputs: int, base: float, trees: list) -> Regression:
    """scikit-learn's trees, each with a factor."""
    if any(t.n_outputs != 1 for t, _ in trees):
        raise ValueError("the model has several outputs; one is needed, the window in bytes")
    out = [(sklearn_nodes(t), t.value[:, 0, 0] * factor) for t, factor in trees]
    return Regression(n_inputs, base, out, _error(base, out, FLOAT64_ROUNDING))


def _averaged(model) -> Regression:
    return _sum(model.n_features_in_, 0.0, [(e.tree_, 1.0 / len(model.estimators_)) for e in model.estimators_])


def _boosted(model) -> Regression:
    from sklearn.dummy import DummyRegressor

    if isinstance(model.init_, DummyRegressor):
        base = float(np.ravel(model.init_.constant_)[0])
    elif model.init_ == "zero":
        base = 0.0
    else:
        raise ValueError(
            f"GradientBoostingRegressor starts from a {type(model.init_).__name__}; only the default init and 'zero'"
            " can be compiled"
        )
    return _sum(model.n_features_in_, base, [(e.tree_, model.learning_rate) for e in model.estimators_[:, 0]])


def _xgboost(model) -> Regression:
    import treelite
    import xgboost

    if isinstance(model, xgboost.XGBClassifier):
        raise ValueError("an XGBClassifier is not a regression of the window")
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    try:
        best = None if booster is model else model.best_iteration
    except AttributeError:  # trained without early stopping
        best = None
    if best is not None:
        booster = booster[: best + 1]
    try:
        forest = treelite.frontend.from_xgboost(booster)
    except treelite.TreeliteError as e:
        raise ValueError(f"treelite cannot read the model: {e}") from None
    header = forest.get_header_accessor()
    if (
        header.get_field("postprocessor") != "identity"
        or list(header.get_field("num_target")) != [1]
        or list(header.get_field("num_class")) != [1]
    ):
        raise ValueError(
            "the model's objective is not a plain regression of one number (its output goes through"
            f" {header.get_field('postprocessor')!r}); train with objective reg:squarederror"
        )
    base = float(header.get_field("base_scores")[0])
    trees = [_treelite_tree(forest.get_tree_accessor(i)) for i in range(forest.num_tree)]
    return Regression(forest.num_feature, base, trees, _error(base, trees, FLOAT32_ROUNDING))


def _treelite_tree(tree) -> tuple[Nodes, np.ndarray]:
    if list(tree.get_field("has_categorical_split")) != [0]:
        raise ValueError("the model has categorical splits; features are numbers here")
    # Copies: what treelite hands out points into the model, and is gone with it.
    left, right, feature, threshold, default_left, value = (
        np.array(tree.get_field(name))
        for name in ("cleft", "cright", "split_index", "threshold", "default_left", "leaf_value")
    )
    return Nodes(left, right, feature, threshold, True, default_left == 0), np.where(
        left < 0, value.astype(np.float64), 0.0
    )
