"""MLflow from a batch run: log it, register its tree, read back what a version was made by."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oal_training.batch.items import known_programs
from oal_training.errors import TrainingError
from oal_training.lineage import TAG, Lineage

EXPERIMENT = "batch"
EXPERIMENT_FILE = "experiment.yaml"
PROGRAM_FILE, FEATURES_FILE = "feature_program.oalf", "features.json"
#: the registry reads no pickles, since reading one runs what it holds
TRUSTED_TYPES = ["sklearn.tree._tree.Tree"]
HTTP_TIMEOUT_S, HTTP_RETRIES = "30", "3"


@dataclass(frozen=True)
class Tracking:
    """As in the section `mlflow` of a service's configuration; user None for a server without authentication."""

    tracking_uri: str
    user: str | None = None
    password_file: str | None = None

    def connect(self):
        """The module `mlflow`, pointed at the server. The password enters this process's environment only."""
        if self.user:
            try:
                os.environ["MLFLOW_TRACKING_PASSWORD"] = Path(self.password_file or "").read_text().strip()
            except OSError as error:
                raise TrainingError(f"MLflow's password file: {error}") from None
            os.environ["MLFLOW_TRACKING_USERNAME"] = self.user
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


def split_version(text: str) -> tuple[str, str]:
    """`congestion/3` → ("congestion", "3")."""
    name, slash, version = text.rpartition("/")
    if not slash or not name or not version.isdigit():
        raise TrainingError(f"{text!r} names no version; write MODEL/VERSION, such as congestion/3")
    return name, version


@dataclass(frozen=True)
class Origin:
    """What made a registered version: its experiment's YAML, its run's tags, and its model's address in MLflow."""

    name: str
    version: int
    experiment: str
    tags: dict[str, str]
    model_uri: str


def origin(tracking: Tracking, name: str, version: str) -> Origin:
    """Look a version up; TrainingError when it is not there or was not made by `oal-train fit`."""
    mlflow = tracking.connect()
    with said(f"reading {name}/{version}"):
        client = mlflow.MlflowClient()
        found = client.get_model_version(name, version)
        run = client.get_run(found.run_id) if found.run_id else None
    if run is None:
        raise TrainingError(f"{name}/{version} has no run: nobody knows what it was trained on; it cannot be repeated")
    with tempfile.TemporaryDirectory() as folder:
        try:
            text = Path(client.download_artifacts(run.info.run_id, EXPERIMENT_FILE, folder)).read_text(encoding="utf-8")
        except Exception as error:
            raise TrainingError(
                f"the run of {name}/{version} has no {EXPERIMENT_FILE}; only versions of `oal-train fit --register` can"
                f" be repeated ({str(error).splitlines()[0][:200]})"
            ) from None
    return Origin(name, int(version), text, dict(run.data.tags), f"models:/{name}/{version}")


def load_tree(tracking: Tracking, found: Origin):
    """The sklearn classifier of a version."""
    tracking.connect()
    import mlflow.sklearn as flavour

    with said(f"loading {found.name}/{found.version}"):
        return flavour.load_model(found.model_uri)


def check(lineage: Lineage, is_tree: bool) -> None:
    """TrainingError when a version may not be made of this: data or code unknown, no tree, or features that no AP
    computes.
    """
    lineage.require()
    if not is_tree:
        raise TrainingError(
            "not registered: only a decision tree (kinds decision_tree and distilled) runs on an access point; distil"
            " this model"
        )
    if int(lineage.feature_hash, 16) not in known_programs():
        raise TrainingError(
            f"not registered: feature program {lineage.feature_hash} is none of the contract's (schema/features); an AP"
            " could not compute its features"
        )


def _log_files(mlflow, experiment_text: str, program: Path | None) -> None:
    """What the registry compiles a version by, and a retrain repeats it by."""
    with tempfile.TemporaryDirectory(prefix="oal-") as name:
        folder = Path(name)
        (folder / EXPERIMENT_FILE).write_text(experiment_text, encoding="utf-8")
        if program:
            shutil.copyfile(program.with_suffix(".oalf"), folder / PROGRAM_FILE)
            shutil.copyfile(program, folder / FEATURES_FILE)
        mlflow.log_artifacts(name)


def log_run(
    tracking: Tracking,
    *,
    name: str,
    lineage: Lineage,
    experiment_text: str,
    source: dict,
    figures: dict,
    folder: Path | None,
    tree=None,
    x_example=None,
    register: str | None = None,
    retrained_from: str | None = None,
    params: dict | None = None,
) -> dict:
    """One run: lineage as tags, figures as metrics, `folder` as artifacts, the tree as an sklearn model; with
    `register`, a version of it.

    Returns {"run_id", "version" or None}. Nothing is written to MLflow when a version is asked for that lineage does
    not allow.
    """
    if register:
        check(lineage, tree is not None)
    program = known_programs().get(int(lineage.feature_hash or "0", 16))
    mlflow = tracking.connect()
    import mlflow.sklearn as flavour

    with said("logging the run"):
        mlflow.set_experiment(EXPERIMENT)
        tags = lineage.tags() | {
            TAG + "experiment": name,
            TAG + "source": json.dumps(source, sort_keys=True),
            "mlflow.source.name": "oal-train fit",
        }
        if retrained_from:
            tags["retrained_from"] = retrained_from
        with mlflow.start_run(run_name=name, tags=tags) as run:
            mlflow.log_params({k: str(v)[:500] for k, v in (params or {}).items()})
            mlflow.log_metrics(figures)
            _log_files(mlflow, experiment_text, program)
            if folder:
                mlflow.log_artifacts(str(folder), "report")
            model = None
            if tree is not None:
                model = flavour.log_model(
                    tree,
                    name="model",
                    signature=mlflow.models.infer_signature(x_example, tree.classes_[:1]),
                    serialization_format="skops",
                    skops_trusted_types=TRUSTED_TYPES,
                    pip_requirements=[f"scikit-learn=={lineage.environment['scikit-learn']}", "skops"],
                )
            run_id = run.info.run_id
    if not register:
        return {"run_id": run_id, "version": None}
    with said(f"registering {register}"):
        client = mlflow.MlflowClient()
        version = mlflow.register_model(model.model_uri, register)
        for key, value in {
            "retrained_from": retrained_from,
            "feature_hash": lineage.feature_hash,
            TAG + "experiment": name,
        }.items():
            if value:
                client.set_model_version_tag(register, version.version, key, value)
    return {"run_id": run_id, "version": int(version.version)}
