"""How the service is doing: log lines, counters for /metrics, problems for /healthz. For several threads."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter

METRICS = {
    "oal_registry_releases_total": ("counter", "Releases by slot and action"),
    "oal_registry_records_refused_total": ("counter", "Records in ap.bundles.v1 that do not count as releases"),
    "oal_registry_refused_versions_total": ("counter", "Versions that could not be packaged"),
    "oal_registry_gate_total": ("counter", "Versions at the gate before champion, by result"),
    "oal_registry_webhooks_total": ("counter", "Webhooks by result"),
    "oal_registry_webhook_registrations_total": ("counter", "Times that the webhook was registered with MLflow"),
    "oal_registry_changes_total": ("counter", "Passes that found something to do, by what woke them"),
    "oal_registry_reconciles_total": ("counter", "Passes over aliases and tags, by result"),
    "oal_registry_retrains_total": ("counter", "Training runs by result"),
    "oal_registry_retrains_asked_total": ("counter", "Training runs that the service asked for, by schedule or drift"),
    "oal_registry_drift_looks_total": ("counter", "Looks at the features of champions, by result"),
    "oal_registry_metrics_refused_total": ("counter", "Requests for /metrics without its token"),
    "oal_registry_retrain_running": ("gauge", "1 while a training run is under way"),
    "oal_registry_policies": ("gauge", "Policy files in force"),
    "oal_registry_problems": ("gauge", "Problems that /healthz names"),
    "oal_registry_last_reconcile_timestamp_seconds": ("gauge", "Time of the last complete pass"),
    "oal_registry_reconcile_seconds_total": ("counter", "Time spent in passes"),
}


class Status:
    """Counters, gauges and problems; `log` takes a line."""

    def __init__(self, log=lambda line: print(f"oal-registry: {line}", file=sys.stderr, flush=True)):
        self._lock = threading.Lock()  # guards all below
        self._values: Counter = Counter()
        self._problems: dict[str, tuple[float, str]] = {}
        self.log = log

    def count(self, metric: str, by: float = 1, **labels: str) -> None:
        """Raise a counter."""
        with self._lock:
            self._values[metric, tuple(sorted(labels.items()))] += by

    def set(self, metric: str, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[metric, ()] = value

    def value(self, metric: str, **labels: str) -> float:
        """Value of a counter or gauge, 0 before its first."""
        with self._lock:
            return self._values[metric, tuple(sorted(labels.items()))]

    def problem(self, part: str, what: str) -> None:
        """`part` does not do its work. Logged when it begins and when it changes."""
        with self._lock:
            since, before = self._problems.get(part, (time.time(), ""))
            self._problems[part] = (since, what)
        if what != before:
            self.log(f"{part}: {what}")

    def well(self, part: str) -> None:
        """`part` does its work again. Logged when it did not before."""
        with self._lock:
            before = self._problems.pop(part, None)
        if before:
            self.log(f"{part}: well again after {time.time() - before[0]:.1f} s")

    def released(self, slot: str, action: str, what: str) -> None:
        """Count and log a change of releases."""
        self.count("oal_registry_releases_total", slot=slot, action=action)
        self.log(what)

    def refused(self, what: str, why: str) -> None:
        """Count and log a version that cannot become a release."""
        self.count("oal_registry_refused_versions_total")
        self.log(f"{what} is not released: {why}")

    def health(self) -> dict:
        """`status` is ok or degraded; `problems` by part, with how long they last."""
        with self._lock:
            problems = {
                part: {"since_s": round(time.time() - since, 1), "what": what}
                for part, (since, what) in self._problems.items()
            }
        return {"status": "degraded" if problems else "ok", "problems": problems}

    def exposition(self) -> str:
        """Prometheus' text format."""
        with self._lock:
            values = {**self._values, ("oal_registry_problems", ()): len(self._problems)}
        lines = []
        for metric, (kind, text) in METRICS.items():
            lines += [f"# HELP {metric} {text}.", f"# TYPE {metric} {kind}"]
            rows = sorted((labels, value) for (name, labels), value in values.items() if name == metric) or [((), 0)]
            for labels, value in rows:
                inside = ",".join(f'{name}="{text}"' for name, text in labels)
                lines.append(
                    f"{metric}{{{inside}}} {value:g}"
                    if inside and value < 1e6
                    else f"{metric}{f'{{{inside}}}' if inside else ''} {value!r}"
                )
        return "\n".join(lines) + "\n"
