"""`oal-registry serve`: promotion and retraining, driven by one loop that webhooks and a clock wake."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from oal_schema import keys
from oal_schema.bundle_law import RWND_FAIR
from oal_schema.manifest import known
from oal_schema.policy_file import PolicyError
from oal_schema.policy_folder import SHIPPED, PolicyFolder
from oal_training.errors import TrainingError
from oal_training.server_tls import ServerTls

from oal_registry import automatic, config, gate, registered, secret_files, signing_keys, wish
from oal_registry.bearer import Bearer
from oal_registry.drift import Drift
from oal_registry.errors import RegistryError
from oal_registry.http_server import HttpServer
from oal_registry.mlflow_client import MlflowRegistry, NotPermitted, Unreachable
from oal_registry.models import Models
from oal_registry.policy_reconciler import PolicyReconciler
from oal_registry.promotion import Promotion
from oal_registry.release_topic import Fenced, KafkaTrouble, ReleaseTopic
from oal_registry.retrain import Retraining
from oal_registry.slot_memory import SlotMemory
from oal_registry.status import Status
from oal_registry.unlearned import Unlearned
from oal_registry.webhook import PATH, Registration, Verifier

SETTINGS = Path(__file__).resolve().parents[2] / "registry.yaml"
LONGEST_PAUSE_S = 5


@dataclass(frozen=True)
class ServiceConfig:
    """The configuration file of `oal-registry serve`, checked."""

    path: str
    kafka: dict
    mlflow: config.Section
    signing_key: str
    trusted_keys: str
    host: str
    port: int
    webhook_url: str
    webhook_secret_file: str
    state: Path
    poll_s: float
    train_command: list[str]
    settings: dict
    policies: Path
    metrics_token_file: str
    tls: tuple[str, str] | None  # files of certificate and key of `listen`

    @classmethod
    def load(cls, path: str) -> ServiceConfig:
        """Read it; RegistryError names the key that is missing or wrong."""
        top = config.Section(config.load(path), path)
        host, port = config.address(top.get("listen", str), f"{path}: listen")
        state = config.folder(top.get("state_dir", str))
        tls = config.tls(top)
        made = cls(
            path=os.path.abspath(path),
            kafka=top.get("kafka", dict),
            mlflow=top.section("mlflow"),
            signing_key=top.get("signing_key", str),
            trusted_keys=top.get("trusted_keys", str),
            host=host,
            port=port,
            webhook_url=top.get("webhook_url", str, f"http{'s' if tls else ''}://{host}:{port}{PATH}"),
            webhook_secret_file=top.get("webhook_secret_file", str, str(state / "webhook.secret")),
            state=state,
            poll_s=float(top.get("poll_s", (int, float), 2)),
            train_command=[str(part) for part in top.get("train_command", list)],
            settings=load_settings(top.get("settings", str, str(SETTINGS))),
            policies=Path(top.get("policies", str, str(SHIPPED))),
            metrics_token_file=top.get("metrics_token_file", str, ""),
            tls=tls,
        )
        made.settings["retrain"] |= top.get("retrain", dict, {})
        automatic.settings(made.settings["retrain"], f"{path}: retrain")
        top.get("clickhouse", dict, {})  # for the training command, which reads this file too
        top.done()
        if not 0.1 <= made.poll_s <= 3600:
            raise RegistryError(f"{path}: poll_s is {made.poll_s:g}; it is seconds, 0.1 to 3600")
        if not made.train_command:
            raise RegistryError(f"{path}: train_command is empty")
        return made


def load_settings(path: str) -> dict:
    """`registry.yaml`: defaults of a canary, time limits. RegistryError names the key that is missing or wrong."""
    top = config.Section(config.load(path), path)
    canary = top.section("canary")
    made = {
        "canary": {
            "steps": wish.steps(canary.get("steps", list), f"{path}: canary.steps"),
            "soak_s": float(canary.get("soak_s", (int, float))),
            "min_aps": canary.get("min_aps", int),
            "min_onsets": canary.get("min_onsets", int),
            "deadline_s": float(canary.get("deadline_s", (int, float))),
            "activate_in_s": float(canary.get("activate_in_s", (int, float), 0)),
            "metric": canary.get("metric", str, ""),
            "limit": canary.get("limit", (int, float), None),
        },
        "champion_gate": gate.required(top.get("champion_gate", str, "required"), f"{path}: champion_gate"),
        "retrain": dict(top.get("retrain", dict)),
        "retrain_timeout_s": float(top.get("retrain_timeout_s", (int, float))),
        "mlflow_timeout_s": top.get("mlflow_timeout_s", int),
        "webhook_check_s": float(top.get("webhook_check_s", (int, float))),
    }
    wish.known_metric(made["canary"]["metric"], f"{path}: canary.metric")
    automatic.settings(made["retrain"], f"{path}: retrain")
    for section in (canary, top):
        section.done()
    return made


class Service:
    """Promotion and retraining on one thread; `run` returns after `stop`."""

    def __init__(self, settings: ServiceConfig, status: Status):
        self.status = status
        self.poll_s, self.webhook_check_s = settings.poll_s, settings.settings["webhook_check_s"]
        try:
            key = keys.load(settings.signing_key)
        except (OSError, ValueError) as error:
            raise RegistryError(f"signing key: {error}; make one with `oal-registry keys make`") from None
        secret = secret_files.read_or_make(
            settings.webhook_secret_file, "secret of the webhook", lambda: secrets.token_urlsafe(32)
        )
        self.registry = MlflowRegistry.of_section(settings.mlflow, settings.settings["mlflow_timeout_s"])
        self.trusted = signing_keys.trusted_file(settings.trusted_keys)
        signing_keys.check_own(keys.key_id(key), self.trusted.keys, settings.trusted_keys)
        self.releases = ReleaseTopic(settings.kafka, lambda: self.trusted.keys, keys.key_id(key))
        try:
            folder = PolicyFolder(settings.policies)
        except PolicyError as error:
            raise RegistryError(f"policies: {error}") from None
        self.policies = PolicyReconciler(self.releases, folder, key, status, known())
        self.promotions = [
            Promotion(
                Models(self.registry, manifest),
                self.releases,
                key,
                SlotMemory(settings.state / (f"slots-{name}.json" if name != RWND_FAIR else "slots.json")),
                status,
                settings.settings["canary"],
                folder,
                gate.Gate(self.registry, name, settings.settings["champion_gate"], status),
            )
            if manifest.models
            else Unlearned(manifest, self.releases, key, status, folder)
            for name, manifest in known().items()
        ]
        self.retraining = Retraining(
            self.registry,
            registered.names(),
            settings.train_command,
            settings.path,
            settings.state / "retrain",
            settings.settings["retrain_timeout_s"],
            status,
        )
        retrain = automatic.settings(settings.settings["retrain"], "retrain")
        self.automatic = automatic.Automatic(self.registry, registered.heads(), retrain, status)
        self.drift = Drift(
            self.registry,
            registered.heads_with_items(),
            settings.train_command,
            settings.path,
            settings.state / "drift",
            retrain,
            status,
            self._tell,
        )
        self.registration = Registration(self.registry, settings.webhook_url, secret)
        self._wake, self._stopping, self._woken_by = threading.Event(), False, "start"
        self._registration_due = 0.0
        self.http = HttpServer(
            settings.host,
            settings.port,
            status,
            Verifier(secret),
            lambda: self.wake("webhook"),
            Bearer(settings.metrics_token_file),
            _server_tls(settings.tls),
        )
        status.problem("start", "has not looked at Kafka and MLflow yet")

    def wake(self, by: str) -> None:
        """End the present pause; `by`: who asks, for the counters. For any thread."""
        self._woken_by = by
        self._wake.set()

    def stop(self, *_) -> None:
        """Ask `run` to return; safe in a signal handler."""
        self._stopping = True
        self._wake.set()

    def run(self) -> None:
        """Until SIGTERM or SIGINT. Raises Fenced when another registry takes over. For the main thread."""
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        signal.signal(signal.SIGCHLD, lambda *_: self.wake("child"))
        self.http.start()
        failures = 0
        try:
            while not self._stopping:
                self._wake.clear()
                by, self._woken_by = self._woken_by, "poll"
                failures = 0 if self.step(by) else failures + 1
                pause = (
                    self.poll_s
                    if failures == 0
                    else min(self.poll_s * 2 ** min(failures - 1, 8), max(self.poll_s, LONGEST_PAUSE_S))
                )
                self._wake.wait(pause)
        finally:
            self.retraining.stop()
            self.drift.stop()
            self.http.stop()

    def step(self, woken_by: str) -> bool:
        """One pass; False when MLflow or Kafka did not do their part and it should be tried again."""
        started = time.monotonic()
        changes, kafka_well, mlflow_well = 0, True, True
        try:
            self._look_at_releases()
            self.status.well("kafka")
            if self.policies.look():
                changes += self.policies.reconcile()
                changes += sum(promotion.reconcile() for promotion in self.promotions)
                changes += self.policies.reconcile()
        except KafkaTrouble as error:
            self.status.problem("kafka", str(error))
            kafka_well = False
        except (Unreachable, NotPermitted) as error:
            mlflow_well = self._mlflow_trouble(error)
        try:
            if mlflow_well:  # Kafka need not be well for training
                changes += self.automatic.step() + self.retraining.step() + self.drift.step()
                self.status.well("mlflow")
                self._keep_webhook()
        except (Unreachable, NotPermitted) as error:
            mlflow_well = self._mlflow_trouble(error)
        result = "done" if kafka_well and mlflow_well else "mlflow" if kafka_well else "kafka"
        if changes:
            self.status.count("oal_registry_changes_total", woken_by=woken_by)
        if result == "done":
            self.status.well("start")
            self.status.set("oal_registry_last_reconcile_timestamp_seconds", time.time())
        self.status.count("oal_registry_reconciles_total", result=result)
        self.status.count("oal_registry_reconcile_seconds_total", by=time.monotonic() - started)
        return result == "done"

    def _tell(self, table: str, key: str, records: list[list[dict]]) -> None:
        """Rows of a look. Those that Kafka does not take are gone: the next look says more."""
        try:
            self.releases.tell(table, key, records)
        except KafkaTrouble as error:
            self.status.count("oal_registry_drift_looks_total", result="untold")
            self.status.log(f"drift of {key}: {error}")

    def _look_at_releases(self) -> None:
        """Read what is in force; report and count records that no trusted key signed, and never sign them anew."""
        if self.trusted.look():
            self.status.log(f"{self.trusted.path} changed: releases are verified anew")
            self.releases.close()
        if self.trusted.wrong:
            self.status.problem("trusted keys", f"{self.trusted.wrong}; the earlier ones stay in use")
        else:
            self.status.well("trusted keys")
        if self.releases.is_open:
            refused = self.releases.look()
        else:
            self.releases.open()
            refused = [(name, reason) for name, (reason, _) in self.releases.refused.items()]
        for name, reason in refused:
            self.status.count("oal_registry_records_refused_total", reason=reason)
            _, why = self.releases.refused.get(name, (reason, "replaced since"))
            self.status.log(f"{name} does not count, its slot is empty: {reason}: {why}")
        standing = self.releases.refused
        if standing:
            named = "; ".join(f"{name}: {why[0]}: {why[1]}" for name, why in sorted(standing.items())[:3])
            self.status.problem("releases", f"{len(standing)} records that nobody may have written: {named}")
        else:
            self.status.well("releases")

    def _mlflow_trouble(self, error: RegistryError) -> bool:
        self.status.problem("mlflow", str(error))
        self._registration_due = 0.0  # it may have been restarted: look at the webhook as soon as it answers
        return False

    def _keep_webhook(self) -> None:
        """A webhook that cannot be had is no problem of health: polling does the same, later."""
        if time.monotonic() < self._registration_due:
            return
        self._registration_due = time.monotonic() + self.webhook_check_s
        try:
            if self.registration.ensure():
                self.status.count("oal_registry_webhook_registrations_total")
                self.status.log("webhook registered with MLflow")
        except (NotPermitted, Unreachable) as error:
            self.status.log(f"webhook: not registered, polling every {self.poll_s:g} s instead: {error}")


def _server_tls(files: tuple[str, str] | None) -> ServerTls | None:
    """TLS with these files of certificate and key; None without. RegistryError when they hold no such thing."""
    try:
        return ServerTls(*files) if files else None
    except TrainingError as error:
        raise RegistryError(str(error)) from None


def serve(path: str) -> int:
    """Run until SIGTERM; 1 when another registry took over."""
    status = Status()
    service = Service(ServiceConfig.load(path), status)
    status.log(f"listens on port {service.http.port}, polls every {service.poll_s:g} s")
    try:
        service.run()
    except Fenced as error:
        status.log(str(error))
        return 1
    return 0
