"""The drills by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soak.drills import blackhole, broker, clocks, day, mlflow, outage, polls, rescale, revoked
from soak.figures import Figure


@dataclass(frozen=True)
class Drill:
    run: Callable[[], list[Figure]]
    limit_s: int  # an idle machine takes a third of it
    long: bool = False  # the platform compiles and merges as it does in months, not as for minutes


DRILLS = {
    "outage-clickhouse": Drill(outage.clickhouse, 1200),
    "outage-kafka": Drill(outage.kafka, 1200),
    "outage-checkpoints": Drill(outage.checkpoints, 1200),
    "outage-mlflow": Drill(mlflow.mlflow, 1200),
    "outage-postgres": Drill(polls.away, 900),
    "rescale": Drill(rescale.rescale, 900),
    "broker-stalled": Drill(broker.stalled, 1200),
    "failovers": Drill(broker.failovers, 1500),
    "blackhole": Drill(blackhole.blackhole, 1000),
    "clock-access-point": Drill(clocks.access_point, 1000),
    "clock-broker": Drill(clocks.broker, 1000),
    "clock-trainer": Drill(clocks.trainer, 1000),
    "revoked": Drill(revoked.revoked, 1000),
    "kill-store-away": Drill(polls.polls, 300),
    "day": Drill(day.day, 1500, long=True),
}
