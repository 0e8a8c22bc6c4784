"""The figures of /metrics, in Prometheus' text format."""

from __future__ import annotations

import threading

# name → (type, help). Labels are part of the key that a value is set under.
METRICS = {
    "oal_trainer_items_total": ("counter", "Training items by what became of them"),
    "oal_trainer_fits_total": ("counter", "Trees fitted"),
    "oal_trainer_fit_cpu_seconds_total": ("counter", "CPU time of fits"),
    "oal_trainer_decisions_total": ("counter", "Decisions by action and reason"),
    "oal_trainer_ships_total": ("counter", "Trees released"),
    "oal_trainer_renewals_total": ("counter", "Trees in force that were released again with another policy"),
    "oal_trainer_partitions": ("gauge", "Partitions of items that are this trainer's"),
    "oal_trainer_consumers_total": ("counter", "Consumers that took the place of one with a fatal error"),
    "oal_trainer_policies_wrong": ("gauge", "1 while the folder of policies is not taken as it is; the log says why"),
    "oal_trainer_transactions_total": ("counter", "Kafka transactions by result"),
    "oal_trainer_releases_refused_total": ("counter", "Records of ap.bundles.v1 that could not be read"),
    "oal_trainer_aps": ("gauge", "APs with a window here"),
    "oal_trainer_window_items": ("gauge", "Items in all windows"),
    "oal_trainer_lag_items": ("gauge", "Items in Kafka that are not yet read"),
    "oal_trainer_tick_seconds": ("gauge", "Time that the last round over all APs took"),
    "oal_trainer_mlflow_logged_total": ("counter", "Entries logged to MLflow"),
    "oal_trainer_mlflow_dropped_total": (
        "counter",
        "Entries for MLflow that were dropped: it was away, too slow, or refused them",
    ),
    "oal_trainer_broken_connections_total": ("counter", "Connections to this page that broke"),
    "oal_trainer_metrics_refused_total": ("counter", "Requests for this page without its token"),
}


class Metrics:
    """Values by name and labels. Written by the main loop, read by the page; guarded by a lock."""

    def __init__(self):
        self._lock = threading.Lock()
        self._values: dict[tuple[str, tuple], float] = {
            (name, ()): 0
            for name in METRICS
            if name not in ("oal_trainer_items_total", "oal_trainer_decisions_total", "oal_trainer_transactions_total")
        }

    def add(self, name: str, value: float = 1, **labels: str) -> None:
        """Raise a counter."""
        with self._lock:
            key = (name, tuple(labels.items()))
            self._values[key] = self._values.get(key, 0) + value

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge, or a counter that is counted elsewhere."""
        with self._lock:
            self._values[name, tuple(labels.items())] = value

    def text(self) -> str:
        """The page."""
        with self._lock:
            values = dict(self._values)
        lines = []
        for name, (kind, words) in METRICS.items():
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            for (of, labels), value in values.items():
                if of == name:
                    written = ",".join(f'{label}="{text}"' for label, text in labels)
                    lines.append(f"{name}{{{written}}} {value:.10g}" if written else f"{name} {value:.10g}")
        return "\n".join(lines) + "\n"
