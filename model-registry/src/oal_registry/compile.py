"""Models of scikit-learn and XGBoost as flat tables of integers, for the AP.

    tree(model, feature_hash)            a DecisionTreeClassifier as a congestion tree: the same leaf for every input
    window(model, inputs, feature_hash)  an ensemble of regression trees as a window model, and how far it may be from
        the library

Features are 64-bit integers; the libraries see them as 32-bit floats. `as_floats` says how, and "the same" means: for
every int64 input x, what is compiled answers x as the library answers `as_floats(x)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from oal_schema.tree import MISSING, Tree, WindowModel

from .compile_nodes import flatten, sklearn_nodes
from .compile_regressors import Regression, read_regressor

CLASSES = 4
MAX_LEAF, MAX_BASE = 1 << 40, 1 << 52
#: bytes: a window that no TCP sender reaches
MAX_WINDOW_BYTES = 1 << 30
DISTIL = (
    "only a single decision tree runs on an AP; distil the model into one (`oal-train fit"
    " training/experiments/distilled.yaml --register NAME`)"
)


def as_floats(x: np.ndarray) -> np.ndarray:
    """What a model is trained on and asked: int64[m, f] rounded to the nearest float32, MISSING as NaN."""
    x = np.asarray(x, np.int64)
    out = x.astype(np.float32)
    out[x == MISSING] = np.nan
    return out


def tree(model, feature_hash: int) -> Tree:
    """Compile a scikit-learn DecisionTreeClassifier whose classes are among 0 (Good) … 3 (Bad).

    ValueError for any other model.

    A leaf's class is what `predict` says there; its probabilities are those of `predict_proba`, rounded to permille so
    that the four sum to 1000.
    """
    from sklearn.tree import DecisionTreeClassifier

    if not isinstance(model, DecisionTreeClassifier):
        raise ValueError(f"a {type(model).__name__} is not a decision tree for classes: {DISTIL}")
    if not hasattr(model, "tree_"):
        raise ValueError("the DecisionTreeClassifier has not been fitted")
    if model.n_outputs_ != 1:
        raise ValueError(f"the tree has {model.n_outputs_} outputs; one is needed, the class")
    classes = np.asarray(model.classes_)
    if not np.isin(classes, range(CLASSES)).all():
        raise ValueError(
            f"its classes are {list(classes)}; they must be numbers among 0 (Good), 1 (Acceptable), 2 (Poor), 3 (Bad)"
        )
    nodes = flatten(sklearn_nodes(model.tree_))
    share = model.tree_.value[nodes.origin, 0, : len(classes)]
    if not np.isfinite(share).all():
        raise ValueError("a probability of a leaf is not a number")
    leaf = nodes.feature < 0
    leaf_class = np.where(leaf, classes[np.argmax(share, axis=1)], 0).astype(np.uint8)
    permille = np.zeros((len(leaf), CLASSES), np.int64)
    permille[:, classes.astype(int)] = share / share.sum(axis=1, keepdims=True) * 1_000_000
    permille = _to_permille(permille)
    permille[~leaf] = 0
    out = Tree(
        nodes.feature,
        nodes.threshold,
        nodes.right,
        nodes.missing_right,
        leaf_class,
        permille[:, 1:].astype(np.uint16),
        feature_hash,
    )
    out.check(model.n_features_in_)
    return out


def _to_permille(millionths: np.ndarray) -> np.ndarray:
    """Rows of shares to permille with the sum 1000: the largest remainders are rounded up, the lower class first on
    ties.
    """
    out = millionths // 1000
    order = np.argsort(-(millionths % 1000), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return out + (rank < (1000 - out.sum(axis=1, keepdims=True)))


def window(
    model, inputs: Sequence[int], feature_hash: int, *, lo: int = 0, hi: int = MAX_WINDOW_BYTES
) -> tuple[WindowModel, float]:
    """Compile a regression of the congestion window in bytes; (model, error bound in bytes).

    `model`: XGBRegressor, xgboost.Booster, or scikit-learn's GradientBoostingRegressor, RandomForestRegressor,
    ExtraTreesRegressor or DecisionTreeRegressor. `inputs`: what each of its columns is (oal_schema.tree.WindowModel).
    ValueError for anything else.

    Bound: for every input, the compiled model's answer is at most that far from the library's own prediction, both
    within [lo, hi]. It is the sum of: rounding of the leaves taken and of the base to 2^-shift bytes, rounding of the
    result to a byte (0.5), and the library's own rounding as it adds up in floating point. Every input takes the same
    leaf in each tree as in the library.
    """
    found = read_regressor(model)
    if found.n_inputs != len(inputs):
        raise ValueError(f"the model has {found.n_inputs} columns, and {len(inputs)} inputs are named")
    shift = _shift(found)
    half = 1 << shift >> 1  # so that the shift rounds to nearest
    base = round(found.base * (1 << shift)) + half
    error = abs(round(found.base * (1 << shift)) / (1 << shift) - found.base) + (0.5 if shift else 0.0)
    trees = []
    for nodes, value in found.trees:
        flat = flatten(nodes)
        exact = np.where(flat.feature < 0, value[flat.origin], 0.0)
        rounded = np.rint(exact * float(1 << shift))
        error += float(np.abs(rounded / float(1 << shift) - exact).max())
        trees.append((flat.feature, flat.threshold, flat.right, flat.missing_right, rounded.astype(np.int64)))
    out = WindowModel(np.array(inputs, np.int32), base, shift, lo, hi, trees, feature_hash)
    return out, math.nextafter(error + found.float_error, math.inf)


def _shift(found: Regression) -> int:
    """Binary places such that rounding all leaves costs at most a quarter of a byte; fewer if the leaves are too large
    for that.
    """
    shift = math.ceil(math.log2(2 * (len(found.trees) + 1)))
    largest = max(float(np.abs(v).max()) for _, v in found.trees)
    while shift and (
        largest * (1 << shift) >= MAX_LEAF - 1 or abs(found.base) * (1 << shift) >= MAX_BASE - (1 << shift)
    ):
        shift -= 1
    if largest >= MAX_LEAF - 1 or abs(found.base) >= MAX_BASE - 1:
        raise ValueError(f"a leaf says {largest:g}, the base {found.base:g} bytes: is the model's unit bytes?")
    return shift
