"""Which rows become golden vectors: few bytes, many leaves."""

from __future__ import annotations

import random

import numpy as np

from . import wire
from .tree import MISSING, Tree, WindowModel

#: at least FEWEST vectors; more, up to MOST, while the payload stays within SMALL bytes
FEWEST, MOST, SMALL = 4, 16, 3900


def choose(tree: Tree, window: WindowModel | None, n_features: int, x: np.ndarray | None, window_x: np.ndarray | None,
           room: int) -> tuple[np.ndarray, np.ndarray | None]:
    """(rows of features, rows of window inputs). `x` and `window_x` are rows to choose from, None: made up; `room` bytes are taken already.

    Rows are taken that reach leaves not reached yet. The same arguments give the same rows.
    """
    rng = random.Random(tree.feature_hash ^ tree.n_nodes << 32 ^ sum(map(int, tree.threshold)))
    if x is None:
        x = _made_up(rng, n_features, np.asarray(tree.feature), tree.threshold)
    if len(x) == 0 or x.shape[1] != n_features:
        raise ValueError(f"golden rows are {list(x.shape)}; one to choose from and {n_features} columns are needed")
    rows = _few(x, tree.apply(np.asarray(x, np.int64)), room)
    if window is None:
        return rows, None
    if window_x is None:
        features, thresholds = (np.concatenate([np.asarray(t[i]) for t in window.trees]) for i in (0, 1))
        window_x = _made_up(rng, len(window.inputs), features, thresholds)
    return rows, _few(window_x, window.predict(np.asarray(window_x, np.int64)), SMALL)


def _made_up(rng: random.Random, width: int, feature: np.ndarray, threshold: np.ndarray, rows: int = 64) -> np.ndarray:
    """Rows whose values lie at and around the thresholds; some are missing, some extreme."""
    at = [sorted({int(t) + d for t in threshold[feature == i] for d in (0, 1) if int(t) + d < 1 << 63} or {0}) for i in range(width)]
    out = [[rng.choice(at[i]) if rng.random() < 0.95 else rng.choice((MISSING, 0, -1, 1 << 40)) for i in range(width)] for _ in range(rows)]
    return np.array(out, np.int64).reshape(rows, width)


def _few(x: np.ndarray, answer: np.ndarray, room: int) -> np.ndarray:
    x = np.ascontiguousarray(x, np.int64)
    _, first = np.unique(answer, return_index=True)
    order = [*np.sort(first), *np.setdiff1d(np.arange(min(len(x), MOST)), first)]
    taken: list[int] = []
    for i in order[:MOST]:
        out = bytearray()
        for v in x[i]:
            wire.put_varint(out, wire.zigzag(int(v)))
        room += len(out) + 2
        if len(taken) >= FEWEST and room > SMALL:
            break
        taken.append(i)
    return x[taken]
