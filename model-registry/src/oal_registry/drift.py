"""Looks at the features of champions, by `oal-train drift`: rows of `feature_drift`, tags of the version."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from oal_registry import automatic, child
from oal_registry.mlflow_client import Gone, MlflowRegistry
from oal_registry.status import Status

TABLE = "feature_drift"
FIRST_S = 300  # from the start to the first look
TIMEOUT_S = 900  # of a look
WINDOW = "24h"  # what is looked at: a day, as a shorter time would differ by the hour of the day
ALL = ""  # ap_id of the rows of all items together


class Drift:
    """One look at a time, each champion once in `look_every_s`; one thread, as `oal_registry.child`.

    `tell(table, key, records)` sends rows, a list of them a record.
    """

    def __init__(
        self,
        registry: MlflowRegistry,
        models: Iterable[str],
        command: list[str],
        config_file: str,
        folder: Path,
        settings: automatic.Settings,
        status: Status,
        tell: Callable[[str, str, list[list[dict]]], None],
        now: Callable[[], float] = time.time,
    ):
        self.registry, self.models, self.command, self.config_file = registry, tuple(models), command, config_file
        self.folder, self.settings, self.status, self.tell, self.now = folder, settings, status, tell, now
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen | None = None
        self._looking = ("", 0)
        self._since = 0.0
        self._due = dict.fromkeys(self.models, now() + FIRST_S)

    def step(self) -> int:
        """Look after the look under way; begin the next that is due. The number of looks that ended."""
        if not self.settings.look_every_s:
            return 0
        if self._process is not None:
            if self._process.poll() is None and self.now() - self._since < TIMEOUT_S:
                return 0
            model, version = self._looking
            child.end(self._process)
            code, self._process = self._process.returncode, None
            self._conclude(model, version, code)
            return 1
        for model in self.models:
            if self.now() < self._due[model]:
                continue
            self._due[model] = self.now() + self.settings.look_every_s
            if version := (self.registry.aliases(model) or {}).get("champion"):
                self._begin(model, version)
                break
        return 0

    def stop(self) -> None:
        """End the child."""
        if self._process is not None:
            child.end(self._process)
            self._process = None

    def _files(self, model: str) -> tuple[Path, Path]:
        return self.folder / f"{model}.json", self.folder / f"{model}.log"

    def _begin(self, model: str, version: int) -> None:
        result, log = self._files(model)
        result.unlink(missing_ok=True)
        command = [*self.command, "drift", f"{model}/{version}", "--from", WINDOW, "--config", self.config_file]
        command += ["--tracking-uri", self.registry.tracking_uri, "--result", str(result)]
        try:
            self._process = child.start(command, log)
        except OSError as error:
            self._failed(model, version, f"cannot start {self.command[0]}: {error.strerror}")
            return
        self._looking, self._since = (model, version), self.now()

    def _conclude(self, model: str, version: int, code: int) -> None:
        result, log = self._files(model)
        try:
            found = json.loads(result.read_text()) if code == 0 else None
        except (OSError, ValueError):
            found = None
        if found is None:
            self._failed(model, version, child.reason(log, code))
            return
        self.status.count("oal_registry_drift_looks_total", result="done")
        try:
            tags = self.registry.version(model, version).tags
            for name, value in automatic.looked(self.settings, self.now(), tags, found["all"]).items():
                if value is not None:
                    self.registry.set_tag(model, version, name, value)
                elif name in tags:
                    self.registry.delete_tag(model, version, name)
        except Gone:
            return  # deleted meanwhile
        self.tell(TABLE, model, list(rows(found, model, version, int(self.now() * 1e6))))

    def _failed(self, model: str, version: int, why: str) -> None:
        """Nothing is known of its features: no row, and no tag changes; tags that nobody renews count for nothing."""
        self.status.count("oal_registry_drift_looks_total", result="failed")
        self.status.log(f"drift {model}/{version}: {why}")


def rows(found: dict, model: str, version: int, now_us: int) -> Iterable[list[dict]]:
    """Rows of a look, a record for all items together and for each access point; what is not known has none."""
    every = [(ALL, found["items"], found["all"])]
    every += [(ap, one["items"], one["psi"]) for ap, one in sorted(found["aps"].items())]
    for ap, items, psi in every:
        if psi:
            yield [
                {
                    "ts": now_us,
                    "model": model,
                    "version": version,
                    "ap_id": ap,
                    "feature": feature,
                    "psi": round(value, 6),
                    "items": items,
                }
                for feature, value in psi.items()
            ]
