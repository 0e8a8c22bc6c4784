"""One Kafka, ClickHouse and MLflow for the suite; trainers as processes, with what they wrote."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest
import yaml
from oal_schema.item import dumps
from oal_schema.policy_folder import SHIPPED

HERE = Path(__file__).resolve().parent
SOURCES = [HERE.parent / "src", HERE.parents[1] / "schema" / "src"]


def until(what: str, condition, seconds: float = 60):
    """Poll until `condition()` is true; its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what() if callable(what) else what}"
        time.sleep(0.05)
    return value


@pytest.fixture(autouse=True)
def committed(monkeypatch):
    """Versions are registered while their code is being written, too."""
    monkeypatch.setenv("OAL_GIT_REVISION", "a-revision")


@pytest.fixture(scope="session")
def platform(tmp_path_factory):
    from oal_local.platform import Platform

    services = ["kafka", "clickhouse", "mlflow"]
    with Platform(tmp_path_factory.mktemp("platform"), ports="auto", only=services, log=lambda _line: None) as running:
        yield running


def pytest_configure(config):
    config.addinivalue_line("markers", "server: needs Kafka, ClickHouse or MLflow; `make check` leaves it out")
    config.addinivalue_line("markers", "outage: something is killed or away; `make test-outages` runs it alone")


def pytest_collection_modifyitems(items):
    """Tests that need the platform are marked `server`; `make check` leaves them out."""
    for item in items:
        if "platform" in item.fixturenames:
            item.add_marker("server")


@pytest.fixture(scope="session")
def mlflow_uri(tmp_path_factory):
    """A real MLflow store and registry, in SQLite, without its server."""
    from mlflow import MlflowClient

    folder = tmp_path_factory.mktemp("mlflow")
    uri = f"sqlite:///{folder}/mlflow.db"
    for experiment in ("batch", "cc-select", "compare", "factors", "loss-cause", "window"):
        MlflowClient(uri, uri).create_experiment(experiment, artifact_location=str(folder / "artifacts"))
    return uri


def free_port() -> int:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


SHARED = tempfile.TemporaryDirectory(prefix="oal-trainer-keys-")


