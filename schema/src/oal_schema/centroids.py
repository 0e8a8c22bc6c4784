"""Two centres and which of them an input is nearer to, in integers: reference evaluation, and the same of a fit in
floating point. The C is `policies/loss-cause/law.h`, which a kernel can run: no division, no floating point.

An input x counts as log2(1 + x), then as `(log2 - shift) * scale`, all with 16 bits of fraction."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np

from .tree import MISSING

FRACTION = 16
ONE = 1 << FRACTION
MAX_INPUTS = 4
#: so that no product leaves 64 bits: scales and shifts, and centres
MAX_SCALE, MAX_SHIFT, MAX_CENTRE = 1 << 22, 1 << 22, 1 << 28
AIR, QUEUE = 0, 1
#: of a model whose clusters say nothing: every answer is QUEUE
NEITHER = -1


class CentroidsError(ValueError):
    """Numbers that no evaluation can be trusted with; the message says which."""


def log2_q16(x: int) -> int:
    """log2(1 + x) of 0 <= x < 2^63, 16 bits of fraction, rounded down: squared bit by bit, as the C does."""
    v = x + 1
    whole = v.bit_length() - 1
    mantissa = v << (31 - whole) if whole <= 31 else v >> (whole - 31)
    out = whole
    for _ in range(FRACTION):
        mantissa = mantissa * mantissa >> 31
        over = mantissa >> 32
        mantissa >>= over
        out = out << 1 | over
    return out


@dataclass(frozen=True)
class Centroids:
    """shift, scale  of each input; centre: of air and of congestion, of each input
    usable       False: what was fitted is no clusters, and each loss is congestion
    """

    shift: tuple[int, ...]
    scale: tuple[int, ...]
    air: tuple[int, ...]
    queue: tuple[int, ...]
    usable: bool

    def __post_init__(self):
        width = len(self.shift)
        if not 1 <= width <= MAX_INPUTS or not len(self.scale) == len(self.air) == len(self.queue) == width:
            raise CentroidsError(f"{width} shifts, {len(self.scale)} scales, {len(self.air)} and {len(self.queue)} of"
                                 f" centres; as many of each, 1 to {MAX_INPUTS}")
        if any(not 0 < v <= MAX_SCALE for v in self.scale) or any(abs(v) > MAX_SHIFT for v in self.shift):
            raise CentroidsError(f"scale {self.scale}, shift {self.shift}; 1 to {MAX_SCALE}, within {MAX_SHIFT}")
        if any(abs(v) > MAX_CENTRE for v in (*self.air, *self.queue)):
            raise CentroidsError(f"centres {self.air}, {self.queue}; within {MAX_CENTRE}")

    def distance(self, x: list[int], centre: tuple[int, ...]) -> int:
        """Squared, 32 bits of fraction."""
        z = [((log2_q16(v) - shift) * scale) >> FRACTION for v, shift, scale in zip(x, self.shift, self.scale)]
        return sum((a - c) ** 2 for a, c in zip(z, centre))

    def answer(self, x: list[int]) -> int:
        """AIR or QUEUE of a row of inputs. What is missing or negative is QUEUE, and so is what is equally near."""
        if not self.usable or any(v == MISSING or v < 0 for v in x):
            return QUEUE
        return AIR if self.distance(x, self.air) < self.distance(x, self.queue) else QUEUE

    def dumps(self, golden: list[list[int]]) -> str:
        """As a file: the numbers, and golden vectors that whoever evaluates them must answer alike."""
        rows = [[*map(int, x)] for x in golden]
        return json.dumps({
            "kind": "centroids", "shift": self.shift, "scale": self.scale, "air": self.air, "queue": self.queue,
            "usable": self.usable, "golden": [{"input": x, "answer": self.answer(x)} for x in rows]
        }) + "\n"


def loads(text: str) -> Centroids:
    """What `dumps` wrote. CentroidsError when a golden vector answers otherwise, or none is there."""
    v = json.loads(text)
    if v.get("kind") != "centroids" or not v["golden"]:
        raise CentroidsError("kind centroids with golden vectors is needed")
    out = Centroids(*(tuple(v[name]) for name in ("shift", "scale", "air", "queue")), v["usable"])
    for n, row in enumerate(v["golden"]):
        if (got := out.answer(row["input"])) != row["answer"]:
            raise CentroidsError(f"vector {n}: {got}, not {row['answer']}")
    return out


def compiled(mean: np.ndarray, deviation: np.ndarray, air: np.ndarray, queue: np.ndarray, usable: bool) -> Centroids:
    """Of a fit of z-scores of ln(1 + x): mean and deviation of the logarithms, centres in z-scores. CentroidsError
    where an input hardly varied: its scale has no room.
    """
    to_log2 = 1 / math.log(2)
    fixed = lambda values: tuple(round(float(v) * ONE) for v in values)
    return Centroids(fixed(mean * to_log2), fixed(1 / (np.asarray(deviation, float) * to_log2)), fixed(air),
                     fixed(queue), usable)
