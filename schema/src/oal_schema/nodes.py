"""What the congestion tree and the trees of a window model share: node tables in preorder (README, "Bundles").

A node table is four arrays of one length: `feature` (-1 at a leaf), `threshold`, `right` and `missing_right`. The left
child of node i is i + 1.
"""

from __future__ import annotations

import numpy as np

from .settings import settings

MISSING = -(1 << 63)


class BundleError(Exception):
    """A bundle, or a part of one, that may not be used. `reason` is a name of settings.bundle_reasons, `detail` says
    what exactly.
    """

    def __init__(self, reason: str, detail: str):
        if reason not in settings()["bundle_reasons"]:
            raise ValueError(f"{reason} is not one of settings.bundle_reasons")
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


def check_nodes(
    feature: np.ndarray, threshold: np.ndarray, right: np.ndarray, missing_right: np.ndarray, n_inputs: int
) -> str | None:
    """What is wrong with the shape of a node table whose features are 0…n_inputs-1, or None. O(nodes)."""
    n = len(feature)
    if n == 0:
        return "no nodes"
    if not len(threshold) == len(right) == len(missing_right) == n:
        directions = f"{len(missing_right)} directions for missing values"
        return f"{n} nodes, but {len(threshold)} thresholds, {len(right)} right children and {directions}"
    feature, right = np.asarray(feature, np.int64), np.asarray(right, np.int64)
    inner = np.flatnonzero(feature >= 0)
    if (bad := np.flatnonzero((feature < -1) | (feature >= n_inputs))).size:
        return f"node {bad[0]}: feature {feature[bad[0]]} of {n_inputs}"
    if (bad := inner[(right[inner] <= inner + 1) | (right[inner] >= n)]).size:
        return f"node {bad[0]}: right child {right[bad[0]]} of {n} nodes"
    if inner.size and inner[-1] + 1 >= n:
        return f"node {inner[-1]}: no left child"
    parents = np.bincount(np.concatenate([inner + 1, right[inner]]), minlength=n)
    parents[0] += 1
    if (bad := np.flatnonzero(parents != 1)).size:
        return f"node {bad[0]} is the child of {parents[bad[0]] - (bad[0] == 0)} nodes"
    return None


def descend(
    feature: np.ndarray, threshold: np.ndarray, right: np.ndarray, missing_right: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Index of the leaf, int32[m], for each row of `x`, int64[m, inputs]. The table must have passed `check_nodes`."""
    x = np.asarray(x)
    if x.dtype != np.int64 or x.ndim != 2:
        raise TypeError(
            f"features are int64[rows, columns], not {x.dtype}{list(x.shape)}: round them as the feature program does, "
            f"they are integers"
        )
    node = np.zeros(len(x), np.int32)
    active = np.arange(len(x))
    while active.size:
        at = node[active]
        inner = feature[at] >= 0
        active, at = active[inner], at[inner]
        value = x[active, feature[at]]
        to_right = (value > threshold[at]) | ((value == MISSING) & missing_right[at])
        node[active] = np.where(to_right, right[at], at + 1)
    return node
