"""Training runs asked for in MLflow's page, by the version tag `retrain` = requested. What becomes of it is in another
tag, `retrain.state`: running -> done, or `failed: reason`.

People write the first, and this service only takes it away, before a run begins; so whenever somebody asks, during a
run or in the moment in which it ends, the request stands until a run has begun after it. One at a time, as a child
process. A run that this service was killed in is begun again, unless it had come to its end: then its result is used.
The child ends with the service.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from oal_registry import automatic, child, registered
from oal_registry.automatic import ASK_TAG as TAG
from oal_registry.automatic import STATE_TAG
from oal_registry.mlflow_client import Gone, MlflowRegistry
from oal_registry.status import Status

AS_TAG, FROM_TAG = "retrained_as", "retrained_from"
AFTER_TAG = "retrain.after"  # the newest version when a run began: what it makes has a greater number, on any clock


@dataclass
class _Run:
    model: str
    version: int
    process: subprocess.Popen
    result: Path
    log: Path
    deadline: float

    @property
    def name(self) -> str:
        return f"{self.model}/{self.version}"


class Retraining:
    """To be called from one thread, the one that lives as long as the process: its death would end the child."""

    def __init__(
        self,
        registry: MlflowRegistry,
        models: tuple[str, ...],
        command: list[str],
        config_file: str,
        folder: Path,
        timeout_s: float,
        status: Status,
    ):
        self.registry, self.models, self.command, self.config_file = registry, models, command, config_file
        self.folder, self.timeout_s, self.status = folder, timeout_s, status
        self.folder.mkdir(parents=True, exist_ok=True)
        self._run: _Run | None = None
        self._looked: set[str] = set()  # models without a run of an earlier life of this service

    def step(self) -> int:
        """Look after the run under way; begin the next one asked for. The number of changes of state."""
        done = 0
        if self._run is not None:
            ended = self._run.process.poll() is not None
            if not ended and time.monotonic() < self._run.deadline:
                return 0
            if not ended:
                child.end(self._run.process)
            self._conclude(self._run, timed_out=not ended)
            self._run = None
            self.status.set("oal_registry_retrain_running", 0)
            done = 1
        for model in self.models:
            for version in self._cut_off(model):
                if not self._finished_earlier(model, version):
                    self._begin(model, int(version.version))
                    return done + 1
                done += 1
            # `running`: as it was written before there were two tags
            for version in self.registry.versions(model, f"tags.{TAG} LIKE 'r%'"):
                if version.tags.get(TAG) in ("requested", "running"):
                    self._begin(model, int(version.version))
                    return done + 1
        return done

    def _cut_off(self, model: str) -> list:
        """Versions whose run was under way when an earlier life of this service ended: this one has no run now."""
        if model in self._looked:
            return []
        found = self.registry.versions(model, f"tags.`{STATE_TAG}` = 'running'")
        if not found:
            self._looked.add(model)
        return found

    def stop(self) -> None:
        """End the child. The state stays `running`: the next start begins the run again."""
        if self._run is not None:
            child.end(self._run.process)
            self._run = None

    # --- a run

    def _files(self, model: str, version: int) -> tuple[Path, Path]:
        return self.folder / f"{model}-{version}.json", self.folder / f"{model}-{version}.log"

    def _begin(self, model: str, version: int) -> None:
        result, log = self._files(model, version)
        result.unlink(missing_ok=True)
        newest = max((int(v.version) for v in self.registry.versions(model)), default=version)
        self.registry.set_tag(model, version, AFTER_TAG, str(newest))
        self.registry.set_tag(model, version, automatic.AT_TAG, f"{time.time():.0f}")
        self.registry.set_tag(model, version, STATE_TAG, "running")
        self.registry.delete_tag(model, version, TAG)  # killed before this, it begins again with the state
        command = [
            *self.command,
            registered.trainer(model),
            "--retrain",
            f"{model}/{version}",
            "--tracking-uri",
            self.registry.tracking_uri,
            "--config",
            self.config_file,
            "--register",
            model,
            "--result",
            str(result),
        ]
        self.status.log(f"retrain {model}/{version}: begins, output in {log}")
        try:
            process = child.start(command, log)
        except OSError as error:
            self._set_state(model, version, f"failed: cannot start {self.command[0]}: {error.strerror}")
            return
        self._run = _Run(model, version, process, result, log, time.monotonic() + self.timeout_s)
        self.status.set("oal_registry_retrain_running", 1)

    def _conclude(self, run: _Run, timed_out: bool) -> None:
        made = _result(run.result)
        if timed_out:
            self._set_state(run.model, run.version, f"failed: took longer than {self.timeout_s:.0f} s")
        elif run.process.returncode != 0:
            self._set_state(run.model, run.version, f"failed: {child.reason(run.log, run.process.returncode)}")
        elif made is None:
            self._set_state(
                run.model, run.version, f"failed: training ended well but wrote no version into {run.result.name}"
            )
        else:
            self._link(run.model, run.version, made)

    def _finished_earlier(self, model: str, version) -> bool:
        """Had the run that left the state `running` registered its version? Then link it."""
        number = int(version.version)
        made = _result(self._files(model, number)[0])
        if made is None:
            after = version.tags.get(AFTER_TAG, "")
            candidates = [
                int(v.version)
                for v in self.registry.versions(model, f"tags.retrained_from = '{number}'")
                if after.isdigit() and int(v.version) > int(after)
            ]
            made = max(candidates, default=None)
        if made is None:
            self.status.log(f"retrain {model}/{number}: was interrupted, begins again")
            return False
        self._link(model, number, made)
        return True

    def _link(self, model: str, version: int, made: int) -> None:
        try:
            self.registry.set_tag(model, made, FROM_TAG, str(version))
        except Gone:
            self._set_state(
                model, version, f"failed: training says that it registered {model}/{made}, which is not there"
            )
            return
        self.registry.set_tag(model, version, AS_TAG, str(made))
        if said := automatic.hand_on(self.registry, model, version, made):
            self.status.log(f"retrain {model}/{version}: {said}")
        self._set_state(model, version, "done")

    def _set_state(self, model: str, version: int, state: str) -> None:
        try:
            if automatic.BY_TAG in self.registry.version(model, version).tags:
                automatic.forget(self.registry, model, version)
            self.registry.set_tag(model, version, STATE_TAG, state)
        except Gone:
            pass  # the version was deleted, and with it what was asked
        self.status.count("oal_registry_retrains_total", result=state.partition(":")[0])
        self.status.log(f"retrain {model}/{version}: {state}")
        self._files(model, version)[0].unlink(missing_ok=True)


def _result(path: Path) -> int | None:
    """The version that a training run says it registered."""
    try:
        return int(json.loads(path.read_text())["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
