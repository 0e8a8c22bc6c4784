"""A library's tree as a node table over integers: preorder, and thresholds that decide every int64 as the library
decides its float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class Nodes:
    """A tree as libraries keep it: children by index in any order, -1 at a leaf; root 0.

    threshold  compared with float32(x): x < threshold goes left if `strict`, else x <= threshold
    missing_right  a missing value goes right
    """

    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    strict: bool
    missing_right: np.ndarray


@dataclass(frozen=True, eq=False)
class Flat:
    """The same in preorder (oal_schema.nodes). `origin`: index of each node in the library's tree."""

    feature: np.ndarray
    threshold: np.ndarray
    right: np.ndarray
    missing_right: np.ndarray
    origin: np.ndarray


def sklearn_nodes(t) -> Nodes:
    """Node table of a fitted scikit-learn tree: x <= threshold goes left."""
    n = t.node_count
    return Nodes(
        t.children_left, t.children_right, t.feature, t.threshold, False, np.asarray(t.missing_go_to_left)[:n] == 0
    )


def greatest_left(threshold: np.ndarray, strict: bool) -> np.ndarray:
    """The greatest int64 that goes left at each threshold, by bisection over the rounding to float32; INT64_MIN if none
    does.

    Rounding keeps order, so every smaller integer goes left too. ValueError for NaN.
    """
    t = np.asarray(threshold, np.float64)
    if np.isnan(t).any():
        raise ValueError("a threshold is not a number")
    low, high = np.full(t.shape, INT64_MIN), np.full(
        t.shape, INT64_MAX
    )  # low goes left, or is INT64_MIN; what is above high does not
    while (open_ := low < high).any():
        middle = (low >> 1) + (high >> 1) + ((low | high) & 1)  # rounded up, without overflow
        x = middle.astype(np.float32).astype(np.float64)
        goes_left = x < t if strict else x <= t
        low, high = np.where(open_ & goes_left, middle, low), np.where(open_ & ~goes_left, middle - 1, high)
    return low


def flatten(nodes: Nodes) -> Flat:
    """Preorder with the left child next to its parent; nodes that a library has pruned and kept are left out.

    ValueError for a child out of range, a cycle, or a node with two parents.
    """
    left, right = np.asarray(nodes.left, np.int64), np.asarray(nodes.right, np.int64)
    n = len(left)
    order: list[int] = []
    todo = [0]
    while todo:
        at = todo.pop()
        if not 0 <= at < n or len(order) == n:
            raise ValueError(f"the tree's children are not a tree: node {at} of {n}")
        order.append(at)
        if left[at] >= 0 or right[at] >= 0:
            todo += [int(right[at]), int(left[at])]
    origin = np.array(order, np.int64)
    if len(set(order)) != len(order):
        raise ValueError("a node of the tree has two parents")
    place = np.zeros(n, np.int64)
    place[origin] = np.arange(len(order))
    inner = left[origin] >= 0
    threshold = np.zeros(len(order), np.int64)
    threshold[inner] = greatest_left(np.asarray(nodes.threshold)[origin][inner], nodes.strict)
    return Flat(
        np.where(inner, np.asarray(nodes.feature)[origin], -1).astype(np.int32),
        threshold,
        np.where(inner, place[right[origin]], 0).astype(np.int32),
        inner & np.asarray(nodes.missing_right, bool)[origin],
        origin,
    )
