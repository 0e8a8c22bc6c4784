"""What the trainer does, in MLflow: one long run per AP and UTC day, on a thread of its own that can be as late as it
likes.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from oal_training.online import provenance
from oal_training.online.decision import Decision
from oal_training.online.metrics import Metrics
from oal_training.online.mlflow_client import Client, Refused, Unavailable

EXPERIMENT = "online"
EVERY_US = 10_000_000  # of an AP, unless a tree is shipped
WAITING = 2000  # entries; more are dropped
TREES_KEPT = 50  # artifacts of a run
RETRY_S = (1.0, 30.0)


@dataclass(frozen=True)
class Entry:
    """What there is to log about one decision. `tree`: name and content of the artifact, of a shipped tree."""

    ap_id: str
    ts_us: int
    feature_hash: int
    metrics: dict[str, float]
    tree: tuple[str, bytes] | None


def entry(decision: Decision, ships: int, version: int = 0, bundle_hash: str = "") -> Entry:
    """The entry of a decision; with its artifact when it was shipped. `ships`: of the AP since the trainer started."""
    metrics = {
        "items": decision.items,
        "test_items": decision.test_items,
        "test_onsets": decision.test_onsets,
        "drift": decision.drift,
        "fit_us": decision.fit_us,
        "shipped": ships,
    }
    for name, score in (
        ("candidate", decision.candidate),
        ("in_force", decision.in_force),
        ("persistence", decision.persistence),
    ):
        metrics |= {f"{name}_onset_ap": score.onset_ap, f"{name}_macro_f1": score.macro_f1}
    metrics = {k: float(v) for k, v in metrics.items() if v == v}
    if decision.tree is not None:
        metrics["nodes"] = float(decision.tree.n_nodes)
    return Entry(
        decision.ap_id,
        decision.ts_us,
        decision.feature_hash,
        metrics,
        (
            (f"{version:08d}-{bundle_hash[:16]}.json", tree_json(decision, version, bundle_hash))
            if decision.shipped
            else None
        ),
    )


def tree_json(decision: Decision, version: int, bundle_hash: str) -> bytes:
    """A shipped tree and why it was shipped."""
    tree = decision.tree
    return json.dumps(
        {
            "ap_id": decision.ap_id,
            "version": version,
            "bundle": bundle_hash,
            "reason": decision.reason,
            "ts_us": decision.ts_us,
            "train_until_us": decision.train_until_us,
            "train_items": decision.train_items,
            "feature_hash": f"{decision.feature_hash:016x}",
            "feature": tree.feature.tolist(),
            "threshold": tree.threshold.tolist(),
            "right": tree.right.tolist(),
            "missing_right": tree.missing_right.astype(int).tolist(),
            "leaf_class": tree.leaf_class.tolist(),
            "leaf_permille": tree.leaf_permille.tolist(),
        }
    ).encode()


class Tracking:
    """Bounded queue and thread. `offer` never waits; what does not fit is counted as dropped."""

    def __init__(self, client: Client, metrics: Metrics, log: Callable[[str], None], trainer: str):
        self._client, self._metrics, self._log, self._trainer = client, metrics, log, trainer
        self._queue: queue.Queue[Entry | None] = queue.Queue(WAITING)
        self._last: dict[str, int] = {}
        self._runs: dict[str, tuple[str, str]] = (
            {}
        )  # AP → (day, run); read by the main loop, replaced whole by the thread
        self._experiment = ""
        self._away = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)

    def start(self) -> None:
        """Begin to log, on a thread of its own."""
        self._thread.start()

    def stop(self, seconds: float = 3.0) -> None:
        """Log what waits for at most so long, then let go."""
        self._stopping.set()
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            pass
        self._thread.join(seconds)

    def run_id(self, ap_id: str) -> str:
        """The AP's run, "" while there is none."""
        return self._runs.get(ap_id, ("", ""))[1]

    def wanted(self, decision: Decision) -> bool:
        """Is it time for this AP?"""
        return decision.shipped or decision.ts_us - self._last.get(decision.ap_id, 0) >= EVERY_US

    def forget(self, ap_ids: Iterable[str]) -> None:
        """These APs are silent, or another trainer's."""
        for ap_id in ap_ids:
            self._last.pop(ap_id, None)

    def offer(self, new: Entry) -> None:
        """Queue an entry."""
        self._last[new.ap_id] = new.ts_us
        try:
            self._queue.put_nowait(new)
        except queue.Full:
            self._metrics.add("oal_trainer_mlflow_dropped_total")

    def _work(self) -> None:
        while (new := self._queue.get()) is not None:
            wait_s = RETRY_S[0]
            while True:
                try:
                    self._write(new)
                    self._metrics.add("oal_trainer_mlflow_logged_total")
                    if self._away:
                        self._log("MLflow: it answers again")
                        self._away = False
                    break
                except Unavailable as error:
                    if not self._away:
                        self._log(f"MLflow: {error}; trees go on without it")
                        self._away = True
                    if self._stopping.wait(wait_s):
                        return
                    wait_s = min(2 * wait_s, RETRY_S[1])
                except Refused as error:
                    self._log(f"MLflow refuses: {error}")
                    self._metrics.add("oal_trainer_mlflow_dropped_total")
                    self._runs = {
                        ap: run for ap, run in self._runs.items() if ap != new.ap_id
                    }  # somebody may have deleted it
                    self._experiment = ""
                    break

    def _write(self, new: Entry) -> None:
        run = self._run(new)
        self._client.log_metrics(run, new.ts_us // 1000, new.ts_us // 1_000_000 % 86400, new.metrics)
        if new.tree is None:
            return
        name, content = new.tree
        self._client.put_artifact(self._experiment, run, f"trees/{name}", content)
        for path in sorted(self._client.artifacts(run, "trees"))[:-TREES_KEPT]:
            self._client.delete_artifact(self._experiment, run, path)

    def _run(self, new: Entry) -> str:
        day = datetime.fromtimestamp(new.ts_us / 1e6, UTC).date().isoformat()
        known_day, run = self._runs.get(new.ap_id, ("", ""))
        if known_day == day:
            return run
        if run:
            self._client.finish_run(run, time.time_ns() // 1_000_000)
        if not self._experiment:
            self._experiment = self._client.experiment(EXPERIMENT)
        tags = {"oal.ap_id": new.ap_id, "oal.day": day, "oal.feature_hash": f"{new.feature_hash:016x}"}
        found = self._client.find_run(self._experiment, tags)
        if found is None:
            more = {
                **provenance.tags(),
                "oal.trainer": self._trainer,
                "oal.source": "training.items.v1",
                "mlflow.source.name": "oal-train online",
            }
            found = self._client.create_run(self._experiment, f"{new.ap_id} {day}", new.ts_us // 1000, {**tags, **more})
        before = (datetime.fromisoformat(day) - timedelta(days=1)).date().isoformat()
        self._runs = {ap: run for ap, run in self._runs.items() if run[0] >= before} | {new.ap_id: (day, found)}
        return found
