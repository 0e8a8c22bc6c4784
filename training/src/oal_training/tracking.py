"""Where MLflow is, and what made a version that is registered there."""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oal_training.errors import TrainingError

# Files that training logs with every run.
EXPERIMENT_FILE = "experiment.yaml"
PROGRAM_FILE, FEATURES_FILE = "feature_program.oalf", "features.json"
HTTP_TIMEOUT_S, HTTP_RETRIES = "30", "3"  # of MLflow's library; both are text in its environment


@dataclass(frozen=True)
class Tracking:
    """As in the section `mlflow` of a service's configuration; user None for a server without authentication."""

    tracking_uri: str
    user: str | None = None
    password_file: str | None = None
    ca_file: str | None = None

    def connect(self):
        """The module `mlflow`, pointed at the server. The password enters this process's environment only."""
        if self.user:
            try:
                os.environ["MLFLOW_TRACKING_PASSWORD"] = Path(self.password_file or "").read_text().strip()
            except OSError as error:
                raise TrainingError(f"MLflow's password file: {error}") from None
            os.environ["MLFLOW_TRACKING_USERNAME"] = self.user
        if self.ca_file:
            os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"] = self.ca_file
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", HTTP_TIMEOUT_S)
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", HTTP_RETRIES)
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        import mlflow

        logging.getLogger("mlflow").setLevel(logging.WARNING)

        mlflow.set_tracking_uri(self.tracking_uri)
        mlflow.set_registry_uri(self.tracking_uri)
        return mlflow

    def check(self) -> None:
        """TrainingError when the server does not answer or does not let this user in. Before the work, not after it."""
        mlflow = self.connect()
        with said(f"{self.tracking_uri}" + (f" as {self.user}" if self.user else "")):
            mlflow.MlflowClient().search_experiments(max_results=1)


@contextmanager
def said(what: str):
    """MLflow's refusals and failures as a TrainingError."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, OSError) as error:
        raise TrainingError(f"MLflow: {what}: {str(error).strip().splitlines()[0][:500]}") from None


def log_report(
    where: Tracking, experiment: str, name: str, lineage, figures: dict[str, float], folder: Path, params: dict
) -> str:
    """One run of an experiment whose result is a report: lineage (lineage.Lineage) as tags, figures as metrics, the
    folder's files as artifacts below `report`. `name` is of the command, without `oal-train`. Gives the run's id;
    TrainingError when MLflow refuses it.
    """
    from oal_training.lineage import TAG

    mlflow = where.connect()
    with said("logging the run"):
        mlflow.set_experiment(experiment)
        tags = lineage.tags() | {
            TAG + "experiment": experiment,
            "mlflow.source.name": f"oal-train {name}",
            "mlflow.note.content": "What it says: report/*.md. Beside the paper: docs/paper.md.",
        }
        with mlflow.start_run(run_name=name, tags=tags) as made:
            mlflow.log_params(params)
            mlflow.log_metrics(figures)
            mlflow.log_artifacts(str(folder), "report")
            return made.info.run_id


def split_version(text: str) -> tuple[str, str]:
    """`congestion/3` → ("congestion", "3")."""
    name, slash, version = text.rpartition("/")
    if not slash or not name or not version.isdigit():
        raise TrainingError(f"{text!r} names no version; write MODEL/VERSION, such as congestion/3")
    return name, version


@dataclass(frozen=True)
class Origin:
    """What made a registered version, or the model of a run (name "" then): its experiment's YAML, its run's tags, and
    its model's address in MLflow.
    """

    name: str
    version: int
    experiment: str
    tags: dict[str, str]
    model_uri: str
    run_id: str = ""

    @property
    def what(self) -> str:
        """As people call it."""
        return f"{self.name}/{self.version}" if self.name else f"run {self.run_id}"


def origin(tracking: Tracking, name: str, version: str) -> Origin:
    """Look a version up; TrainingError when it is not there or was not made by `oal-train fit`."""
    mlflow = tracking.connect()
    with said(f"reading {name}/{version}"):
        client = mlflow.MlflowClient()
        found = client.get_model_version(name, version)
        run = client.get_run(found.run_id) if found.run_id else None
    if run is None:
        raise TrainingError(f"{name}/{version} has no run: nobody knows what it was trained on; it cannot be repeated")
    return _origin(client, run, name, int(version), f"models:/{name}/{version}")


def of_run(tracking: Tracking, run_id: str) -> Origin:
    """Look a run up, likewise."""
    mlflow = tracking.connect()
    with said(f"reading run {run_id}"):
        client = mlflow.MlflowClient()
        run = client.get_run(run_id)
    return _origin(client, run, "", 0, f"runs:/{run_id}/model")


def _origin(client, run, name: str, version: int, model_uri: str) -> Origin:
    what = f"{name}/{version}" if name else f"run {run.info.run_id}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            text = Path(client.download_artifacts(run.info.run_id, EXPERIMENT_FILE, folder)).read_text(encoding="utf-8")
        except Exception as error:
            raise TrainingError(
                f"{what} has no {EXPERIMENT_FILE}; only versions of `oal-train fit --register` can"
                f" be repeated ({str(error).splitlines()[0][:200]})"
            ) from None
    return Origin(name, version, text, dict(run.data.tags), model_uri, run.info.run_id)
