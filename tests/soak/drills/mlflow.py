"""MLflow is away, and then its packets vanish: trainer and registry go on, promotions resume."""

from __future__ import annotations

import time

from flow import until
from oal_local import health, loop, registry, trainer

from soak import network
from soak.checks import NONE, complete, say
from soak.figures import Figure
from soak.learning import decisions, eager, metric, small_experiment
from soak.stage import Stage, stage

AWAY_S, BLACK_S, RATE = 1800, 300, 15
MLFLOW, REGISTRY, TRAINER = "mlflow", "model-registry", "trainer"


def _releases(on: Stage, version: int) -> int:
    return int(on.platform.clickhouse.query(
        f"SELECT count() FROM oal.release WHERE slot = 'champion' AND action = 'release' AND version = {version}"))


def _promoted(on: Stage, version: int) -> float:
    """Make it champion; seconds from when MLflow took that until its release is a row."""
    before = _releases(on, version)
    until("MLflow takes the alias", lambda: loop.set_alias(on.platform, "champion", version) or True)
    at = on.clock.now_us()
    until(f"version {version} is released", lambda: _releases(on, version) > before)
    return (on.clock.now_us() - at) / 1e6


class Watched:
    """What the trainer does while MLflow does not answer: looked at once a second."""

    def __init__(self, on: Stage):
        self.on, self.longest_s, self.ill = on, 0.0, 0
        self._decided, self._looked = decisions(on.platform), time.monotonic()
        self._since = self._looked

    def tick(self) -> None:
        """Has it decided anything, and does it call itself well?"""
        now = time.monotonic()
        if now < self._looked + 1:
            return
        self._looked, decided = now, decisions(self.on.platform)
        if decided > self._decided:
            self._decided, self._since = decided, now
        self.longest_s = max(self.longest_s, now - self._since)
        self.ill += not health.ok(trainer.url(self.on.platform.settings) + "/healthz")


def mlflow() -> list[Figure]:
    """MLflow is stopped for 30 minutes, then its packets are dropped for 5: trainer and registry go on."""
    drill = "outage-mlflow"
    network.own()
    with eager() as settings, small_experiment() as small, stage(
            ("data", MLFLOW, TRAINER, REGISTRY), rate=RATE, trainer_settings=settings) as on:
        loop.seed(on.platform, (small, small))
        for version in loop.versions(on.platform):
            loop.open_gate(on.platform, version, "a drill of the way, not of the judgement")
        first, second = loop.versions(on.platform)
        until("the first champion is released", lambda: _releases(on, second))
        fleet = on.fleet()
        on.flowing(fleet)
        until("the trainer decides", lambda: decisions(on.platform))
        pids = {name: on.platform.pid(name) for name in (REGISTRY, TRAINER)}
        seen = Watched(on)
        say(f"{drill}: away for {AWAY_S} s, clocks at {RATE} times the real speed")
        on.platform.stop(MLFLOW)
        on.clock.run(RATE)
        on.clock.wait_s(AWAY_S, seen.tick)
        on.clock.run(1)
        said = metric(on.platform, registry.url(on.platform.settings), "oal_registry_problems")
        on.platform.start(MLFLOW)
        back = _promoted(on, first)
        say(f"{drill}: back, promoted after {back:.0f} s; now its packets vanish for {BLACK_S} s")
        with network.dropped(on.platform.settings.ports["mlflow"]):
            on.clock.run(RATE)
            on.clock.wait_s(BLACK_S, seen.tick)
            on.clock.run(1)
        again = _promoted(on, second)
        on.flowing(fleet)
        fleet.stop()
        restarts = sum(on.platform.pid(name) != pid for name, pid in pids.items())
        dropped = metric(on.platform, trainer.url(on.platform.settings), "oal_trainer_mlflow_dropped_total")
        logged = until("the trainer logs again", lambda: metric(
            on.platform, trainer.url(on.platform.settings), "oal_trainer_mlflow_logged_total"))
        return [
            Figure(f"{drill}.away", AWAY_S, "s", f"of stream time, then {BLACK_S} s of dropped packets. Compressed:"
                   f" realtime clocks at {RATE} times the real speed"),
            Figure(f"{drill}.restarts", restarts, "processes", "of registry and trainer", NONE),
            Figure(f"{drill}.trainer_stood", round(seen.longest_s, 1), "s", "of real time without a decision that is a"
                   " row: it fits once a second, and a checkpoint takes 2 s on an idle machine", ("<=", 60)),
            Figure(f"{drill}.trainer_ill", seen.ill, "looks", "at its health, one a second, that said so", ("<=", 5)),
            Figure(f"{drill}.registry_said_so", said, "problems", "in its metrics at the outage's end", (">=", 1)),
            Figure(f"{drill}.promoted_after_outage", round(back, 1), "s",
                   "from when MLflow took the new champion's alias until its release was a row", ("<=", 120)),
            Figure(f"{drill}.promoted_after_black_hole", round(again, 1), "s", "likewise", ("<=", 120)),
            Figure(f"{drill}.decisions", decisions(on.platform), "decisions", "of the trainer, in all"),
            Figure(f"{drill}.entries_logged", logged, "entries", "of the trainer in MLflow"),
            Figure(f"{drill}.entries_dropped", dropped, "entries", "of the trainer, that MLflow does not have"),
        ] + complete(on.platform, fleet, drill)
