"""A store takes connections and answers nothing, for five minutes of stream time."""

from __future__ import annotations

import signal

from soak.checks import complete, say
from soak.figures import Figure
from soak.stage import stage

FOR_S, RATE = 300, 5


def blackhole() -> list[Figure]:
    """ClickHouse, then the broker, accept connections and swallow what is sent, for 5 minutes of stream time each."""
    drill = "blackhole"
    with stage(rate=RATE) as on:
        fleet = on.fleet()
        on.flowing(fleet)
        for service in ("clickhouse", "kafka"):
            say(f"{drill}: {service} answers nothing for {FOR_S} s, clocks at {RATE} times the real speed")
            on.clock.run(RATE)
            on.platform.kill(service, signal.SIGSTOP)
            try:
                on.clock.wait_s(FOR_S)
            finally:
                on.platform.kill(service, signal.SIGCONT)
                on.clock.run(1)
            on.flowing(fleet)
        fleet.stop()
        return [Figure(f"{drill}.swallowed", FOR_S, "s",
                       "of stream time, each of ClickHouse and Kafka: SIGSTOP, so its sockets accept and nobody reads."
                       f" Compressed: realtime clocks at {RATE} times the real speed")] + complete(
                           on.platform, fleet, drill)
