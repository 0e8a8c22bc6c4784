"""What the registry asks of MLflow. Failures: `Unreachable` (try again later) and what the caller can act on."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from oal_registry import config, secret_files
from oal_registry.errors import RegistryError

TIMEOUT_S = 10  # of a request


class Unreachable(RegistryError):
    """MLflow does not answer, or answers that it cannot."""


class NotPermitted(RegistryError):
    """The user may not do this in MLflow."""


class Gone(RegistryError):
    """The model, version, alias or tag is not there."""


class MlflowRegistry:
    """The registered models of one MLflow server, as one user."""

    def __init__(self, tracking_uri: str, user: str, password: str, timeout_s: int = TIMEOUT_S, ca_file: str = ""):
        # MLflow takes these from the environment of this process only; its own repetition would hide an outage for
        # minutes.
        os.environ.update(
            {
                "MLFLOW_TRACKING_URI": tracking_uri,
                "MLFLOW_TRACKING_USERNAME": user,
                "MLFLOW_TRACKING_PASSWORD": password,
                "MLFLOW_HTTP_REQUEST_TIMEOUT": str(timeout_s),
                "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
            }
        )
        if ca_file:
            os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"] = ca_file
        warnings.filterwarnings("ignore", module="mlflow")
        import mlflow

        logging.getLogger("mlflow").setLevel(logging.ERROR)
        mlflow.set_tracking_uri(tracking_uri)
        mlflow.set_registry_uri(tracking_uri)
        self.tracking_uri = tracking_uri
        self.user = user
        self.client = mlflow.MlflowClient(tracking_uri, tracking_uri)

    @classmethod
    def of_section(cls, section: config.Section, timeout_s: int = TIMEOUT_S) -> MlflowRegistry:
        """From the `mlflow` section of a configuration file."""
        uri, user, password_file = (section.get(key, str) for key in ("tracking_uri", "user", "password_file"))
        ca_file = section.get("ca_file", str, "")
        section.done()
        return cls(uri, user, secret_files.read(password_file, f"MLflow password of {user}"), timeout_s, ca_file)

    def aliases(self, model: str) -> dict[str, int] | None:
        """Version by alias; None when there is no such registered model."""
        try:
            with _translated(f"read {model}"):
                found = self.client.get_registered_model(model)
        except Gone:
            return None
        return {alias: int(version) for alias, version in found.aliases.items()}

    def version(self, model: str, version: int):
        """An MLflow ModelVersion; Gone when it is not there."""
        with _translated(f"read {model}/{version}"):
            return self.client.get_model_version(model, str(version))

    def versions(self, model: str, condition: str = "") -> list:
        """All versions of a model that meet a condition of MLflow's search."""
        found, token = [], None
        while True:
            with _translated(f"search versions of {model}"):
                page = self.client.search_model_versions(
                    f"name='{model}'{' and ' + condition if condition else ''}", max_results=1000, page_token=token
                )
            found += page
            if not (token := page.token):
                return found

    def set_tag(self, model: str, version: int, name: str, value: str) -> None:
        """Write a tag of a version; Gone when there is no such version."""
        with _translated(f"set tag {name} of {model}/{version}"):
            self.client.set_model_version_tag(model, str(version), name, value)

    def delete_tag(self, model: str, version: int, name: str) -> None:
        """Delete a tag; none there is well too."""
        try:
            with _translated(f"delete tag {name} of {model}/{version}"):
                self.client.delete_model_version_tag(model, str(version), name)
        except Gone:
            pass

    def set_alias(self, model: str, alias: str, version: int) -> None:
        """Put an alias on a version; Gone when there is no such version."""
        with _translated(f"set alias {alias} of {model}/{version}"):
            self.client.set_registered_model_alias(model, alias, str(version))

    def download(self, model: str, version: int, into: Path) -> Path:
        """The folder of a version's model: MLmodel and its files."""
        import mlflow.artifacts

        with _translated(f"download {model}/{version}"):
            return Path(
                mlflow.artifacts.download_artifacts(artifact_uri=f"models:/{model}/{version}", dst_path=str(into))
            )

    def run_tags(self, run_id: str) -> dict[str, str] | None:
        """Tags of a run; None when there is no such run."""
        try:
            with _translated(f"read run {run_id}"):
                return dict(self.client.get_run(run_id).data.tags)
        except Gone:
            return None

    def run_metrics(self, run_id: str) -> dict[str, float] | None:
        """Latest metrics of a run; None when there is no such run."""
        try:
            with _translated(f"read run {run_id}"):
                return dict(self.client.get_run(run_id).data.metrics)
        except Gone:
            return None

    def run_file(self, run_id: str, name: str, into: Path) -> Path | None:
        """An artifact file of a run, by its path; None when the run has none of this name."""
        with _translated(f"list artifacts of run {run_id}"):
            folder = name.rpartition("/")[0] or None
            there = {artifact.path for artifact in self.client.list_artifacts(run_id, folder)}
        if name not in there:
            return None
        with _translated(f"download {name} of run {run_id}"):
            return Path(self.client.download_artifacts(run_id, name, str(into)))

    def call(self, what: str, function: Callable, *arguments, **options):
        """Any other call of the client."""
        with _translated(what):
            return function(*arguments, **options)


@contextmanager
def _translated(what: str):
    import requests
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        code, text = getattr(error, "error_code", ""), " ".join(str(error).split())[:300]
        if code in ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND") or "No such artifact" in text:
            raise Gone(f"MLflow: cannot {what}: {text}") from None
        if code in ("PERMISSION_DENIED", "UNAUTHENTICATED") or " 403" in text or " 401" in text:
            raise NotPermitted(
                f"MLflow: may not {what}: {text}; check user, password file and role in the server's configuration"
            ) from None
        if no_answer := re.search(r"API request to (\w+://[^/ ]+)\S* failed with (?:timeout )?exception", text):
            how = "timed out" if "timed out" in str(error) else "connection failed"
            raise Unreachable(f"MLflow: no answer from {no_answer[1]}: {how}") from None
        raise Unreachable(f"MLflow: cannot {what}: {text}") from None
    except (requests.RequestException, OSError) as error:
        raise Unreachable(f"MLflow: cannot {what}: {' '.join(str(error).split())[:300]}") from None
