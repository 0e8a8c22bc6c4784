"""May a version be champion? What its run says of networks that were left out, beside rules that cost nothing.

The registry asks before it releases. There are no kept items to judge again by: a host's sessions are labelled by later
ones, and its addresses are not kept. What the run does not say is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from oal_training import policies
from oal_training.cc_select.choice import LEAST_NETWORKS
from oal_training.errors import TrainingError

BEATS = {"over_best_fixed": "the best congestion control for all", "over_same": "staying"}


@dataclass(frozen=True)
class Rules:
    """beats: of BEATS, each of which must be beaten beyond its interval; least_networks: that they were judged on."""

    beats: tuple[str, ...] = ("over_best_fixed",)
    least_networks: int = LEAST_NETWORKS

    def __post_init__(self):
        if not self.beats or set(self.beats) - set(BEATS):
            raise TrainingError(f"beats are some of {', '.join(BEATS)}, and one at least")
        if type(self.least_networks) is not int or self.least_networks < 1:
            raise TrainingError("least_networks is a whole number from 1")


def rules(policy: str) -> Rules:
    """Those of a policy's `gate.yaml`; TrainingError when the file cannot be understood."""
    return policies.gate_rules(policy, Rules)


@dataclass(frozen=True)
class Verdict:
    """refused: why, "" when it may pass; compared: what it was compared with, in words."""

    refused: str
    compared: tuple[str, ...]


#: ends of the metrics that say one comparison: percent, its interval, on how many networks
PARTS = ("", "_low", "_high", "_networks")


def asked(figures: Mapping[str, float], by: Rules) -> dict[str, float]:
    """Of a run's metrics those that are asked for, as far as they are there."""
    wanted = [name + part for name in by.beats for part in PARTS]
    return {name: value for name in wanted if (value := _number(figures, name)) is not None}


def judge(figures: Mapping[str, float], by: Rules) -> Verdict:
    """Of a run's metrics (record.figures)."""
    wrong, compared = [], []
    for name in by.beats:
        rival = BEATS[name]
        percent, low, high, networks = (_number(figures, name + part) for part in PARTS)
        if percent is None or networks is None:
            wrong.append(f"its run does not say what it brings over {rival} (metric {name})")
        elif networks < by.least_networks:
            wrong.append(
                f"it was judged against {rival} on {networks:.0f} networks; {by.least_networks} are needed"
            )
        elif low is None or high is None:
            wrong.append(f"its run has no interval of what it brings over {rival} (metrics {name}_low, {name}_high)")
        else:
            words = f"{percent:+.1f} % over {rival} (95 % {low:+.1f} to {high:+.1f}, {networks:.0f} networks)"
            compared.append(words)
            if low <= 0:
                wrong.append(f"no better beyond chance: {words}")
    return Verdict("; ".join(wrong), tuple(compared))


def _number(figures: Mapping[str, float], name: str) -> float | None:
    value = figures.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
