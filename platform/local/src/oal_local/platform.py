"""An instance of the platform: start it, ask it, disturb it, stop it. Needs nothing but Python's standard library.

    with Platform(folder, only=["kafka", "clickhouse"]) as p:
        p.kafka.bootstrap, p.kafka.client("viewer"), p.clickhouse.query("SELECT 1"), p.kill("kafka", 9),
        p.wait_ready("kafka")
"""
import fcntl
import os
import re
import signal
import sys
import time
from contextlib import contextmanager
from functools import cached_property

from oal_local import (
    classdata,
    classdata_record,
    clickhouse,
    distribution,
    flink,
    grafana,
    jolokia,
    kafka,
    mlflow,
    passwords,
    pki,
    push,
    registry,
    settings,
    telegraf,
    trainer,
)
from oal_local.clients import ClickHouse, Flink, Kafka, MLflow, Push
from oal_local.errors import PlatformError
from oal_local.paths import REPO, State, python
from oal_local.services import SERVICES, Service, chosen, fingerprint
from oal_local.supervisor import Supervisor, alive

DEFAULT_STATE = REPO / "build" / "local"
ERROR_LINE = re.compile(r"\b(ERROR|FATAL|Caused by|Traceback)\b|^[\w.]*(Exception|Error):|<Error>|^\w+: ")
CRASHES_BORNE = 3  # of a service while `up` waits for it
READY_SECONDS = 180  # a start takes 5 to 20 s; on a machine that is busy with builds several times that


