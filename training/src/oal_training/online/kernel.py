"""The compiled tree kernel (`native/`), by ctypes."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_uint8, c_uint16, c_void_p
from functools import cache
from pathlib import Path

import numpy as np
from oal_schema.tree import Tree

from oal_training.errors import TrainingError

MISSING = np.int64(np.iinfo(np.int64).min)
CLASSES = 4
MAX_ITEMS = 65535  # of a fit: the kernel counts in 16 bits
MAX_NODES = 511
LIBRARY = Path(__file__).resolve().parents[3] / "build" / "liboal_tree.so"


class _Bins(Structure):
    _fields_ = [
        ("features", c_int32),
        ("bins", c_int32),
        ("stride", c_int32),
        ("edges", c_void_p),
        ("n_edges", c_void_p),
    ]


class _Fit(Structure):
    _fields_ = [
        ("max_nodes", c_int32),
        ("max_depth", c_int32),
        ("min_leaf", c_int32),
        ("min_gain", c_float),
        ("smoothing", c_float),
        ("class_weight", c_float * CLASSES),
    ]


class _Tree(Structure):
    _fields_ = [
        ("feature", POINTER(c_int32)),
        ("threshold", POINTER(c_int64)),
        ("right", POINTER(c_int32)),
        ("missing_right", POINTER(c_uint8)),
        ("leaf_class", POINTER(c_uint8)),
        ("leaf_permille", POINTER(c_uint16)),
        ("items", POINTER(c_int32)),
    ]


@cache
def library() -> ctypes.CDLL:
    """The kernel. OAL_TREE_LIBRARY names another file than build/liboal_tree.so."""
    path = os.environ.get("OAL_TREE_LIBRARY", str(LIBRARY))
    try:
        lib = ctypes.CDLL(path)
    except OSError as error:
        raise TrainingError(
            f"the tree kernel cannot be loaded ({error}); build it with `make -C training build`"
        ) from None
    lib.oal_edges.restype = c_int32
    lib.oal_edges.argtypes = [c_void_p, c_int64, c_int32, c_void_p, c_int32, c_void_p]
    lib.oal_bin_rows.restype = None
    lib.oal_bin_rows.argtypes = [POINTER(_Bins), c_void_p, c_int32, c_void_p]
    lib.oal_bin_column.restype = None
    lib.oal_bin_column.argtypes = [POINTER(_Bins), c_int32, c_void_p, c_int32, c_void_p]
    lib.oal_fit_bytes.restype = c_int64
    lib.oal_fit_bytes.argtypes = [POINTER(_Bins), POINTER(_Fit), c_int32]
    lib.oal_tree_fit.restype = c_int32
    lib.oal_tree_fit.argtypes = [
        POINTER(_Bins),
        POINTER(_Fit),
        c_void_p,
        c_void_p,
        c_void_p,
        c_int32,
        c_void_p,
        POINTER(_Tree),
    ]
    lib.oal_tree_apply.restype = None
    lib.oal_tree_apply.argtypes = [POINTER(_Tree), c_void_p, c_int32, c_void_p, c_int32, c_void_p]
    return lib


def _pointer(array: np.ndarray, kind):
    return array.ctypes.data_as(POINTER(kind))


class Binning:
    """Edges of each column, and the bins of items.

    `bins` counts the slots of a column, the one of missing values included (4…256). Edges are exact integers: an item
    is in bin b ≥ 1 when edge[b-2] < x ≤ edge[b-1], and a split between bins becomes the threshold `x ≤ edge`.
    """

    def __init__(self, features: int, bins: int):
        if not 4 <= bins <= 256 or features < 1:
            raise ValueError(f"bins must be 4 to 256 and features at least 1, not {bins} and {features}")
        self.features, self.bins = features, bins
        self.stride = (features + 7) // 8 * 8
        self.edges = np.zeros((features, bins - 2), np.int64)
        self.n_edges = np.zeros(features, np.int32)
        self._native = _Bins(features, bins, self.stride, self.edges.ctypes.data, self.n_edges.ctypes.data)

    def make_edges(self, feature: int, rows: np.ndarray) -> None:
        """Quantile edges of one column from rows int64[n, features]."""
        n = len(rows)
        scratch = np.empty(2 * max(n, 1), np.int64)
        self.n_edges[feature] = library().oal_edges(
            rows.ctypes.data + 8 * feature,
            self.features,
            n,
            scratch.ctypes.data,
            self.bins - 2,
            self.edges[feature].ctypes.data,
        )

    def bin_rows(self, rows: np.ndarray, binned: np.ndarray) -> None:
        """Write the bins of rows int64[n, features] to uint8[n, stride]; both contiguous."""
        library().oal_bin_rows(self._native, rows.ctypes.data, len(rows), binned.ctypes.data)

    def bin_column(self, feature: int, rows: np.ndarray, binned: np.ndarray) -> None:
        """The same for one column."""
        library().oal_bin_column(self._native, feature, rows.ctypes.data, len(rows), binned.ctypes.data)


class Fitter:
    """Fits trees with fixed limits; keeps the working memory between fits. Not for several threads at once."""

    def __init__(self, max_nodes: int, max_depth: int, min_leaf: int, min_gain: float, smoothing: float):
        if not 1 <= max_nodes <= MAX_NODES:
            raise ValueError(f"max_nodes must be 1 to {MAX_NODES}, not {max_nodes}")
        self._limits = (max_nodes | 1, max_depth, min_leaf, min_gain, smoothing)
        self._room = np.empty(0, np.uint8)

    def fit(
        self,
        binning: Binning,
        binned: np.ndarray,
        classes: np.ndarray,
        rows: np.ndarray,
        class_weight: np.ndarray,
        feature_hash: int,
    ) -> Tree:
        """A tree from the items at `rows` (int32, at least one, at most 65,535) of binned uint8[·, stride] and classes
        uint8[·].

        class_weight: float32[4], all positive. ValueError when an argument is out of range.
        """
        fit = _Fit(*self._limits, (c_float * CLASSES)(*class_weight))
        rows = np.ascontiguousarray(rows, np.int32)
        need = library().oal_fit_bytes(binning._native, fit, len(rows)) + 64
        if len(self._room) < need:
            self._room = np.empty(need, np.uint8)
        room = (self._room.ctypes.data + 63) // 64 * 64
        n = self._limits[0]
        out = (
            np.empty(n, np.int32),
            np.empty(n, np.int64),
            np.empty(n, np.int32),
            np.empty(n, np.uint8),
            np.empty(n, np.uint8),
            np.empty((n, 3), np.uint16),
            np.empty(n, np.int32),
        )
        native = _Tree(
            *(_pointer(a, k) for a, k in zip(out, (c_int32, c_int64, c_int32, c_uint8, c_uint8, c_uint16, c_int32)))
        )
        n = library().oal_tree_fit(
            binning._native, fit, binned.ctypes.data, classes.ctypes.data, rows.ctypes.data, len(rows), room, native
        )
        if n == 0:
            raise ValueError(
                f"cannot fit: {len(rows)} items (1 to {MAX_ITEMS}), limits {self._limits}, class weights {class_weight}"
            )
        feature, threshold, right, missing_right, leaf_class, permille, _ = (a[:n].copy() for a in out)
        permille[feature >= 0] = 0
        return Tree(
            feature=feature,
            threshold=threshold,
            right=right,
            missing_right=missing_right.astype(bool),
            leaf_class=leaf_class,
            leaf_permille=permille,
            feature_hash=feature_hash,
        )


class Evaluator:
    """A tree ready for the compiled evaluation: the same answers as `Tree.apply`, faster."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self._arrays = (
            np.ascontiguousarray(tree.feature, np.int32),
            np.ascontiguousarray(tree.threshold, np.int64),
            np.ascontiguousarray(tree.right, np.int32),
            np.ascontiguousarray(tree.missing_right, np.uint8),
        )
        self._native = _Tree(*(_pointer(a, k) for a, k in zip(self._arrays, (c_int32, c_int64, c_int32, c_uint8))))
        self._class = np.asarray(tree.leaf_class, np.uint8)
        permille = np.asarray(tree.leaf_permille, np.int32)
        self._congested = permille[:, 1] + permille[:, 2]

    def leaves(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Leaf index int32[n] of the items at `rows` (int32) of values int64[·, features], C-contiguous."""
        rows = np.ascontiguousarray(rows, np.int32)
        leaf = np.empty(len(rows), np.int32)
        library().oal_tree_apply(
            self._native, values.ctypes.data, values.shape[1], rows.ctypes.data, len(rows), leaf.ctypes.data
        )
        return leaf

    def predict(self, values: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(class uint8[n], probability of Poor or Bad int32[n] in permille) of the items at `rows`."""
        leaf = self.leaves(values, rows)
        return self._class[leaf], self._congested[leaf]
