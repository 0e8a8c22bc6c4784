"""Items before the first drop of an episode, and how long before it an alarm comes.

A drop counter that steps tells of congestion that is already there; a model that reads it sees nothing coming. So
onsets are judged a second time on the items in whose last second no queue dropped anything. An episode begins with a
drop after such a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oal_training.stored.items import Items

#: drops of queues in the last second, as far as a feature program has them
DROPS = ("qdisc_drops_1s", "txq_drops_1s")
REACH_S = 2.0  # an alarm that is longer before a drop is not for it
GAP_S = 0.35  # items further apart are no row


def not_yet_dropped(items: Items) -> np.ndarray:
    """Mask of the items in whose last second no queue dropped a packet; all where no feature tells."""
    calm = np.ones(len(items), bool)
    for name in DROPS:
        if name in items.names:
            calm &= ~(items.x[:, items.names.index(name)] > 0)
    return calm


@dataclass(frozen=True, eq=False)
class Episodes:
    """e drops after a calm second. `at` int64[e, r]: the calm items before each, from the latest backwards, −1 where
    there are no more; `lead_s` float[e, r]: from that item to the drop; `block` int64[e].
    """

    at: np.ndarray
    lead_s: np.ndarray
    block: np.ndarray

    def lead(self, alarm: np.ndarray) -> np.ndarray:
        """Seconds from the first alarm of the unbroken row that reaches up to the drop, float[e]; 0 for none."""
        on = np.where(self.at >= 0, alarm[self.at], False)
        unbroken = np.logical_and.accumulate(on, axis=1)
        return np.max(np.where(unbroken, self.lead_s, 0.0), axis=1, initial=0.0)


def episodes(items: Items, block: np.ndarray) -> Episodes:
    """The episodes of these items, which are in order of time. The instant of a drop is that of the first item that
    tells of it: up to a decision interval late.
    """
    calm = not_yet_dropped(items) & items.candidates
    dropped = ~not_yet_dropped(items)
    rows, leads, blocks = [], [], []
    for name in items.groups:
        mine = np.flatnonzero(items.group == name)
        ts = items.ts_us[mine]
        for i in np.flatnonzero(dropped[mine][1:] & calm[mine][:-1]) + 1:
            before = []
            for j in range(i - 1, -1, -1):
                if not calm[mine[j]] or ts[j + 1] - ts[j] > GAP_S * 1e6 or ts[i] - ts[j] > REACH_S * 1e6:
                    break
                before.append(j)
            if before:
                rows.append(mine[before])
                leads.append((ts[i] - ts[before]) / 1e6)
                blocks.append(block[mine[i]])
    longest = max((len(r) for r in rows), default=1)
    at, lead = np.full((len(rows), longest), -1), np.zeros((len(rows), longest))
    for e, (r, s) in enumerate(zip(rows, leads)):
        at[e, : len(r)], lead[e, : len(r)] = r, s
    return Episodes(at, lead, np.array(blocks, np.int64))


def alarms(score: np.ndarray, calm: np.ndarray, rate: float, seed: int = 0) -> np.ndarray:
    """Alarms bool[n]: the share `rate` of the calm items with the greatest scores, ties by lot, so that every model
    raises as many.
    """
    rows = np.flatnonzero(calm)
    lot = np.random.default_rng(seed).random(len(rows))
    chosen = rows[np.lexsort((lot, -score[rows]))[: round(rate * len(rows))]]
    found = np.zeros(len(score), bool)
    found[chosen] = True
    return found