class Platform:
    def __init__(self, state_dir=DEFAULT_STATE, ports: str | None = None, only=None, migrate: bool = True, log=None,
                 **changes):
        """`changes` are fields of settings.Settings, for example partitions=2 or job_jar=…; `log` takes lines of
        progress.
        """
        self.state = State(state_dir)
        self.only = chosen(only)
        self.with_migrate = migrate
        self.changes = {**changes, **({"ports_mode": ports} if ports else {})}
        self.supervisor = Supervisor(self.state)
        self.log = log or (lambda line: print(line, file=sys.stderr, flush=True))

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        self.down()

    @property
    def settings(self) -> settings.Settings:
        current = settings.load(self.state)
        if current is None:
            raise PlatformError(
                f"there is no instance in {self.state.dir}; start one with `oal-local up --state {self.state.dir}`")
        return current

    # --- life

    def up(self) -> "Platform":
        """Start what is not running, in order, each when what it needs is ready. Safe to call again."""
        setup(self.only)
        self.state.make()
        with self._locked():
            current = settings.resolve(self.state, self.changes, bool(self._processes()))
            self._check_job(current)
            pki.init(self.state)
            for part in (jolokia, kafka, clickhouse, flink, mlflow, registry, trainer, push, grafana, telegraf):
                part.render(self.state, current)
            self.supervisor.start()
            try:
                # These need nothing, so they start side by side; MLflow is slow, and the others can wait for it by
                # themselves.
                first = [service for service in self.only if service.name in (kafka.NAME, clickhouse.NAME, mlflow.NAME)]
                for service in first:
                    self._start(service, current)
                self._storage_ready(current)
                for service in self.only:
                    if service not in first:
                        self._start(service, current)
                        self.wait_ready(service.name)
                if mlflow.NAME in [service.name for service in first]:
                    self.wait_ready(mlflow.NAME)
            except BaseException:
                self._stop()
                raise
        return self

    def _start(self, service: Service, current) -> None:
        self._stop_if_outdated(service, current)
        self.supervisor.start_process(service.name)

    def _stop_if_outdated(self, service: Service, current) -> None:
        started_with = self.state.run / f"{service.name}.files"
        if self.supervisor.info()[service.name]["pid"] and started_with.exists() \
                and started_with.read_text() != fingerprint(service, self.state, current):
            self.log(f"{service.name}: restarting, because what it reads at its start has changed")
            self.supervisor.stop_process(service.name)

    def _storage_ready(self, current) -> None:
        names = [service.name for service in self.only]
        if kafka.NAME in names:
            self.wait_ready(kafka.NAME)
            kafka.apply_topics(self.state, current)
        if clickhouse.NAME in names:
            self.wait_ready(clickhouse.NAME)
            if self.with_migrate:
                clickhouse.migrate(self.state, current)

    def _check_job(self, current) -> None:
        if SERVICES[flink.JOBMANAGER] in self.only and not os.path.isfile(current.job_jar):
            raise PlatformError(
                f"the Flink job {current.job_jar} is missing; build it (make -C stream-jobs build), name another "
                "with --job-jar, or leave Flink out with `--only kafka,clickhouse`")

    def down(self) -> None:
        """Stop everything in reverse order; returns when no process is left. Data stays. Safe to call again."""
        if not self.state.dir.is_dir():
            return
        self.state.make()
        with self._locked():
            self._stop()

    def _stop(self) -> None:
        self.supervisor.shutdown()
        # What a killed process manager left behind ends by itself (launch.py); what does not is ended here.
        left = self._processes()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in left.values():
                _signal(pid, number)
            deadline = time.monotonic() + 30
            while (left := self._processes()) and time.monotonic() < deadline:
                time.sleep(0.05)
        if left:
            raise PlatformError(f"these processes did not end: {left}")

    def running(self) -> list[str]:
        """Names of the services of this instance that have a process."""
        return sorted(self._processes())

    def _processes(self) -> dict[str, int]:
        """Service processes of this instance that are alive, by name, whatever their parent is."""
        found = {}
        for name in SERVICES:
            try:
                pid = int((self.state.run / f"{name}.pid").read_text())
            except (OSError, ValueError):
                continue
            if alive(pid, str(self.state.dir)):
                found[name] = pid
        return found

    @contextmanager
    def _locked(self):
        with open(self.state.lock, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # --- while it runs

    def status(self) -> list[dict]:
        """One entry a service: name, state (Supervisor's word), pid, ready, uptime_s."""
        info = self.supervisor.info()
        current = settings.load(self.state)
        rows = []
        for service in SERVICES.values():
            process = info.get(service.name, {})
            up = process.get("statename") in ("RUNNING", "STARTING")
            rows.append({
                "name": service.name, "state": process.get("statename", "STOPPED"), "pid": process.get("pid", 0),
                "ready": bool(up and current and service.ready(self.state, current)),
                "uptime_s": process["now"] - process["start"] if up else 0
            })
        return rows

    def wait_ready(self, name: str, seconds: float = READY_SECONDS) -> None:
        """Return when the service does its work; raise with its log when it does not in time, or crashes again and
        again.
        """
        service, current = _service(name), self.settings
        started = asked = time.monotonic()
        pids = set()
        while not service.ready(self.state, current):
            pids.add(self.supervisor.info().get(name, {}).get("pid", 0))
            if len(pids - {0}) > CRASHES_BORNE:
                raise PlatformError(
                    f"{name} starts and ends again and again; {self.state.log(name)} says\n{self.complaint(name)}")
            if time.monotonic() > started + seconds:
                raise PlatformError(
                    f"{name} was not ready after {seconds:.0f} s; {self.state.log(name)} says\n{self.complaint(name)}")
            # What starts is not to be kept busy with answers.
            time.sleep(min(max(0.1, 3 * (time.monotonic() - asked)), 1))
            asked = time.monotonic()
        self.log(f"{name}: ready after {time.monotonic() - started:.1f} s")

    def pid(self, name: str) -> int:
        return self.supervisor.pid(_service(name).name)

    def kill(self, name: str, number: int = signal.SIGTERM) -> int:
        """Send a signal to the service's process. The process manager starts it again."""
        pid = self.pid(name)
        os.kill(pid, number)
        return pid

    def stop(self, name: str) -> None:
        """Stop one service; it stays down until start()."""
        self.supervisor.stop_process(_service(name).name)

    def start(self, name: str) -> None:
        """Start one service again after stop(); does not wait."""
        self.supervisor.start_process(_service(name).name)

    def restart(self, name: str) -> None:
        self.stop(name)
        self.start(name)
        self.wait_ready(name)

    def complaint(self, name: str, lines: int = 20) -> str:
        """The latest lines of a service's log that name an error, or else its latest lines."""
        try:
            log = self.state.log(name).read_text(errors="replace").splitlines()
        except OSError:
            return "(no log yet)"
        return "\n".join(([line for line in log if ERROR_LINE.search(line)] or log)[-lines:])

    def issue_certificates(self, *ap_ids: str, site: str = "") -> None:
        """Certificates and batch keys of these APs; what is there stays."""
        if ap_ids:
            pki.access_points(self.state, *ap_ids, site=site)

    @cached_property
    def kafka(self) -> Kafka:
        return Kafka(self)

    @cached_property
    def clickhouse(self) -> ClickHouse:
        return ClickHouse(self)

    @cached_property
    def flink(self) -> Flink:
        return Flink(self)

    @cached_property
    def mlflow(self) -> MLflow:
        return MLflow(self)

    @cached_property
    def push(self) -> Push:
        return Push(self)

    def env(self) -> dict[str, str]:
        """Addresses and files as environment variables."""
        return {
            "OAL_STATE": str(self.state.dir),
            "OAL_KAFKA_BOOTSTRAP": self.kafka.bootstrap,
            "OAL_PKI": str(self.state.pki),
            "OAL_KAFKA_CA": str(self.state.pki / "ca.crt"),
            "OAL_CLICKHOUSE_URL": self.clickhouse.http_url,
            "OAL_CLICKHOUSE_DATABASE": clickhouse.DATABASE,
            **{f"OAL_CLICKHOUSE_{user.upper()}_PASSWORD_FILE": str(passwords.file(self.state, user))
               for user in ("admin", *clickhouse.SHARED_USERS)},
            "OAL_FLINK_REST": self.flink.rest_url,
            "OAL_FLINK_CERT": str(self.state.pki / "operator.crt"),
            "OAL_FLINK_KEY": str(self.state.pki / "operator.key"),
            "OAL_JOB_PROPERTIES": str(self.state.job_properties),
            "OAL_MLFLOW_URL": self.mlflow.url,
            "OAL_MLFLOW_USER": "admin",
            "OAL_MLFLOW_PASSWORD_FILE": str(passwords.file(self.state, "admin", "mlflow")),
            "OAL_REGISTRY_URL": registry.url(self.settings),
            "OAL_TRAINER_URL": trainer.url(self.settings),
            "OAL_METRICS_TOKEN_FILE": str(passwords.token_file(self.state, "metrics.token")),
            "OAL_PUSH_AP_URL": self.push.ap_url,
            "OAL_PUSH_ADMIN_URL": self.push.admin_url,
            "OAL_PUSH_ADMIN_TOKEN_FILE": str(self.push.token_file),
            "OAL_TRUSTED_KEYS": str(self.state.trusted_keys),
            "OAL_LOGS": str(self.state.logs),
        }


def setup(services=None) -> None:
    """Download what the services need; safe to run again and in parallel."""
    names = {service.name for service in services or SERVICES.values()}
    distribution.ensure_java()
    python()
    if kafka.NAME in names:
        distribution.ensure("kafka")
    if names & {flink.JOBMANAGER, flink.TASKMANAGER}:
        distribution.ensure("flink")
    if names & set(classdata.DISTRIBUTION):
        classdata_record.ensure()
    if telegraf.NAME in names:
        telegraf.program()


def _service(name: str) -> Service:
    if name not in SERVICES:
        raise PlatformError(f"no such service: {name}; there are {', '.join(SERVICES)}")
    return SERVICES[name]


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it ended in between
