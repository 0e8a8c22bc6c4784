"""A store is away for half an hour of the platform's time, and comes back: nothing is lost, nothing is twice."""

from __future__ import annotations

from collections.abc import Callable

from soak.checks import complete, say
from soak.figures import Figure
from soak.stage import Stage, stage

AWAY_S = 1800
RATE = 15


def away(drill: str, leave: Callable[[Stage], None], back: Callable[[Stage], None], **changes) -> list[Figure]:
    """The drill: a stream in real time, an outage in which all clocks go RATE times as fast, the stream again."""
    with stage(rate=RATE, **changes) as on:
        fleet = on.fleet()
        on.flowing(fleet)
        say(f"{drill}: away for {AWAY_S} s of the platform's time, its clocks at {RATE} times the real speed")
        leave(on)
        on.clock.run(RATE)
        on.clock.wait_s(AWAY_S)
        on.clock.run(1)
        say(f"{drill}: back")
        back(on)
        on.flowing(fleet)
        fleet.stop()
        say(f"{drill}: the source has stopped; waiting for all of it")
        return [
            Figure(f"{drill}.away", AWAY_S, "s",
                   f"of stream time. Compressed: the realtime clocks of access points, broker and job ran at {RATE}"
                   " times the real speed meanwhile, and pipeline.lateness.ms is so many times its default; what waits"
                   " by monotonic clocks waited in real time"),
        ] + complete(on.platform, fleet, drill)


def clickhouse() -> list[Figure]:
    """ClickHouse is stopped."""
    return away("outage-clickhouse", lambda on: on.platform.stop("clickhouse"),
                lambda on: on.platform.start("clickhouse"))


def kafka() -> list[Figure]:
    """The broker is stopped; access points keep what they make (the exporter's own buffer is 2 MiB by default)."""
    return away("outage-kafka", lambda on: on.platform.stop("kafka"), lambda on: on.platform.start("kafka"))


def checkpoints() -> list[Figure]:
    """The folder of checkpoints is gone, and a file is in its place, so that nothing can be made there."""
    def leave(on: Stage) -> None:
        folder = on.platform.state.checkpoints
        folder.rename(folder.with_name("checkpoints-away"))
        folder.touch()

    def back(on: Stage) -> None:
        folder = on.platform.state.checkpoints
        folder.unlink()
        folder.with_name("checkpoints-away").rename(folder)

    return away("outage-checkpoints", leave, back)
