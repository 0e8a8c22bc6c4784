"""K-means with two clusters on windows and round trips, and whether the clusters are of any use.

After Moriyama et al., "TCP Congestion Control over IEEE 802.11 Wireless LANs based on K-Means Clustering Focusing on
Congestion Window Size and Round-trip Time". What the paper leaves open: inputs are log2(1 + segments) and log2(1 + µs)
as z-scores; the congested cluster is the one with the larger window *and* the longer round trip; a fit whose clusters
do not say which that is, are not apart, or differ little in their round trips is of no use, and nothing is made of it.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

LEAST_POINTS = 200
MOST_POINTS = 10_000  # the latest
LEAST_SILHOUETTE = 0.5
LEAST_RTT_RATIO = 1.5  # of the centres' round trips
SILHOUETTE_SAMPLE = 2_000  # points: its cost grows with their square

#: As policies/loss-cause/ca.h has them.
LOG_BITS, Z_BITS, MOST_SCALE = 16, 12, 1 << 20
MODEL = struct.Struct("=Q2i2i2i2iII")  # struct oal_lc_model

INPUTS = ("window", "round trip")
IN_A_ROW = 3  # windows kept one after the other
NO_LIMIT = 255


@dataclass(frozen=True)
class Centroids:
    """A fit. Arrays have a value an input, in the order of INPUTS; an input that does not count has a deviation of 0.
    """

    mean: np.ndarray  # of the logarithms
    deviation: np.ndarray
    air: np.ndarray  # centres, z-scores
    congested: np.ndarray
    silhouette: float
    rtt_ratio: float  # congested over air
    points: int

    def is_air(self, segments: np.ndarray, rtt_us: np.ndarray) -> np.ndarray:
        """Of each point: is it nearer to the centre of the air? Floating point; the kernel's integers differ from it
        for points near the middle alone.
        """
        z = scores(np.column_stack([logarithm(segments), logarithm(rtt_us)]), self.mean, self.deviation)
        distance = [((z - centre) ** 2).sum(axis=1) for centre in (self.air, self.congested)]
        return distance[0] < distance[1]

    def pack(self, deadline_ns: int = 0, in_a_row: int = IN_A_ROW) -> bytes:
        """struct oal_lc_model of policies/loss-cause/ca.h; deadline in ns of CLOCK_MONOTONIC, 0: never; in_a_row:
        windows kept one after the other at most, 255: no limit.
        """
        scale = [min(round((1 << Z_BITS) / d), MOST_SCALE) if d > 0 else 0 for d in self.deviation]
        return MODEL.pack(deadline_ns, *(round(m * (1 << LOG_BITS)) for m in self.mean), *scale,
                          *(round(v * (1 << Z_BITS)) for v in (*self.air, *self.congested)), 1, in_a_row)


@dataclass(frozen=True)
class Useless:
    """A fit that nothing is made of, and why; `centroids`: what it was, if there is any."""

    reason: str
    centroids: Centroids | None = None


def rule(rtt_us: float) -> Centroids:
    """No fit but a rule, in the same form: a loss at a round trip below so many µs is one of the air."""
    middle = float(logarithm(np.array([rtt_us]))[0])
    return Centroids(np.array([0.0, middle]), np.array([0.0, 1.0]), np.array([0.0, -1.0]), np.array([0.0, 1.0]), 0.0,
                     0.0, 0)


def logarithm(values: np.ndarray) -> np.ndarray:
    return np.log2(1 + np.asarray(values, float))


def scores(logs: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """z-scores, points × inputs; 0 for an input that does not count."""
    return np.divide(logs - mean, deviation, out=np.zeros_like(logs), where=deviation > 0)


def fit(segments: np.ndarray, rtt_us: np.ndarray, rtt_only: bool = False, seed: int = 0) -> Centroids | Useless:
    """Two clusters of a path's points, in the order in which they were seen: windows in segments, round trips in µs.
    rtt_only: by round trips alone, the earlier work that the paper compares with.
    """
    logs = np.column_stack([logarithm(segments), logarithm(rtt_us)])[-MOST_POINTS:]
    if len(logs) < LEAST_POINTS:
        return Useless(f"{len(logs)} points of {LEAST_POINTS}")
    mean, deviation = logs.mean(axis=0), logs.std(axis=0)
    if rtt_only:
        deviation = deviation * np.array([0, 1])
    if not deviation[1]:
        return Useless("all round trips are the same")
    z = scores(logs, mean, deviation)
    found = KMeans(2, n_init=10, max_iter=300, random_state=seed).fit(z)
    pick = np.random.default_rng(seed).permutation(len(z))[:SILHOUETTE_SAMPLE]
    labels = found.labels_[pick]
    silhouette = float(silhouette_score(z[pick], labels)) if len(set(labels)) == 2 else 0.0
    first, second = found.cluster_centers_
    congested, air = (first, second) if first.sum() > second.sum() else (second, first)
    apart = congested - air
    rtt_ratio = float(2 ** (apart[1] * deviation[1]))
    made = Centroids(mean, deviation, air, congested, silhouette, rtt_ratio, len(logs))
    if silhouette < LEAST_SILHOUETTE:
        return Useless(f"the clusters are not apart: silhouette {silhouette:.2f}", made)
    if apart[1] <= 0 or (apart[0] < 0 and not rtt_only):
        return Useless("the cluster with the larger windows has the shorter round trips", made)
    if rtt_ratio < LEAST_RTT_RATIO:
        return Useless(f"the clusters' round trips are too much alike: ratio {rtt_ratio:.2f}", made)
    return made
