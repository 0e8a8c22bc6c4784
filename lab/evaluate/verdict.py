"""What OAL gains and costs: changes against the baseline, the share of the oracle's gain, and the limits of harm."""
from dataclasses import dataclass

from . import spread
from .methods import ORACLES, QUEUES, Method
from .results import Results

# figure → (name, whether more is better, what the paper reports of it over BBR)
COMPARED = {
    "throughput_mbps": ("throughput", True, 0.175), "delay_mean_ms": ("mean delay", False, -0.30),
    "delay_p95_ms": ("p95 delay", False, None), "queueing_p95_ms": ("p95 queueing delay", False,
                                                                    None), "jitter_ms": ("jitter", False, -0.16),
    "congestion_loss_ratio": ("congestion loss", False, -0.25), "fct_p95_ms": ("p95 completion of transfers",
                                                                                        False, None),
    "first_second_drops": ("drops in a new flow's first second", False, None)
}
# no worse than this against the own baseline, in any scenario
LIMITS = {"throughput_mbps": -0.02, "delay_p95_ms": 0.05}
SHARE_OF = "delay_mean_ms"
STATION_LIMIT = 0.10  # of a station's goodput: who loses more is harmed


@dataclass(frozen=True)
class Harm:
    """A limit that is broken: by the mean (and surely: the whole interval lies beyond it)."""

    figure: str
    change: spread.Figure
    sure: bool


def mean(r: Results, scenario: str, which: Method, figure: str) -> spread.Figure | None:
    """Of a figure over the seeds of a scenario."""
    return spread.mean(list(r.values(scenario, which, figure).values()))


def change(r: Results, scenario: str, new: Method, old: Method, figure: str) -> spread.Figure | None:
    return spread.change(r.values(scenario, new, figure), r.values(scenario, old, figure))


def harms(r: Results, scenario: str, which: Method) -> list[Harm]:
    """Limits that a method breaks against its baseline."""
    found = []
    for figure, limit in LIMITS.items():
        c = change(r, scenario, which, which.baseline, figure)
        if c and (c.value < limit if limit < 0 else c.value > limit):
            found.append(Harm(figure, c, c.high < limit if limit < 0 else c.low > limit))
    return found


def better_baseline(r: Results, scenario: str, control: str) -> Method | None:
    """Of a control's baselines, FIFO and FQ, that with the smaller SHARE_OF."""
    known = [(m.value, which) for queue in QUEUES
             if (m := mean(r, scenario, which := Method(control, queue), SHARE_OF))]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def best_oracle(r: Results, scenario: str, control: str, queue: str) -> spread.Figure | None:
    """SHARE_OF of the oracle whose target suits the scenario best: the smallest among those that keep the baseline's
    throughput within LIMITS; where none does, of the one with the target of the command line.
    """
    known = {}
    for act in ("oracle", *ORACLES):
        which = Method(control, queue, act)
        if figure := mean(r, scenario, which, SHARE_OF):
            kept = change(r, scenario, which, which.baseline, "throughput_mbps")
            known[act] = figure, kept is not None and kept.value >= LIMITS["throughput_mbps"]
    good = [figure for figure, keeps in known.values() if keeps]
    return min(good, key=lambda f: f.value) if good else known.get("oracle", (None,))[0]


def share_of_oracle(r: Results, scenario: str, which: Method, baseline: Method | None = None) -> float | None:
    """(baseline − method) / (baseline − best oracle) of SHARE_OF, against the method's own baseline or another; None
    where the oracle gains less than 2 % itself: no room.
    """
    base, own = (mean(r, scenario, m, SHARE_OF) for m in (baseline or which.baseline, which))
    best = best_oracle(r, scenario, which.control, which.queue)
    if not (base and own and best) or base.value - best.value < 0.02 * base.value:
        return None
    return (base.value - own.value) / (base.value - best.value)


def overall(r: Results, new: Method, old: Method, figure: str) -> spread.Figure | None:
    """Mean over scenarios of the change from one method to another."""
    return spread.mean_change([(r.values(s, new, figure), r.values(s, old, figure)) for s in r.scenarios])


@dataclass(frozen=True)
class StationChange:
    """What a station of a scenario has of its goodput, against the same station under the baseline."""

    scenario: str
    station: str
    change: spread.Figure

    @property
    def harmed(self) -> bool:
        return self.change.value < -STATION_LIMIT

    @property
    def sure(self) -> bool:
        """It is harmed, and that it loses at all is not chance."""
        return self.harmed and self.change.high < 0

    @property
    def surely_harmed(self) -> bool:
        """That it loses more than the limit is not chance."""
        return self.change.high < -STATION_LIMIT

    @property
    def by_chance(self) -> float:
        """Probability that it would count as harmed if nothing were done to it."""
        return spread.below_by_chance(self.change, -STATION_LIMIT)


def stations(r: Results, which: Method, old: Method) -> list[StationChange]:
    """Every station that has a long flow, in every scenario; the one that loses most first."""
    found = []
    for scenario in r.scenarios:
        new, before = r.station_goodput(scenario, which), r.station_goodput(scenario, old)
        for station in sorted(new.keys() & before.keys()):
            if c := spread.change(new[station], before[station]):
                found.append(StationChange(scenario, station, c))
    return sorted(found, key=lambda one: one.change.value)
