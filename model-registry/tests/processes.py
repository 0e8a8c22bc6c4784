"""The real MLflow server and the real registry service as child processes, with their configuration files."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import yaml
from oal_schema import keys
from oal_schema.grant import grant
from oal_schema.policy_folder import SHIPPED
from waiting import until

FOLDER = Path(__file__).resolve().parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        [*(str(path / "src") for path in (FOLDER, FOLDER.parent / "schema", FOLDER.parent / "training")),
         os.environ.get("PYTHONPATH", "")]
    ),
}
COMMAND = [sys.executable, "-m", "oal_registry"]  # what the wrapper `oal-registry` runs
PASSES = 'oal_registry_reconciles_total{result="done"}'
USERS = {"admin": "admin", "registry": "admin", "owner": "owner", "visitor": "viewer"}


def free_port() -> int:
    """Below the range of outgoing connections, so that none takes it while a service restarts."""
    while True:
        port = random.randrange(12_000, 19_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def secret(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


class Process:
    """A child with its log; `start` may be called again after it ended."""

    def __init__(self, name: str, folder: Path, arguments: list[str]):
        self.name, self.log, self._arguments = name, folder / f"{name}.log", arguments
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        assert self._process is None or self._process.poll() is not None, f"{self.name} runs already"
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen([*COMMAND, *self._arguments], stdout=log, stderr=log, env=ENVIRONMENT)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self, number: int = signal.SIGTERM, seconds: float = 120) -> int:
        """Send a signal and wait for the end; the exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(
                f"{self.name} did not end within {seconds} s of {signal.Signals(number).name}:\n{self.tail()}"
            ) from None

    def tail(self, lines: int = 25) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


class MlflowServer(Process):
    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.passwords = {user: f"password of {user} 1" for user in USERS}
        self.config = folder / "server.yaml"
        self.write_config()
        super().__init__("mlflow", folder, ["server", "--config", str(self.config)])

    def write_config(self) -> None:
        entries = [
            {
                "user": user,
                "role": role,
                "password_file": secret(self.folder / f"{user}.password", self.passwords[user]),
            }
            for user, role in USERS.items()
        ]
        self.config.write_text(
            yaml.safe_dump(
                {
                    "listen": f"127.0.0.1:{self.port}",
                    "state_dir": str(self.folder / "state"),
                    "admin": entries[0],
                    "users": entries[1:],
                    "webhook_key_file": str(self.folder / "webhook.key"),
                }
            )
        )

    def client_section(self, user: str) -> dict:
        return {"tracking_uri": self.url, "user": user, "password_file": str(self.folder / f"{user}.password")}

    def wait_ready(self, seconds: float = 120) -> None:
        def ready():
            assert not self.ended(), f"MLflow ended:\n{self.tail()}"
            return get(f"{self.url}/health")[0] == 200

        until(ready, "MLflow ready", seconds)


class RegistryService(Process):
    """`oal-registry serve` with short periods. `kafka`: librdkafka options."""

    def __init__(
        self,
        folder: Path,
        mlflow: MlflowServer,
        kafka: dict,
        signing_key: Path,
        train_command: list[str],
        poll_s: float = 2.0,
        webhook_url: str | None = None,
        webhook_check_s: float = 3.0,
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.trusted = folder / "trusted-keys"
        self.trusted.write_text(keys.public_line(keys.load(signing_key), "test", grant("registry")) + "\n")
        self.url = f"http://127.0.0.1:{self.port}"
        self.webhook_secret_file = folder / "webhook.secret"
        shipped = yaml.safe_load((FOLDER / "registry.yaml").read_text())
        settings = shipped | {
            "webhook_check_s": webhook_check_s,
            "champion_gate": "none",  # made-up models; test_gate.py has the gate, tests/ one on the whole platform
            "retrain": shipped["retrain"] | {"look_every_s": 0},  # its child is the one that tests look for
            "retrain_timeout_s": 60,
            "mlflow_timeout_s": 5,
        }
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
        self.policies = folder / "policies"
        self.policies.mkdir(exist_ok=True)
        for path in SHIPPED.glob("*.yaml"):
            shutil.copy(path, self.policies)
        self.config = folder / "registry.yaml"
        self.config.write_text(
            yaml.safe_dump(
                {
                    "kafka": kafka,
                    "mlflow": mlflow.client_section("registry"),
                    "signing_key": str(signing_key),
                    "trusted_keys": str(self.trusted),
                    "listen": f"127.0.0.1:{self.port}",
                    "webhook_secret_file": str(self.webhook_secret_file),
                    "state_dir": str(folder / "state"),
                    "poll_s": poll_s,
                    "train_command": train_command,
                    "settings": str(folder / "settings.yaml"),
                    "policies": str(self.policies),
                    "clickhouse": {
                        "url": "http://127.0.0.1:1",
                        "user": "analyst",
                        "password_file": "none",
                        "database": "oal",
                    },
                    **({"webhook_url": webhook_url} if webhook_url else {}),
                }
            )
        )
        super().__init__("registry", folder, ["serve", "--config", str(self.config)])

    def wait_ready(self, seconds: float = 120) -> None:
        def ready():
            assert not self.ended(), f"the registry ended:\n{self.tail()}"
            return get(f"{self.url}/healthz")[0] == 200

        until(ready, "registry ready", seconds)

    def ring(
        self, key: str = "", stamp: float | None = None, identity: str = "", body: bytes = b"{}"
    ) -> tuple[int, str]:
        """Send a webhook as MLflow would, genuine unless said otherwise: it wakes the service. (status, text)."""
        key = key or self.webhook_secret_file.read_text().strip()
        identity, text = identity or uuid.uuid4().hex, str(int(time.time() if stamp is None else stamp))
        signature = hmac.new(key.encode(), f"{identity}.{text}.".encode() + body, hashlib.sha256).digest()
        headers = {
            "X-MLflow-Delivery-Id": identity,
            "X-MLflow-Timestamp": text,
            "X-MLflow-Signature": f"v1,{base64.b64encode(signature).decode()}",
        }
        return get(f"{self.url}/webhook", data=body, headers=headers)

    def passes(self, n: int = 2) -> None:
        """Wait for n complete passes, woken one after the other. The first may have begun before; the others have not.
        """
        for _ in range(n):
            seen = self.metric(PASSES)
            self.ring()
            until(lambda seen=seen: self.metric(PASSES) > seen, "a pass")

    def health(self) -> dict:
        return json.loads(get(f"{self.url}/healthz")[1] or "{}")

    def metric(self, line: str) -> float:
        """Value of a metric, written as in the exposition: name{label="value"}."""
        for row in get(f"{self.url}/metrics")[1].splitlines():
            if row.startswith(line + " "):
                return float(row.rpartition(" ")[2])
        return 0.0


def get(
    url: str, user: tuple[str, str] | None = None, data: bytes | None = None, headers: dict | None = None
) -> tuple[int, str]:
    """(status, body) of a request; status 0 when nobody answers."""
    request = urllib.request.Request(url, data, headers or {})
    if user:
        request.add_header("Authorization", "Basic " + base64.b64encode(":".join(user).encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError:
        return 0, ""
