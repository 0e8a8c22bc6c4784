"""What a session is worth: log of its speed, less what its queue and what it sent again cost."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import statistics

LEAST_MBPS = 0.01  # less has no logarithm that means anything


@dataclass(frozen=True)
class Utility:
    """Both 0: speed alone, as in the paper."""

    per_s: float = 0.0  # λ: of a second of p95 queueing
    per_ratio: float = 0.0  # μ: of all packets sent again

    def of(self, sessions: pd.DataFrame) -> np.ndarray:
        speed = np.log(np.maximum(statistics.speed_mbps(sessions), LEAST_MBPS))
        again = statistics.share(sessions.retrans_pkts, sessions.data_segs_out)
        return np.asarray(speed - self.per_s * statistics.queueing_p95_us(sessions) / 1e6 - self.per_ratio * again)
