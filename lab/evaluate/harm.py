"""Why stations lose goodput: what part of its access point's air each had without control, beside an equal one.

A station's part of the air is what it carried over what its link could carry, beside the other stations of its access
point (links with their changes, frames lost on the air left out). Equal air is what a law that divides the air by
stations gives: an n-th wherever n of them have a flow. Who had more than that without control must lose to whoever
divides equally, whatever he knows of queues and links; who loses without having had more loses to control itself."""
from dataclasses import dataclass

import numpy as np

from . import oracle, scenarios, spread, verdict
from .methods import Method
from .results import Results

STEP_S = 0.1


@dataclass(frozen=True)
class Station:
    """A station of a scenario: its part of the air without control over an equal one, what that alone would take (< 0)
    or give, and what it lost or won.
    """

    scenario: str
    name: str
    ap: int
    rate_mbps: float
    slowest: bool
    lasting: bool  # it and all others of its access point have a flow all the time
    over_equal: float
    change: spread.Figure

    @property
    def equal_air(self) -> float:
        """Change of goodput if it had an equal part of the same air."""
        return 1 / self.over_equal - 1

    @property
    def harmed(self) -> bool:
        """As verdict.StationChange says it."""
        return self.change.value < -verdict.STATION_LIMIT


def links(plan: dict, warmup_s: float) -> dict[str, tuple[int, float, float, bool]]:
    """Of each station with a long flow in the time that is measured: access point, mean kbit/s of its link while it has
    a flow, its equal part of the access point's air, and whether it has a flow all the time.
    """
    steps, begin = round(plan["duration_s"] / STEP_S), round(warmup_s / STEP_S)
    rates = {name: values[begin:] for name, values in oracle.link_rates(plan, STEP_S, steps).items()}
    busy = {name: (values[begin:] > 0) & (rates[name] > 0)
            for name, values in oracle.active(plan, STEP_S, steps).items()}
    ap = {s["name"]: s["ap"] for s in plan["stations"]}
    out = {}
    for name in (name for name in ap if busy[name].any()):
        together = sum(busy[other].astype(int) for other in ap if ap[other] == ap[name])
        equal = float(np.mean(np.where(busy[name], 1 / np.maximum(together, 1), 0)))
        out[name] = ap[name], float(rates[name][busy[name]].mean()), equal, bool(busy[name].all())
    return out


def stations(r: Results, which: Method) -> list[Station]:
    """Every station with a long flow in every scenario, as `verdict.stations` has them."""
    changes = {(s.scenario, s.station): s.change for s in verdict.stations(r, which, which.baseline)}
    found = []
    for scenario in r.scenarios:
        set_ = next(cell.set for cell in r.cells if cell.scenario == scenario)
        plan = scenarios.plan(scenarios.load(set_, scenario), scenario, which.baseline, r.seeds[0])
        of, goodput = links(plan, plan["evaluate"]["warmup_s"]), r.station_goodput(scenario, which.baseline)
        air = {name: np.mean(list(goodput[name].values())) / rate for name, (_, rate, *_) in of.items()
               if name in goodput}
        for name in air:
            ap, rate, equal, _ = of[name]
            mates = [other for other in air if of[other][0] == ap]
            part = air[name] / sum(air[other] for other in mates)
            found.append(Station(scenario, name, ap, rate / 1000, rate == min(of[other][1] for other in mates),
                                 all(of[other][3] for other in mates),
                                 part / (equal / sum(of[other][2] for other in mates)), changes[scenario, name]))
    return found


def explained(found: list[Station]) -> dict[str, float]:
    """Counts of stations: with more than an equal part of the air, harmed, both, the slowest of their access point
    among those harmed. And of those whose access point has all its flows all the time, how the change goes with what
    equal air alone would do (correlation).
    """
    lasting = [s for s in found if s.lasting]
    expected, seen = np.array([s.equal_air for s in lasting]), np.array([s.change.value for s in lasting])
    return {"stations": len(found), "over_equal": sum(bool(s.over_equal > 1) for s in found),
            "harmed": sum(s.harmed for s in found),
            "harmed_over_equal": sum(bool(s.harmed and s.over_equal > 1) for s in found),
            "harmed_slowest": sum(s.harmed and s.slowest for s in found), "lasting": len(lasting),
            "lasting_harmed": sum(s.harmed for s in lasting),
            "lasting_harmed_over_equal": sum(bool(s.harmed and s.over_equal > 1) for s in lasting),
            "correlation": float(np.corrcoef(expected, seen)[0, 1]) if len(lasting) > 2 else float("nan")}
