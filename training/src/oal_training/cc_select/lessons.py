"""What sessions teach: one with some congestion control, and what each candidate was worth on that network then.

The worth of a candidate is the mean of *other* sessions with it to the same network, near in time. So luck of a session
is not in what it is compared with, and a network whose hosts never changed their congestion control teaches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from oal_training.cc_select.sessions import Sessions
from oal_training.cc_select.trees import LEAST_GAIN
from oal_training.cc_select.utility import Utility

AS_GOOD = np.log(1.01)  # so near to the best is no difference that few sessions show
#: why sessions are left out, in words
OTHER, SHORT, UNKNOWN = "with another congestion control", "too short", "without round trips"
ALONE, MISSING_FEATURE = "to networks where nothing can be compared", "with a missing feature"


@dataclass(frozen=True)
class Rules:
    """What counts. candidates: numbers of congestion controls, in order of the tree's classes; least: sessions of a
    candidate that its worth is the mean of, within window_us before or after; min_bytes: acknowledged.
    """

    candidates: tuple[int, ...]
    utility: Utility
    least: int = 3
    window_us: int = 3_600_000_000
    min_bytes: int = 0


@dataclass(frozen=True, eq=False)
class Lessons:
    """m sessions of which something is known.

    x        int64[m, f]: features, none missing
    own      int64[m]: place of a session's congestion control among the candidates
    worth    float64[m, k]: of each candidate on that network then, NaN where fewer sessions say than are asked for;
             of the session's own one, and of another one at least, it is known
    network  int64[m]: number of the network; ts_us int64[m]
    left_out sessions by why
    """

    x: np.ndarray
    own: np.ndarray
    worth: np.ndarray
    network: np.ndarray
    ts_us: np.ndarray
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.own)

    def part(self, rows: np.ndarray) -> Lessons:
        """Some of them."""
        return Lessons(self.x[rows], self.own[rows], self.worth[rows], self.network[rows], self.ts_us[rows])

    def of(self, choice: np.ndarray) -> np.ndarray:
        """Worth of a choice for each; of a candidate that nobody knows there, that of the worst that is known."""
        at = self.worth[np.arange(len(self)), choice]
        return np.where(np.isnan(at), np.nanmin(self.worth, axis=1), at)

    @property
    def right(self) -> np.ndarray:
        """int64[m]: the best candidate, the first of those that are as good; or the session's own where that one gains
        too little.
        """
        most = np.nanmax(self.worth, axis=1)
        best = (self.worth >= most[:, None] - AS_GOOD).argmax(axis=1)
        return np.where(most - self.of(self.own) >= LEAST_GAIN, best, self.own)

    @property
    def cost(self) -> np.ndarray:
        """float64[m]: what a wrong choice costs, on the mean of those that are known."""
        return np.maximum(self.of(self.right) - np.nanmean(self.worth, axis=1), 0) + 1e-6


def worths(network: np.ndarray, ts_us: np.ndarray, own: np.ndarray, worth: np.ndarray, rules: Rules) -> np.ndarray:
    """float64[n, k]: of each candidate at each session's network and time, of other sessions; NaN of too few.

    Sessions whose `worth` is NaN, or whose `own` is -1, say nothing of any.
    """
    out = np.full((len(network), len(rules.candidates)), np.nan)
    for at in np.unique(network):
        here = np.flatnonzero(network == at)
        for place in range(len(rules.candidates)):
            say = here[(own[here] == place) & np.isfinite(worth[here])]
            say = say[np.argsort(ts_us[say], kind="stable")]
            total = np.concatenate([[0.0], np.cumsum(worth[say])])
            first = np.searchsorted(ts_us[say], ts_us[here] - rules.window_us, "left")
            last = np.searchsorted(ts_us[say], ts_us[here] + rules.window_us, "right")
            itself = np.isin(here, say)
            n = last - first - itself
            others = total[last] - total[first] - np.where(itself, worth[here], 0.0)
            out[here, place] = np.where(n >= rules.least, others / np.maximum(n, 1), np.nan)
    return out


def of(sessions: Sessions, rules: Rules, features: Callable[[dict], Sequence[int] | None]) -> Lessons:
    """Lessons of sessions. `features`: of a row, None where one of them is missing."""
    network, ts_us, cc = sessions.networks(), sessions.whole("ts_us"), sessions.column("cc")
    own = np.full(len(sessions), -1, dtype=np.int64)
    for place, number in enumerate(rules.candidates):
        own[cc == number] = place
    long = sessions.column("bytes_acked") >= rules.min_bytes
    worth = np.where(long, sessions.worth(rules.utility), np.nan)
    known = worths(network, ts_us, own, worth, rules)
    says = (own >= 0) & np.isfinite(worth)
    mine = np.where(says, known[np.arange(len(own)), np.maximum(own, 0)], np.nan)
    told = says & np.isfinite(mine) & (np.isfinite(known).sum(axis=1) >= 2)
    places = np.flatnonzero(told)
    vectors = [features(row) for row in sessions.rows(places)]
    whole = np.array([v is not None for v in vectors], dtype=bool)
    x = np.array([v for v in vectors if v is not None], dtype=np.int64)
    places = places[whole]
    left_out = {
        OTHER: int((own < 0).sum()),
        SHORT: int(((own >= 0) & ~long).sum()),
        UNKNOWN: int(((own >= 0) & long & ~np.isfinite(worth)).sum()),
        ALONE: int((says & ~told).sum()),
        MISSING_FEATURE: int((~whole).sum()),
    }
    return Lessons(x, own[places], known[places], network[places], ts_us[places], left_out)
