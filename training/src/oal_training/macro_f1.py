"""Macro F1, the one definition: the mean over the classes that occur in the truth of each one's F1.

A class that a model says and that did not occur has no F1 of its own; saying it costs the classes that did occur their
recall. Counted along with them, as a nought, the figure of a model would depend on how many classes the others of a
table happen to name.
"""

from __future__ import annotations

import numpy as np


def f1_of(matrix: np.ndarray) -> np.ndarray:
    """F1 of each class, float[k], of a confusion matrix [k, k] whose rows are the truth; 0 where it is undefined."""
    hit, both = np.diagonal(matrix), matrix.sum(axis=0) + matrix.sum(axis=1)
    return 2.0 * hit / np.where(both > 0, both, 1)


def macro_f1(matrix: np.ndarray) -> float:
    """Macro F1 of a confusion matrix [k, k] whose rows are the truth; NaN when it is empty."""
    there = matrix.sum(axis=1) > 0
    return float(f1_of(matrix)[there].mean()) if there.any() else float("nan")
