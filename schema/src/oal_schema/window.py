"""The regression of a flow's congestion window as tables of integers: reference evaluation (README, "Bundles"; the C is
`ap-exporter/src/model/sum.c`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .nodes import BundleError, check_nodes, descend
from .settings import settings, tables

MAX_INPUTS = 128
MAX_LEAF, MAX_BASE, MAX_SHIFT = 1 << 40, 1 << 52, 40


def flow_column(index: int) -> bool:
    """Can column `index` of the flow table be an input? Keys and the tick cannot."""
    columns = next(t for t in tables() if t["name"] == "flow")["columns"]
    return 0 <= index < len(columns) and columns[index]["kind"] not in ("KEY", "TICK", "TIME_US")


@dataclass(frozen=True, eq=False)
class WindowModel:
    """clamp((base + sum over trees of one leaf's value) >> shift, lo, hi), bytes.

    inputs  int32[k]: v >= 0 is feature v of the program, v < 0 column -1-v of the flow table's row (data going down)
    trees   list of (feature int32[n], -1 at a leaf; threshold int64[n]; right int32[n]; missing_right bool[n];
            leaf_value int64[n], 0 at inner nodes); features index `inputs`, `right` counts from the tree's own root
    """

    inputs: np.ndarray
    base: int
    shift: int
    lo: int
    hi: int
    trees: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
    feature_hash: int

    def check(self, n_features: int) -> None:
        """BundleError("bad_window_model") unless well formed for a program of `n_features`."""

        def refuse(detail: str):
            raise BundleError("bad_window_model", detail)

        limits = settings()
        if not 1 <= len(self.inputs) <= MAX_INPUTS:
            refuse(f"{len(self.inputs)} inputs; 1 to {MAX_INPUTS}")
        for v in map(int, self.inputs):
            if v >= n_features or v < 0 and not flow_column(-1 - v):
                refuse(f"input {v} is neither a feature nor a column of the flow table")
        if not 1 <= len(self.trees) <= limits["max_window_trees"]:
            refuse(f"{len(self.trees)} trees; 1 to {limits['max_window_trees']}")
        nodes = sum(len(t[0]) for t in self.trees)
        if nodes > limits["max_window_nodes"]:
            refuse(f"{nodes} nodes; at most {limits['max_window_nodes']}")
        if not -MAX_BASE < self.base < MAX_BASE or not 0 <= self.shift <= MAX_SHIFT or self.lo > self.hi:
            refuse(f"base {self.base}, shift {self.shift}, lo {self.lo}, hi {self.hi}")
        for i, (feature, threshold, right, missing_right, value) in enumerate(self.trees):
            if wrong := check_nodes(feature, threshold, right, missing_right, len(self.inputs)):
                refuse(f"tree {i}: {wrong}")
            value = np.asarray(value, np.int64)
            if len(value) != len(feature) or ((value <= -MAX_LEAF) | (value >= MAX_LEAF)).any():
                refuse(f"tree {i}: leaf values must be one a node and within 2^40")

    @property
    def n_nodes(self) -> int:
        return sum(len(t[0]) for t in self.trees)

    def width(self, n_features: int) -> int:
        """Values that a row of its input has; whatever the program's number of features."""
        return len(self.inputs)

    def answer(self, x: np.ndarray) -> np.ndarray:
        """What golden vectors hold: bytes, as `predict`."""
        return self.predict(x)

    def splits(self) -> tuple[np.ndarray, np.ndarray]:
        """(feature, -1 at a leaf; threshold) of every node of every tree."""
        return tuple(np.concatenate([np.asarray(t[i]) for t in self.trees]) for i in (0, 1))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Congestion window, int64[m] bytes, for inputs int64[m, k]; MISSING where a value is missing."""
        total = np.full(len(x), self.base, np.int64)
        for feature, threshold, right, missing_right, value in self.trees:
            total += np.asarray(value, np.int64)[descend(feature, threshold, right, missing_right, x)]
        return np.clip(total >> self.shift, self.lo, self.hi)
