"""The online trainer's trees on stored items, for the table of `compare`: replayed as they would have been shipped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oal_training.stored.items import Items


@dataclass(frozen=True, eq=False)
class Deployed:
    """Of each of the items asked for: class and probabilities float[n, 4]; covered bool[n], a tree was in force (the
    others are of class 0); congested_permille: what the trainer's own evaluator said, -1 where no tree was in force;
    shipped and decisions, numbers.
    """

    predicted: np.ndarray
    proba: np.ndarray
    covered: np.ndarray
    congested_permille: np.ndarray
    shipped: int
    decisions: int


def replay(columns: dict[str, np.ndarray], items: Items, settings_file: Path | None) -> Deployed:
    """Replay all items of a file, those with gaps too, and look up what was predicted at `items`."""
    from oal_schema.item import Item

    from oal_training.online import replay as online
    from oal_training.online import settings

    rows = [
        Item(
            ap_id=str(columns["ap_id"][i]),
            site=str(columns["site"][i]),
            ts_us=int(columns["ts_us"][i]),
            boot_id=int(columns["boot_id"][i]),
            feature_hash=int(columns["feature_hash"][i]),
            features=columns["features"][i].tolist(),
            horizon_us=int(columns["horizon_us"][i]),
            class_now=int(columns["class_now"][i]),
            truth=int(columns["class"][i]),
            loss_ratio=float(columns["loss_ratio"][i]),
            offered_pkts=int(columns["offered_pkts"][i]),
            complete=bool(columns["complete"][i]),
            loss_permille_resent=0,  # who names a file means its labels, whatever their definition
        )
        for i in range(len(columns["ts_us"]))
    ]
    found = online.run(rows, settings.load(settings_file) if settings_file else None)
    trees: dict[tuple[str, int], object] = {}
    for decision in found.decisions:
        if decision.shipped:
            trees[decision.ap_id, 1 + sum(ap == decision.ap_id for ap, _ in trees)] = decision.tree
    at = {(row.ap_id, row.ts_us): i for i, row in enumerate(rows)}
    where = np.array([at[group, ts] for group, ts in zip(items.group.tolist(), items.ts_us.tolist())])
    version = found.version[where]
    predicted, proba = np.zeros(len(items), np.int64), np.eye(len(items.classes))[np.zeros(len(items), int)]
    for (ap, number), tree in trees.items():
        mine = np.flatnonzero((items.group == ap) & (version == number))
        if len(mine):
            x = columns["features"][where[mine]]
            leaf = tree.apply(x)
            rest = tree.leaf_permille[leaf].astype(float) / 1000
            proba[mine] = np.column_stack([1 - rest.sum(axis=1), rest])
            predicted[mine] = found.klass[where[mine]]
    return Deployed(predicted, proba, version >= 1, found.congested_permille[where], len(trees), len(found.decisions))
