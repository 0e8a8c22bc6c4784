"""A day of a small access point through the real platform: what must stay flat does."""

from __future__ import annotations

import time

from soak import resources
from soak.checks import complete, say
from soak.figures import Figure
from soak.stage import stage
from soak.tape import tape

HOURS = 24
APS = 1
WALL_S = 600  # what is not played by then is not played; 163 s were enough
SAMPLE_S = 5
#: Batches that the job has not taken yet: well below the 512 of a topic that wait at most (stream-jobs/README.md).
AHEAD = 300


def day() -> list[Figure]:
    """24 hours of a small access point, as fast as the job takes them: memory, handles, ids, parts, disk stay flat."""
    drill = "day"
    with stage(checkpoint_interval="1s") as on:
        end_us = on.clock.now_us()
        begin_us = end_us - HOURS * 3600 * 1_000_000
        fleet = on.fleet(APS, now_us=lambda: begin_us, of=tape(stations=1, packets=8))  # it sends nothing by itself
        samples: list[tuple[float, dict]] = []
        begun = sampled = time.monotonic()
        say(f"{drill}: {HOURS} h of {APS} access points, at most {WALL_S} s")
        while time.monotonic() - begun < WALL_S and fleet.aps[0].next_us < end_us:
            room = AHEAD - (sum(ap.seq for ap in fleet.aps) - resources.decoded(on.platform) // 3)
            for _ in range(max(0, room // APS)):
                for ap in fleet.aps:
                    fleet.send(ap)
            fleet.producer.poll(0)
            time.sleep(0.05)
            if time.monotonic() - sampled >= SAMPLE_S:
                sampled = time.monotonic()
                hours = (fleet.aps[0].next_us - begin_us) / 3.6e9
                samples.append((hours, resources.sample(on.platform)))
        took = time.monotonic() - begun
        hours = (fleet.aps[0].next_us - begin_us) / 3.6e9
        say(f"{drill}: {hours:.1f} h in {took:.0f} s")
        checkpoints = on.platform.flink.completed_checkpoints()
        fleet.stop()
        return [
            Figure(f"{drill}.hours", round(hours, 2), "h",
                   f"of stream, of {APS} access points, in {took:.0f} s. Compressed: the access points' time;"
                   f" checkpoints (each 1 s, {checkpoints} of them), timeouts and retention by"
                   " the clock are real time", (">=", HOURS - 0.01)),
            Figure(f"{drill}.speed", round(hours * 3600 / took, 1), "times real"),
            Figure(f"{drill}.checkpoints", checkpoints, "checkpoints"),
        ] + resources.figures(drill, samples) + complete(on.platform, fleet, drill)
