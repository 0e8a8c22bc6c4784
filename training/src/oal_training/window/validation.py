"""How good a regressor of the window is: splits that no row can look through, and figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from oal_training.errors import TrainingError
from oal_training.window.dataset import Dataset

TRAIN_SHARE = 0.6
EMBARGO_US = 5_000_000
FOLDS = 4
MIN_SAMPLES = 200  # on either side
UNA = ("flow.unacked_bytes",)
SPLITS = {
    "time": "by time: the first 60 % to train, 5 s left out, the rest to test without flows that were seen in training",
    "flow": f"by flow: each of {FOLDS} parts of the flows tested on the others",
    "network": "by network: trained on another capture (other people, links, queue), tested on this one",
}


@dataclass(frozen=True)
class Score:
    """r2: of the bytes; relative error |predicted - true| / true; n: samples judged, flows: of how many flows."""

    r2: float
    relative_median: float
    relative_p90: float
    mae_bytes: float
    n: int
    flows: int

    def figures(self) -> dict[str, float]:
        """The same by name, for MLflow."""
        return {name: float(value) for name, value in vars(self).items()}


def score(data: Dataset, predicted: np.ndarray) -> Score:
    """Figures of predictions for all samples; a negative window counts as none."""
    p = np.maximum(predicted, 0.0)
    error = np.abs(p - data.y)
    relative = error / np.maximum(data.y, 1.0)
    spread = float(np.sum((data.y - data.y.mean()) ** 2))
    return Score(
        r2=1 - float(np.sum(error**2)) / spread if spread else float("nan"),
        relative_median=float(np.median(relative)),
        relative_p90=float(np.quantile(relative, 0.9)),
        mae_bytes=float(error.mean()),
        n=len(data),
        flows=len(set(data.flow.tolist())),
    )


def by_time(data: Dataset) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(train, test) masks. Each capture is cut at its own time."""
    train, test = np.zeros(len(data), bool), np.zeros(len(data), bool)
    for name in set(data.capture.tolist()):
        mine = data.capture == name
        t = data.ts_us
        cut = t[mine].min() + TRAIN_SHARE * (t[mine].max() - t[mine].min())
        train |= mine & (t < cut)
        test |= mine & (t >= cut + EMBARGO_US)
    yield train, test & ~np.isin(data.flow, data.flow[train])


def by_flow(data: Dataset) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(train, test) masks; flows are dealt in order of their first sample, so that each part has all times."""
    flows, first = np.unique(data.flow, return_index=True)
    part = dict(zip(flows[np.argsort(first)].tolist(), np.arange(len(flows)) % FOLDS))
    of = np.array([part[f] for f in data.flow.tolist()])
    for k in range(FOLDS):
        yield of != k, of == k


def fitted(make: Callable, x: np.ndarray, y: np.ndarray):
    """A network that stops at its limit of iterations is as it is; its figures say so."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make().fit(x, y)


def validate(make: Callable, data: Dataset, split: str, other: Dataset | None = None) -> Score:
    """Fit and predict fold by fold; the score over all test samples together.

    `other`: what to train on for the split `network`.
    """
    if split == "network":
        if other is None:
            raise TrainingError("the split by network needs a second capture to train on")
        return score(data, fitted(make, other.x, other.y).predict(data.x))
    folds = list({"time": by_time, "flow": by_flow}[split](data))
    for train, test in folds:
        if min(train.sum(), test.sum()) < MIN_SAMPLES:
            raise TrainingError(
                f"too few samples for a split by {split}: {train.sum()} to train, {test.sum()} to test, need"
                f" {MIN_SAMPLES}; record a longer run"
            )
    predicted = np.full(len(data), np.nan)
    for train, test in folds:
        predicted[test] = fitted(make, data.x[train], data.y[train]).predict(data.x[test])
    judged = ~np.isnan(predicted)
    return score(data[judged], predicted[judged])
