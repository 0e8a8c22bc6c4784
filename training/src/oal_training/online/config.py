"""The service's configuration file (`oal-train online --config F`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml
from oal_schema.policy_folder import SHIPPED

from oal_training.errors import TrainingError
from oal_training.online import settings as online_settings
from oal_training.online.settings import Settings


@dataclass(frozen=True)
class Mlflow:
    """Section `mlflow`: address of the tracking server, user, the file with the password, and the authority behind an
    https address (None: those of the system).
    """

    tracking_uri: str
    user: str
    password_file: str
    ca_file: str | None = None


@dataclass(frozen=True)
class Config:
    """kafka: librdkafka options; trusted_keys: file of the keys whose releases count; mlflow None: nothing is logged
    there; listen: (host, port) of /healthz and /metrics;
    policies: folder of control policies (policies/in-force/README.md); metrics_token_file: what /metrics asks for,
    None: nothing; tls: files of certificate and key of `listen`, None: plain HTTP.
    """

    kafka: dict[str, str]
    mlflow: Mlflow | None
    signing_key: str
    trusted_keys: str
    state_dir: Path
    listen: tuple[str, int]
    settings: Settings
    policies: Path
    metrics_token_file: str | None = None
    tls: tuple[str, str] | None = None


def load(path: str) -> Config:
    """TrainingError names what is missing or wrong."""
    try:
        data = yaml.safe_load(Path(path).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise TrainingError(f"configuration {path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise TrainingError(f"configuration {path}: not a mapping")
    needed = ("kafka", "signing_key", "trusted_keys", "state_dir", "listen")
    known = (*needed, "mlflow", "settings", "policies", "metrics_token_file", "tls")
    if unknown := sorted(set(data) - set(known)):
        raise TrainingError(f"configuration {path}: {unknown[0]} is unknown; there are {', '.join(known)}")
    for name in needed:
        if not data.get(name):
            raise TrainingError(f"configuration {path}: {name} is missing")
    if not isinstance(data["kafka"], dict) or "bootstrap.servers" not in data["kafka"]:
        raise TrainingError(f"configuration {path}: kafka needs librdkafka's options, bootstrap.servers at least")
    host, _, port = str(data["listen"]).rpartition(":")
    if not host or not port.isdigit():
        raise TrainingError(f"configuration {path}: listen: {data['listen']!r} is not HOST:PORT")
    mlflow = data.get("mlflow")
    if mlflow is not None:
        try:
            mlflow = Mlflow(**mlflow)
        except TypeError:
            raise TrainingError(
                f"configuration {path}: mlflow needs tracking_uri, user and password_file, or null; it may have ca_file"
            ) from None
    tls = data.get("tls")
    if tls is not None and (not isinstance(tls, dict) or set(tls) != {"cert", "key"}):
        raise TrainingError(f"configuration {path}: tls needs cert and key, and nothing else")
    return Config(
        {k: str(v) for k, v in data["kafka"].items()},
        mlflow,
        data["signing_key"],
        str(data["trusted_keys"]),
        Path(data["state_dir"]),
        (host, int(port)),
        online_settings.load(data.get("settings")),
        Path(data.get("policies") or SHIPPED),
        data.get("metrics_token_file"),
        (str(tls["cert"]), str(tls["key"])) if tls else None,
    )
