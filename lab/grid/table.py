"""Sessions of the grid as arrays: path × algorithm × repetition, of the paths that have them all."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from oal_training.cc_select.statistics import ALL, speed_mbps, statistics
from oal_training.cc_select.trees import Lesson
from oal_training.cc_select.utility import Utility

PLACES = ("rate_mbps", "loss", "delay_ms", "jitter_ratio")  # what a path's quality is


@dataclass(frozen=True)
class Table:
    paths: pd.DataFrame  #: a row a path: PLACES, condition, queue
    algorithms: tuple[str, ...]
    speed_mbps: np.ndarray
    worth: np.ndarray
    statistics: np.ndarray  #: with ALL as a fourth axis

    @property
    def repetitions(self) -> int:
        return self.worth.shape[2]

    def lesson(self, start: int, columns: tuple[str, ...] = ALL) -> Lesson:
        """Each session with the algorithm `start`, and what a session of the *other* repetition is worth: what chance
        gave the one it does not give the other.
        """
        which = [ALL.index(name) for name in columns]
        per = [(self.statistics[:, start, r][:, which], self.worth[:, :, other])
               for r, other in enumerate(reversed(range(self.repetitions)))]
        quality = np.stack([np.unique(self.paths[name], return_inverse=True)[1] for name in PLACES], axis=1)
        return Lesson(start, *(np.concatenate(part) for part in zip(*per)),
                      np.tile(self.paths.condition.to_numpy(), self.repetitions),
                      np.tile(quality, (self.repetitions, 1)))


def table(sessions: pd.DataFrame, algorithms: list[str], utility: Utility) -> Table:
    """Of sessions in any order. A path without one of them is left out, as if it had not been played."""
    keys = ["path", "cc", "repetition"]
    rows = sessions.assign(worth=utility.of(sessions), speed=speed_mbps(sessions)).set_index(keys).sort_index()
    if rows.index.has_duplicates:
        raise ValueError("a session is there twice")
    repetitions = sorted(sessions.repetition.unique())
    wanted = len(algorithms) * len(repetitions)
    counts = rows.groupby("path").size()
    names = list(counts.index[counts == wanted])
    every = pd.MultiIndex.from_product([names, algorithms, repetitions], names=keys)
    shape = len(names), len(algorithms), len(repetitions)
    figures = statistics(rows.reset_index()).set_index(rows.index).loc[every].to_numpy()
    if not np.isfinite(figures).all():
        raise ValueError("a session without a round trip")
    paths = sessions.drop_duplicates("path").set_index("path").loc[names]
    ratio = (paths.jitter_ms / paths.delay_ms).round(3)
    return Table(paths.assign(jitter_ratio=ratio)[[*PLACES, "condition", "queue"]], tuple(algorithms),
                 rows.speed.loc[every].to_numpy().reshape(shape), rows.worth.loc[every].to_numpy().reshape(shape),
                 figures.reshape(*shape, len(ALL)))
