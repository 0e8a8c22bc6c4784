"""Trees of gains as plain data, for whoever evaluates them without scikit-learn; and how that is done."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .trees import Gains

DIGITS = 5  # of a leaf's gains


def nodes(model: Gains, columns: Sequence[str]) -> list[dict]:
    """Of a fitted tree, the root first: `at`, `above` (goes right if the value is above it), `left`, `right`; a leaf
    has `gains`, logarithms of ratios, one an algorithm.
    """
    tree, out = model.tree.tree_, []
    for n in range(tree.node_count):
        if tree.children_left[n] < 0:
            out.append({"gains": [round(float(g), DIGITS) for g in tree.value[n, :, 0]]})
        else:
            # scikit-learn compares as float32: the same number, so that both go the same way
            out.append({"at": columns[tree.feature[n]], "above": float(tree.threshold[n]),
                        "left": int(tree.children_left[n]), "right": int(tree.children_right[n])})
    return out


def gains(tree: list[dict], statistics: Mapping[str, float]) -> list[float]:
    """Of the leaf that a session's statistics lead to."""
    node = tree[0]
    while "gains" not in node:
        node = tree[node["right" if float(np.float32(statistics[node["at"]])) > node["above"] else "left"]]
    return node["gains"]


def choose(model: Mapping, cc: str, statistics: Mapping[str, float]) -> str:
    """The next session's algorithm; a session's own one where the model has no tree of it."""
    if cc not in model["trees"]:
        return cc
    names, worth = model["algorithms"], gains(model["trees"][cc], statistics)
    best = max(range(len(names)), key=lambda n: worth[n])
    return names[best] if worth[best] - worth[names.index(cc)] >= model["least_gain"] else cc
