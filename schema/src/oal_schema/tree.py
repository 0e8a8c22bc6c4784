"""The congestion tree as a table of integers: reference evaluation (README, "Bundles"; the C is
`ap-exporter/src/model/tree.c`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .nodes import MISSING, BundleError, check_nodes, descend
from .settings import settings
from .window import WindowModel

__all__ = ["MISSING", "BundleError", "Tree", "WindowModel"]
CLASSES = 4


@dataclass(frozen=True, eq=False)
class Tree:
    """Classification tree in preorder; n nodes.

    feature        int32[n], -1 at a leaf; threshold int64[n], 0 at leaves; right int32[n], index of the right child, 0
                   at leaves
    missing_right  bool[n]: a missing value goes right
    leaf_class     uint8[n], 0 Good … 3 Bad; leaf_permille uint16[n, 3], probability of Acceptable, Poor, Bad (Good has
                   the rest); 0 at inner nodes
    feature_hash   first 8 bytes, big-endian, of the hash of the feature program that it was trained with
    """

    feature: np.ndarray
    threshold: np.ndarray
    right: np.ndarray
    missing_right: np.ndarray
    leaf_class: np.ndarray
    leaf_permille: np.ndarray
    feature_hash: int

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    def check(self, n_features: int) -> None:
        """BundleError("bad_tree") unless well formed for vectors of `n_features`."""
        limit = settings()["max_tree_nodes"]
        if self.n_nodes > limit:
            raise BundleError("bad_tree", f"{self.n_nodes} nodes; at most {limit}")
        if wrong := check_nodes(self.feature, self.threshold, self.right, self.missing_right, n_features):
            raise BundleError("bad_tree", wrong)
        if len(self.leaf_class) != self.n_nodes or np.shape(self.leaf_permille) != (self.n_nodes, 3):
            raise BundleError(
                "bad_tree",
                f"{self.n_nodes} nodes, but {len(self.leaf_class)} classes and {np.shape(self.leaf_permille)} "
                f"probabilities",
            )
        leaf = np.flatnonzero(np.asarray(self.feature) < 0)
        if (bad := leaf[np.asarray(self.leaf_class)[leaf] >= CLASSES]).size:
            raise BundleError("bad_tree", f"leaf {bad[0]}: class {self.leaf_class[bad[0]]}")
        if (bad := leaf[np.asarray(self.leaf_permille, np.int64)[leaf].sum(axis=1) > 1000]).size:
            raise BundleError("bad_tree", f"leaf {bad[0]}: probabilities sum to more than 1000 permille")

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Index of the leaf node, int32[m], for features int64[m, f]; MISSING where a value is missing."""
        return descend(self.feature, self.threshold, self.right, self.missing_right, x)

    def width(self, n_features: int) -> int:
        """Values that a row of its input has."""
        return n_features

    def answer(self, x: np.ndarray) -> np.ndarray:
        """What golden vectors hold: the leaf, as `apply`."""
        return self.apply(x)

    def splits(self) -> tuple[np.ndarray, np.ndarray]:
        """(feature, -1 at a leaf; threshold) of every node."""
        return np.asarray(self.feature), self.threshold

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Class 0 (Good) … 3 (Bad), uint8[m]."""
        return np.asarray(self.leaf_class, np.uint8)[self.apply(x)]

    def congested_permille(self, x: np.ndarray) -> np.ndarray:
        """Probability that the class is Poor or Bad, int64[m], permille."""
        return np.asarray(self.leaf_permille, np.int64)[self.apply(x), 1:].sum(axis=1)
