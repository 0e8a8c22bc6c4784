"""Bins of each feature, from the items that a version was trained on, and how far later items are from them (PSI).

The population stability index of a feature is the sum over bins of (now - then) * ln(now / then), of shares of items.
Bins are tenths of the training items, and one of missing values. People read below 0.1 as the same, above 0.25 as
another population.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from oal_training.errors import TrainingError
from oal_training.stored.items import Items

FILE = "feature_bins.json"  # among the files of a run's report
FORMAT = 1
QUANTILES = np.arange(1, 10) / 10
LEAST_SHARE = 1e-3  # an emptier bin counts as this full, so that a rare value is no drift by itself
MIN_ITEMS = 600  # a minute of one AP; of fewer nothing is said


def reference(items: Items) -> dict:
    """Bins and shares of all features: {"format", "items", "feature_hash", "features": {name: {"edges", "shares"}}}.
    A bin is above one edge and at or below the next; the last share is that of missing values.
    """
    features = {}
    for k, name in enumerate(items.names):
        edges = _edges(items.x[:, k])
        counts = _counts(items.x[:, k], edges)
        features[name] = {"edges": edges.tolist(), "shares": (counts / max(1, counts.sum())).round(6).tolist()}
    return {
        "format": FORMAT,
        "items": len(items),
        "feature_hash": items.source.get("feature_hash") or "",
        "features": features,
    }


def write(folder: Path, items: Items) -> None:
    """The bins as a file of a report."""
    (folder / FILE).write_text(json.dumps(reference(items), separators=(",", ":")) + "\n", encoding="utf-8")


def parse(text: str) -> dict:
    """What `write` wrote; TrainingError when it is something else."""
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
        for feature in found["features"].values():
            if len(feature["shares"]) != len(feature["edges"]) + 2:
                raise ValueError("as many shares as bins are needed")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrainingError(f"{FILE} holds no bins: {error}") from None
    return found


def psi(bins: dict, items: Items) -> dict[str, float] | None:
    """By feature; None when the items are too few. TrainingError when they are of other features."""
    if tuple(bins["features"]) != items.names:
        raise TrainingError("the items are of other features than the version was trained on")
    if len(items) < MIN_ITEMS:
        return None
    found = {}
    for k, (name, feature) in enumerate(bins["features"].items()):
        counts = _counts(items.x[:, k], np.asarray(feature["edges"], float))
        now = np.maximum(counts / counts.sum(), LEAST_SHARE)
        then = np.maximum(np.asarray(feature["shares"], float), LEAST_SHARE)
        found[name] = float(np.sum((now - then) * np.log(now / then)))
    return found


def _edges(values: np.ndarray) -> np.ndarray:
    there = values[~np.isnan(values)]
    if not len(there):
        return np.empty(0)
    edges = np.unique(np.quantile(there, QUANTILES, method="lower"))
    if len(edges) == 1:  # most are one value: below and above it are bins, too
        edges = np.array([np.nextafter(edges[0], -np.inf), edges[0]])
    return edges


def _counts(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    missing = np.isnan(values)
    bins = np.searchsorted(edges, values[~missing], side="left")
    return np.append(np.bincount(bins, minlength=len(edges) + 1), np.count_nonzero(missing)).astype(float)
