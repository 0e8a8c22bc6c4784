"""Program, tree and window model as columns of `bundle.proto`, and back. Column lengths are checked here, everything
else by the parts' own checks.
"""

from __future__ import annotations

import numpy as np

from .nodes import BundleError
from .program_check import MAX_FEATURES, what_is_wrong
from .settings import settings
from .tree import Tree, WindowModel

WORDS = ("op", "table", "column", "filter_column", "filter_value", "group", "window", "a", "b")
#: lo, hi and default when they are not given
NOT_GIVEN = (-(1 << 63) + 1, (1 << 63) - 1, -(1 << 63))


def check_program(words: list[tuple[int, ...]], decision_interval_us: int) -> None:
    """BundleError("bad_program") unless it is valid and not empty."""
    if wrong := what_is_wrong(words, decision_interval_us) if words else "no features":
        raise BundleError("bad_program", wrong)


def program_columns(words: list[tuple[int, ...]], decision_interval_us: int) -> dict:
    """Fields of FeatureProgram."""
    given = [[w[9 + i] != NOT_GIVEN[i] for i in range(3)] for w in words]
    return (
        {"decision_interval_us": decision_interval_us}
        | {name: [w[i] for w in words] for i, name in enumerate(WORDS)}
        | {
            "given": [sum(1 << i for i in range(3) if g[i]) for g in given],
            "bound": [w[9 + i] for w, g in zip(words, given) for i in range(3) if g[i]],
        }
    )


def program_words(v: dict) -> list[tuple[int, ...]]:
    """Inverse of `program_columns`. BundleError("bad_program") when column lengths do not agree."""
    n = len(v["op"])
    if n > MAX_FEATURES:
        raise BundleError("bad_program", f"{n} features; at most {MAX_FEATURES}")
    if any(len(v[name]) != n for name in (*WORDS, "given")):
        raise BundleError(
            "bad_program",
            f"{n} operators, but " + ", ".join(f"{len(v[name])} {name}" for name in (*WORDS[1:], "given")),
        )
    if any(g > 7 for g in v["given"]) or sum(g.bit_count() for g in v["given"]) != len(v["bound"]):
        raise BundleError("bad_program", f"{len(v['bound'])} bounds are not as many as given")
    bound = iter(v["bound"])
    return [
        tuple(v[name][i] for name in WORDS)
        + tuple(next(bound) if v["given"][i] >> k & 1 else NOT_GIVEN[k] for k in range(3))
        for i in range(n)
    ]


def _inner(reason: str, v: dict) -> tuple[np.ndarray, np.ndarray]:
    """(feature, indices of inner nodes) after checking the columns that trees and window models share."""
    feature = np.array(v["feature"], np.int64) - 1
    inner = np.flatnonzero(feature >= 0)
    if len(v["threshold"]) != inner.size or len(v["right"]) != inner.size:
        raise BundleError(
            reason, f"{inner.size} inner nodes, {len(v['threshold'])} thresholds, {len(v['right'])} right children"
        )
    missing = np.array(v["missing_right"], np.int64)
    if (
        (missing[1:] <= missing[:-1]).any()
        or missing.size
        and missing[-1] >= len(feature)
        or (feature[missing] < 0).any()
    ):
        raise BundleError(reason, "missing_right does not name inner nodes in ascending order")
    return feature, inner


def _spread(n: int, at: np.ndarray, values: list[int], dtype) -> np.ndarray:
    out = np.zeros(n, dtype)
    out[at] = np.array(values, dtype)
    return out


def tree_columns(t: Tree) -> dict:
    """Fields of Tree."""
    feature = np.asarray(t.feature)
    inner, leaf = np.flatnonzero(feature >= 0), np.flatnonzero(feature < 0)
    return {
        "feature_hash": t.feature_hash,
        "feature": feature + 1,
        "threshold": t.threshold[inner],
        "right": t.right[inner],
        "missing_right": inner[np.asarray(t.missing_right, bool)[inner]],
        "leaf_class": t.leaf_class[leaf],
        "leaf_permille": np.ravel(t.leaf_permille[leaf]),
    }


