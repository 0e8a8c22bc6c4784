"""What a drill stands on: a folder, a platform whose clocks it sets, a place for its figures."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oal_local.platform import Platform

from soak.checks import flowing, say
from soak.clock import ALL, Clock, preloaded
from soak.fleet import PlayedFleet

CHECKPOINT = "2s"
LATENESS_MS = 5000  # the job's default
KEPT = "OAL_SOAK_STATE"  # a folder that stays, with all logs


@contextmanager
def folder() -> Iterator[Path]:
    """A drill's own, gone at its end unless it was asked for."""
    kept = os.environ.get(KEPT)
    if kept:
        shutil.rmtree(kept, ignore_errors=True)
        Path(kept).mkdir(parents=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory(prefix="oal-soak-", ignore_cleanup_errors=True) as made:
        yield Path(made)


class Stage:
    """A running platform with its clock."""

    def __init__(self, platform: Platform, clock: Clock, apart: dict[str, Clock]):
        self.platform, self.clock, self.apart = platform, clock, apart
        self.fleets: list[PlayedFleet] = []

    def fleet(self, aps: int = 3, **more) -> PlayedFleet:
        """Access points that stream from now on, by the platform's clock."""
        fleet = PlayedFleet(self.platform, aps, **{"now_us": self.clock.now_us} | more)
        self.fleets.append(fleet)
        return fleet.start()

    def flowing(self, fleet: PlayedFleet) -> None:
        flowing(self.platform, fleet)


@contextmanager
def stage(only=("data",), services_of: tuple[str, ...] = (), rate: int = 1, **changes) -> Iterator[Stage]:
    """A platform of processes with clocks of its own. `services_of`: words of command lines of services that get a
    clock apart, see clock.py. `rate`: how many times as fast the drill will let its clocks run; a delay of this machine
    is then that much longer for the stream, so the job waits for late batches so much longer. `changes` are fields of
    the platform's settings.
    """
    with folder() as at:
        clocks = at / "clocks"
        clocks.mkdir()
        clock = Clock(clocks, ALL)
        apart = {word: Clock(clocks, word) for word in services_of}
        settings = {"partitions": 2, "checkpoint_interval": CHECKPOINT,
                    "job_properties": {"pipeline.lateness.ms": str(LATENESS_MS * rate)}} | changes
        platform = Platform(at / "state", ports="auto", only=list(only), log=lambda line: None, **settings)
        say("starting the platform")
        with preloaded(at, clocks):
            platform.up()
        made = Stage(platform, clock, apart)
        try:
            yield made
        finally:
            for fleet in made.fleets:
                fleet.abandon()
            platform.down()