class Trainer:
    """A trainer process with a folder of its own; `start` after `kill` is the same trainer."""

    def __init__(self, platform, folder: Path, group: str, mlflow: dict | None = None, **changes):
        from oal_schema import keys
        from oal_schema.grant import grant

        folder.mkdir(parents=True)
        self.folder, self.port = folder, free_port()
        settings = yaml.safe_load((HERE.parent / "online.yaml").read_text())
        for key, value in changes.items():
            settings[key] = {**settings[key], **value} if isinstance(value, dict) else value
        (folder / "online.yaml").write_text(yaml.safe_dump(settings))
        # All trainers of a platform have one key; the registry's is for the releases that the tests write.
        shared = Path(SHARED.name)
        for name in ("sign.pem", "registry.pem"):
            if not (shared / name).exists():
                keys.make(shared / name)
            shutil.copy(shared / name, folder)
        self.key, self.registry = keys.load(folder / "sign.pem"), keys.load(folder / "registry.pem")
        lines = [keys.public_line(self.key, "online", grant("trainer"))]
        lines += [keys.public_line(self.registry, "registry", grant("registry"))]
        (folder / "trusted").write_text("\n".join(lines) + "\n")
        self.trusted = keys.read_trusted(folder / "trusted")
        self.policies = folder / "policies"
        self.policies.mkdir()
        for path in SHIPPED.glob("*.yaml"):
            shutil.copy(path, self.policies)
        kafka = {**platform.kafka.client("trainer"), "group.id": group, "session.timeout.ms": 6000}
        (folder / "config.yaml").write_text(
            yaml.safe_dump(
                {
                    "kafka": kafka,
                    "mlflow": mlflow,
                    "signing_key": str(folder / "sign.pem"),
                    "trusted_keys": str(folder / "trusted"),
                    "state_dir": str(folder / "state"),
                    "listen": f"127.0.0.1:{self.port}",
                    "settings": str(folder / "online.yaml"),
                    "policies": str(self.policies),
                }
            )
        )
        self.process: subprocess.Popen | None = None

    def start(self) -> Trainer:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES))}
        with open(self.folder / "log", "a") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "oal_training", "online", "--config", str(self.folder / "config.yaml")],
                env=env,
                stderr=out,
            )
        return self

    def kill(self, number: int = signal.SIGKILL) -> int:
        """End the process; its exit status."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(30)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def page(self, path: str) -> tuple[int, str]:
        """(status, text); (0, "") when it does not answer."""
        import urllib.error
        import urllib.request

        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """Sum of a metric over its labels."""
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in self.page("/metrics")[1].splitlines()
            if line.split("{")[0].split(" ")[0] == name
        )

    def healthy(self) -> bool:
        return self.page("/healthz")[0] == 200

    def log(self) -> str:
        return (self.folder / "log").read_text()


@pytest.fixture
def make_trainer(platform, tmp_path):
    """Makes trainers of one consumer group."""
    made: list[Trainer] = []
    group = f"trainer-{uuid.uuid4().hex[:8]}"

    def make(**options) -> Trainer:
        made.append(Trainer(platform, tmp_path / f"trainer-{len(made)}", group, **options))
        return made[-1].start()

    yield make
    for trainer in made:
        trainer.kill()


class Topics:
    """Writes items, reads what trainers wrote."""

    def __init__(self, platform):
        from confluent_kafka import Consumer, Producer

        self._producer = Producer(platform.kafka.client("admin"))
        self._consumers = {}
        for topic in ("platform.events.v1", "ap.bundles.v1"):
            consumer = Consumer(
                {
                    **platform.kafka.client("viewer"),
                    "group.id": f"viewer-{uuid.uuid4()}",
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                }
            )
            consumer.subscribe([topic])
            self._consumers[topic] = consumer
        self._seen: dict[str, list] = {topic: [] for topic in self._consumers}

    def items(self, items, partition: int | None = None) -> None:
        for item in items:
            extra = {} if partition is None else {"partition": partition}
            self._producer.produce(
                "training.items.v1", key=item.ap_id, value=dumps(item), on_delivery=_delivered, **extra
            )
            self._producer.poll(0)
        assert self._producer.flush(30) == 0

    def raw(self, value: bytes, key: str = "x") -> None:
        self._producer.produce("training.items.v1", key=key, value=value, on_delivery=_delivered)
        assert self._producer.flush(30) == 0

    def release(self, key: str, value: bytes | None) -> None:
        self._producer.produce("ap.bundles.v1", key=key, value=value, on_delivery=_delivered)
        assert self._producer.flush(30) == 0

    def _read(self, topic: str) -> list:
        while messages := self._consumers[topic].consume(500, 0.2):
            self._seen[topic] += [m for m in messages if m.error() is None]
        return self._seen[topic]

    def rows(self, table: str, ap_id: str) -> list[dict]:
        """Rows of platform.events.v1 so far that concern the AP."""
        found = []
        for message in self._read("platform.events.v1"):
            record = json.loads(message.value())
            if record["table"] == table:
                found += [r for r in record["rows"] if r.get("ap_id") == ap_id or r.get("scope") == f"ap/{ap_id}"]
        return found

    def releases(self, ap_id: str) -> list:
        """Releases of the AP's online trees so far, parsed."""
        from oal_schema import release

        mine = [m for m in self._read("ap.bundles.v1") if m.key() == f"online/ap/{ap_id}".encode()]
        return [release.parse(m.key(), m.value()) for m in mine if m.value() and m.value().startswith(b"{")]

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()


def _delivered(error, _message) -> None:
    assert error is None, error


@pytest.fixture
def topics(platform):
    it = Topics(platform)
    yield it
    it.close()
