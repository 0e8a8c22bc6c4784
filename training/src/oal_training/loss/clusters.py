"""Two clusters of a sender's points, what says that they are some, and the same as integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from oal_schema.centroids import Centroids, compiled

from oal_training.errors import TrainingError
from oal_training.loss.points import Points, settings

SILHOUETTE_POINTS = 3000  # evenly spread: it takes the square of their number
GOLDEN = 16


@dataclass(frozen=True, eq=False)
class Clusters:
    """A fit: mean and deviation of ln(1 + x); centres as z-scores, of air and of congestion.

    silhouette, rtt_ratio  of the clusters and of their centres' round trips
    agree      False: the larger window has the smaller round trip
    """

    mean: np.ndarray
    deviation: np.ndarray
    air: np.ndarray
    queue: np.ndarray
    silhouette: float
    rtt_ratio: float
    agree: bool
    points: int

    @property
    def refused(self) -> list[str]:
        """Why every loss is congestion; empty where the clusters are used."""
        s, out = settings(), []
        if not self.agree:
            out.append("the larger window has the smaller round trip")
        if self.silhouette < s["min_silhouette"]:
            out.append(f"silhouette {self.silhouette:.2f}, {s['min_silhouette']} are asked")
        if self.rtt_ratio < s["min_rtt_ratio"]:
            out.append(f"round trips differ {self.rtt_ratio:.2f} times, {s['min_rtt_ratio']} are asked")
        return out

    def centres(self) -> np.ndarray:
        """Of air and of congestion: segments, µs."""
        return np.expm1(np.stack([self.air, self.queue]) * self.deviation + self.mean)

    def integers(self) -> Centroids:
        return compiled(self.mean, self.deviation, self.air, self.queue, not self.refused)

    def golden(self, x: np.ndarray) -> list[list[int]]:
        """Rows for golden vectors: of both answers, those near the border and those far from it."""
        rows = np.unique(np.maximum(0, x.round()).astype(np.int64), axis=0)
        z = (np.log1p(rows) - self.mean) / self.deviation
        apart = ((z - self.air) ** 2).sum(axis=1) - ((z - self.queue) ** 2).sum(axis=1)
        order = np.argsort(apart, kind="stable")
        few = np.unique(np.linspace(0, len(order) - 1, GOLDEN // 2).astype(int))
        near = np.argsort(np.abs(apart), kind="stable")[: GOLDEN // 2]
        return [[int(v) for v in row] for row in rows[np.unique(np.concatenate([order[few], near]))]]


def fit(points: Points) -> Clusters:
    """K-means of two, of at most so many points as the policy says, evenly spread. TrainingError of too few."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score
    from sklearn.preprocessing import StandardScaler

    s = settings()
    x = points.x
    if len(x) < s["min_points"]:
        raise TrainingError(f"{len(x)} points; {s['min_points']} are the least")
    logs = np.log1p(x[_spread(len(x), s["max_points"])])
    scaler = StandardScaler().fit(logs)
    at = scaler.transform(logs)
    if len(np.unique(at, axis=0)) < 2:
        raise TrainingError("all points are alike: there are no two clusters")
    made = KMeans(2, n_init=s["n_init"], max_iter=s["max_iter"], random_state=0).fit(at)
    centres = made.cluster_centers_
    queue = int(np.argmax(centres.sum(axis=1)))
    few = _spread(len(at), SILHOUETTE_POINTS)
    labels = made.labels_[few]
    rtt = np.expm1(centres[:, -1] * scaler.scale_[-1] + scaler.mean_[-1])
    return Clusters(
        scaler.mean_,
        scaler.scale_,
        centres[1 - queue],
        centres[queue],
        float(silhouette_score(at[few], labels)) if len(set(labels)) == 2 else 0.0,
        float(rtt.max() / rtt.min()),
        bool((centres[queue] > centres[1 - queue]).all()),
        len(at),
    )


def _spread(n: int, most: int) -> np.ndarray:
    return np.linspace(0, n - 1, min(n, most)).astype(int)
