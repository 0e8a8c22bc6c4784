"""Stored items through the online trainer, as if they came now: what would it have shipped, and how would that have
predicted?

Prequential: an item is known to the trainer only after its label window has ended and `pipeline_us` more, a tree
predicts only from `push_us` after it was shipped, and each item is predicted by the tree in force at its instant. So no
prediction has seen its answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from oal_schema.item import Item
from oal_schema.settings import settings as contract

from oal_training.online.decision import Decision
from oal_training.online.kernel import Evaluator
from oal_training.online.settings import Settings, load
from oal_training.online.trainer import OnlineTrainer

PIPELINE_US = 1_500_000  # from the end of a label window to the item in the trainer
PUSH_US = 500_000  # from the decision to the tree on the AP


@dataclass
class Replay:
    """What became of each item, in the order given, and every decision on the way.

    klass int8[n], -1 where no tree was in force; congested_permille int16[n], -1 likewise; version int32[n], number of
    the tree among those of its AP (1, 2, …), -1 for none.
    """

    klass: np.ndarray
    congested_permille: np.ndarray
    version: np.ndarray
    decisions: list[Decision] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def run(
    items: Iterable[Item], settings: Settings | None = None, *, pipeline_us: int = PIPELINE_US, push_us: int = PUSH_US
) -> Replay:
    """Replay items of any number of APs, in any order. `settings` None: training/online.yaml."""
    settings = settings or load()
    items = list(items)
    lead_us = contract()["label_window_us"] + pipeline_us
    instants = np.array([item.ts_us for item in items], np.int64)
    known = instants + [item.horizon_us + lead_us for item in items]
    result = Replay(*(np.full(len(items), -1, kind) for kind in (np.int8, np.int16, np.int32)))
    trainer = OnlineTrainer(settings)
    shipped: dict[str, list[Decision]] = {}
    step_us = int(settings.fit_every_s * 1e6)
    order, at = np.argsort(known, kind="stable"), 0
    now = int(known.min()) if items else 0
    while at < len(order):
        while at < len(order) and known[order[at]] <= now:
            trainer.add(items[order[at]], now)
            at += 1
        for decision in trainer.decide(now):
            result.decisions.append(decision)
            if decision.shipped:
                trees = shipped.setdefault(decision.ap_id, [])
                trees.append(decision)
                trainer.shipped(decision, len(trees))
        now += step_us
        if at < len(order) and known[order[at]] > now + step_us:  # a hole: on to the next item
            now += (int(known[order[at]]) - now) // step_us * step_us
    result.counts = dict(trainer.counts)
    _predict(items, instants, shipped, push_us, result)
    return result


def _predict(
    items: list[Item], instants: np.ndarray, shipped: dict[str, list[Decision]], push_us: int, result: Replay
) -> None:
    for ap_id, trees in shipped.items():
        own = np.array([i for i, item in enumerate(items) if item.ap_id == ap_id], np.int64)
        starts = np.array([tree.ts_us + push_us for tree in trees], np.int64)
        number = np.searchsorted(starts, instants[own], side="right")
        for version, decision in enumerate(trees, 1):
            mine = own[number == version]
            mine = np.array([i for i in mine if items[i].feature_hash == decision.feature_hash], np.int64)
            if not len(mine):
                continue
            values = np.array([items[i].features for i in mine], np.int64)
            klass, congested = Evaluator(decision.tree).predict(values, np.arange(len(mine), dtype=np.int32))
            result.klass[mine], result.congested_permille[mine], result.version[mine] = klass, congested, version
