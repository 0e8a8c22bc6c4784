"""Which rows become golden vectors: few bytes, many leaves."""

from __future__ import annotations

import random

import numpy as np

from . import wire
from .tree import MISSING, Tree
from .window import WindowModel

#: at least FEWEST vectors; more, up to MOST, while the payload stays within SMALL bytes
FEWEST, MOST, SMALL = 4, 16, 3900


def choose(tables: list[tuple[Tree | WindowModel, np.ndarray | None]], n_features: int, room: int) -> list[np.ndarray]:
    """Golden rows of each (model, rows to choose from; None: made up), int64[r, width]; `room` bytes are taken already.

    Rows are taken that reach answers not reached yet; the first model gets the room that is left, others FEWEST rows.
    The same arguments give the same rows. ValueError for rows of another width, and for none.
    """
    first = tables[0][0]
    rng = random.Random(first.feature_hash ^ first.n_nodes << 32 ^ sum(map(int, first.splits()[1])))
    out = []
    for i, (model, x) in enumerate(tables):
        width = model.width(n_features)
        x = _made_up(rng, width, *model.splits()) if x is None else x
        if len(x) == 0 or x.shape[1] != width:
            raise ValueError(f"golden rows are {list(x.shape)}; one to choose from and {width} columns are needed")
        out.append(_few(x, model.answer(np.asarray(x, np.int64)), SMALL if i else room))
    return out


def _made_up(rng: random.Random, width: int, feature: np.ndarray, threshold: np.ndarray, rows: int = 64) -> np.ndarray:
    """Rows whose values lie at and around the thresholds; some are missing, some extreme."""
    at = [
        sorted({int(t) + d for t in threshold[feature == i] for d in (0, 1) if int(t) + d < 1 << 63} or {0})
        for i in range(width)
    ]
    out = [
        [rng.choice(at[i]) if rng.random() < 0.95 else rng.choice((MISSING, 0, -1, 1 << 40)) for i in range(width)]
        for _ in range(rows)
    ]
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