def tree_of(v: dict) -> Tree:
    """Inverse of `tree_columns`. BundleError("bad_tree") when column lengths do not agree."""
    if len(v["feature"]) > settings()["max_tree_nodes"]:
        raise BundleError("bad_tree", f"{len(v['feature'])} nodes; at most {settings()['max_tree_nodes']}")
    feature, inner = _inner("bad_tree", v)
    n, leaf = len(feature), np.flatnonzero(feature < 0)
    if len(v["leaf_class"]) != leaf.size or len(v["leaf_permille"]) != 3 * leaf.size:
        raise BundleError(
            "bad_tree", f"{leaf.size} leaves, {len(v['leaf_class'])} classes, {len(v['leaf_permille'])} probabilities"
        )
    if any(c > 3 for c in v["leaf_class"]) or any(p > 1000 for p in v["leaf_permille"]):
        raise BundleError("bad_tree", "class or probability of a leaf out of range")
    permille = np.zeros((n, 3), np.uint16)
    permille[leaf] = np.array(v["leaf_permille"], np.uint16).reshape(-1, 3)
    return Tree(
        feature.astype(np.int64),
        _spread(n, inner, v["threshold"], np.int64),
        _spread(n, inner, v["right"], np.int64),
        _spread(n, np.array(v["missing_right"], np.int64), [1] * len(v["missing_right"]), bool),
        _spread(n, leaf, v["leaf_class"], np.uint8),
        permille,
        v["feature_hash"],
    )


def window_columns(w: WindowModel) -> dict:
    """Fields of WindowModel."""
    out: dict[str, list] = {
        name: [] for name in ("tree_nodes", "feature", "threshold", "right", "missing_right", "leaf_value")
    }
    for feature, threshold, right, missing_right, value in w.trees:
        feature = np.asarray(feature)
        inner, leaf, first = np.flatnonzero(feature >= 0), np.flatnonzero(feature < 0), len(out["feature"])
        out["tree_nodes"].append(len(feature))
        out["feature"] += list(feature + 1)
        out["threshold"] += list(threshold[inner])
        out["right"] += list(right[inner])
        out["missing_right"] += list(first + inner[np.asarray(missing_right, bool)[inner]])
        out["leaf_value"] += list(value[leaf])
    return out | {
        "feature_hash": w.feature_hash,
        "input": w.inputs,
        "base": w.base,
        "shift": w.shift,
        "lo": w.lo,
        "hi": w.hi,
    }


def window_of(v: dict) -> WindowModel:
    """Inverse of `window_columns`. BundleError("bad_window_model") when column lengths do not agree."""
    n = len(v["feature"])
    if n > settings()["max_window_nodes"] or len(v["tree_nodes"]) > settings()["max_window_trees"]:
        raise BundleError(
            "bad_window_model",
            f"{len(v['tree_nodes'])} trees of {n} nodes; at most {settings()['max_window_trees']} of "
            f"{settings()['max_window_nodes']}",
        )
    feature, inner = _inner("bad_window_model", v)
    leaf = np.flatnonzero(feature < 0)
    if sum(v["tree_nodes"]) != n or 0 in v["tree_nodes"] or len(v["leaf_value"]) != leaf.size:
        raise BundleError(
            "bad_window_model",
            f"{n} nodes for trees of {sum(v['tree_nodes'])}, {leaf.size} leaves, {len(v['leaf_value'])} values",
        )
    missing = _spread(n, np.array(v["missing_right"], np.int64), [1] * len(v["missing_right"]), bool)
    columns = (
        feature.astype(np.int64),
        _spread(n, inner, v["threshold"], np.int64),
        _spread(n, inner, v["right"], np.int64),
        missing,
        _spread(n, leaf, v["leaf_value"], np.int64),
    )
    ends = np.cumsum(v["tree_nodes"])
    trees = [tuple(c[end - size : end] for c in columns) for end, size in zip(ends, v["tree_nodes"])]
    return WindowModel(
        np.array(v["input"], np.int64), v["base"], v["shift"], v["lo"], v["hi"], trees, v["feature_hash"]
    )
