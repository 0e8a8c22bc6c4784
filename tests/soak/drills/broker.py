"""Brokers that stand still or starve, and a failover every minute: items go on, no feature differs."""

from __future__ import annotations

import signal
import time

from flow import until
from oal_local.errors import PlatformError

from soak.checks import complete, count, say
from soak.figures import Figure
from soak.stage import Stage, stage

STOPS_S = (8, 60)
STARVED_S = 60
STARVED_ON_S, STARVED_OFF_S = 0.1, 0.9
FAILOVER_S, FAILOVERS_FOR_S, FAILOVER_RATE = 60, 1800, 4
LEAST_FAILOVERS = 15


def _stopped(on: Stage, seconds: float) -> None:
    """SIGSTOP right after a checkpoint was complete, when the transactions of its items are committed."""
    before = on.platform.flink.completed_checkpoints()
    until("another checkpoint", lambda: on.platform.flink.completed_checkpoints() > before, 60)
    on.platform.kill("kafka", signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        on.platform.kill("kafka", signal.SIGCONT)


def _starved(on: Stage, seconds: float) -> None:
    """The broker runs a tenth of the time."""
    until_s = time.monotonic() + seconds
    try:
        while time.monotonic() < until_s:
            on.platform.kill("kafka", signal.SIGSTOP)
            time.sleep(STARVED_OFF_S)
            on.platform.kill("kafka", signal.SIGCONT)
            time.sleep(STARVED_ON_S)
    finally:
        on.platform.kill("kafka", signal.SIGCONT)


def stalled() -> list[Figure]:
    """The broker stands still for 8 s and for 60 s in mid-commit, and starves for a minute; nothing compressed."""
    drill = "broker-stalled"
    with stage(("data", "transactions")) as on:
        fleet = on.fleet()
        on.flowing(fleet)
        for seconds in STOPS_S:
            say(f"{drill}: SIGSTOP for {seconds} s")
            _stopped(on, seconds)
            on.flowing(fleet)
        say(f"{drill}: starving for {STARVED_S} s")
        _starved(on, STARVED_S)
        on.flowing(fleet)
        fleet.stop()
        fenced = on.platform.state.log("kafka").read_text(errors="replace").count("Fencing broker")
        figures = complete(on.platform, fleet, drill)
        settled = on.platform.clickhouse.rows(
            "SELECT outcome, count() AS n FROM oal.settled_transaction GROUP BY outcome")
        return [
            Figure(f"{drill}.stopped", sum(STOPS_S) + STARVED_S, "s",
                   "real time: 8 s, 60 s, and 60 s at a tenth of the CPU"),
            Figure(f"{drill}.fenced", fenced, "times", "that the controller fenced the broker"),
            Figure(f"{drill}.transactions_settled", sum(r["n"] for r in settled), "transactions",
                   f"by the watcher: {settled}"),
        ] + figures


def failovers() -> list[Figure]:
    """kill -9 of TaskManager and JobManager in turn, every minute for half an hour of stream time."""
    drill = "failovers"
    with stage(rate=FAILOVER_RATE) as on:
        fleet = on.fleet()
        on.flowing(fleet)
        on.clock.run(FAILOVER_RATE)
        say(f"{drill}: every {FAILOVER_S} s for {FAILOVERS_FOR_S} s, clocks at {FAILOVER_RATE} times the real speed")
        begun_us, done, longest = on.clock.now_us(), 0, 0.0
        while on.clock.now_us() < begun_us + FAILOVERS_FOR_S * 1_000_000:
            at = on.clock.now_us()
            service = ("taskmanager", "jobmanager")[done % 2]
            pid = on.platform.kill(service, signal.SIGKILL)
            done += 1
            until(f"{service} is back", lambda: _pid(on, service) not in (0, pid))
            rows = until("ClickHouse answers", lambda: [count(on.platform, "item", fleet)])[0]
            until("items go on", lambda: count(on.platform, "item", fleet) > rows)
            longest = max(longest, (on.clock.now_us() - at) / 1e6)
            while on.clock.now_us() < at + FAILOVER_S * 1_000_000:
                time.sleep(0.2)
        on.clock.run(1)
        fleet.stop()
        return [
            Figure(f"{drill}.done", done, "failovers",
                   f"within {FAILOVERS_FOR_S} s of stream time; compressed: clocks ran at {FAILOVER_RATE} times the"
                   " real speed, so a failover took that many times as long for the stream", (">=", LEAST_FAILOVERS)),
            Figure(f"{drill}.longest_without_items", round(longest, 1), "s", "of stream time, after a kill"),
        ] + complete(on.platform, fleet, drill)


def _pid(on: Stage, service: str) -> int:
    try:
        return on.platform.pid(service)
    except PlatformError:
        return 0
