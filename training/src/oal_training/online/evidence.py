"""Is a fresh tree better than the one in force? Evidence that may be looked at every second.

A fit each second asks the same question over and over, of windows that overlap by more than 99 %: agreeing several
times in a row shows nothing, and who looks often enough sees a tree win by luck. So a tree that looks better is held
against blocks of items that came after it was chosen, each block used once, and the evidence is a bet: the stake grows
with each block in which the fresh tree errs less, and shrinks with each in which it errs more, by how much. If trees no
better gain nothing on average in a block, given all before, the stake is a supermartingale, and the chance that it is
ever worth 1 / rate is at most `rate`, however often anybody looks (Ville's inequality).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oal_training.online.kernel import Evaluator

BETS = (0.1, 0.3, 0.5, 0.7, 0.9)  # share of the stake set on each block; a fifth of it each, for small and large gains
GIVE_UP = 0.05  # a stake so small starts anew, and its round has a smaller share of the rate
FULL = 0.05  # mean errors of a block that differ by as much win or lose the whole bet, smaller ones their part
MIN_ITEMS = 20  # of a block, two seconds: fewer say nothing


@dataclass(frozen=True)
class Challenge:
    """A tree that looked better, and the block of items to come that it is held against: from_us <= ts < until_us."""

    tree: Evaluator
    from_us: int
    until_us: int

    def items(self, ts_us: np.ndarray, doubtful: np.ndarray) -> np.ndarray:
        """Positions of the block's items, int32, without doubtful ones."""
        there = (ts_us >= self.from_us) & (ts_us < self.until_us) & (doubtful == 0)
        return np.flatnonzero(there).astype(np.int32)


class Evidence:
    """What the blocks since the tree in force came say for fresh trees."""

    def __init__(self) -> None:
        self.round = 1
        self._stakes = [1.0] * len(BETS)

    @property
    def stake(self) -> float:
        """Of this round, 1 at its start."""
        return sum(self._stakes) / len(BETS)

    def enough(self, rate: float) -> bool:
        """Is the chance that trees no better got so far at most `rate`? Round k has 1 / (k (k + 1)) of it."""
        return self.stake * rate >= self.round * (self.round + 1)

    def add(self, difference: float) -> None:
        """A block's mean error of the fresh tree minus that of the tree in force."""
        gain = max(-1.0, min(1.0, -difference / FULL))
        self._stakes = [stake * (1 + gain * bet) for stake, bet in zip(self._stakes, BETS)]
        if self.stake < GIVE_UP:
            self.round += 1
            self._stakes = [1.0] * len(BETS)
