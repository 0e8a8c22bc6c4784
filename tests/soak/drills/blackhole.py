"""Packets to a store vanish, for five minutes of stream time: nothing is refused, nothing is answered."""

from __future__ import annotations

from soak import network
from soak.checks import complete, say
from soak.figures import Figure
from soak.stage import stage

FOR_S, RATE = 300, 5
PORTS = {"clickhouse": "clickhouse_http", "kafka": "kafka"}


def blackhole() -> list[Figure]:
    """All packets to and from ClickHouse, then the broker's clients' port, are dropped for 5 minutes of stream time."""
    drill = "blackhole"
    network.own()
    with stage(rate=RATE) as on:
        fleet = on.fleet()
        on.flowing(fleet)
        dropped = {}
        for service, port in PORTS.items():
            say(f"{drill}: packets of {service} vanish for {FOR_S} s, clocks at {RATE} times the real speed")
            on.clock.run(RATE)
            with network.dropped(on.platform.settings.ports[port]):
                on.clock.wait_s(FOR_S)
                dropped[service] = network.packets_dropped()
            on.clock.run(1)
            on.flowing(fleet)
        fleet.stop()
        return [Figure(f"{drill}.dropped.{service}", n, "packets",
                       f"within {FOR_S} s of stream time, by iptables in a network namespace of the drill's own."
                       f" Compressed: realtime clocks at {RATE} times the real speed", (">=", 1))
                for service, n in dropped.items()] + complete(on.platform, fleet, drill)
