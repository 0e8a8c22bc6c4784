"""Page-Hinkley: has the mean of a sequence risen? (Page 1954; the formulation with forgetting off.)"""

from __future__ import annotations

from oal_training.online.settings import Drift


class PageHinkley:
    """`statistic` is the sum of what came above the running mean and `delta`, since its lowest point; an alarm is above
    `threshold`.
    """

    def __init__(self, settings: Drift):
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget everything: a new tree is in force."""
        self.n, self.mean, self._sum, self._lowest = 0, 0.0, 0.0, 0.0

    @property
    def statistic(self) -> float:
        """At least 0."""
        return self._sum - self._lowest

    def update(self, value: float) -> bool:
        """Take the next value (0…1); True when this raises an alarm. An alarm restarts the detector."""
        self.n += 1
        self.mean += (value - self.mean) / self.n
        self._sum += value - self.mean - self.settings.delta
        self._lowest = min(self._lowest, self._sum)
        if self.n < self.settings.min_seconds or self.statistic <= self.settings.threshold:
            return False
        self.reset()
        return True
