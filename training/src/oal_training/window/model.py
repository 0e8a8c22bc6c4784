"""The window model that an AP runs: an XGBoost regressor, fitted, logged to MLflow, registered."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from oal_training.errors import TrainingError
from oal_training.lineage import TAG, Lineage
from oal_training.stored.programs import known_programs
from oal_training.tracking import EXPERIMENT_FILE, FEATURES_FILE, PROGRAM_FILE, Tracking, said
from oal_training.window import regressors
from oal_training.window.dataset import Dataset

EXPERIMENT = "window"
INPUTS_FILE = "inputs.json"
MIN_SAMPLES = 1000


def fit(data: Dataset, **changes):
    """The regressor on all samples. TrainingError where they are too few."""
    if len(data) < MIN_SAMPLES:
        raise TrainingError(f"too few samples: {len(data)}, need {MIN_SAMPLES}; record a longer run")
    return regressors.xgboost(**changes).fit(data.x, data.y)


def inputs(data: Dataset) -> dict:
    """What the registry compiles the model with: numbers of the contract, and their names for people."""
    return {"inputs": list(data.inputs), "names": list(data.names), "feature_hash": f"{data.feature_hash:016x}"}


def lineage(data: Dataset) -> Lineage:
    """Where the samples come from. The query is the file with its captures."""
    captures = ", ".join(
        f"{c['capture']} {c['capture_sha256'][:12]} + {c['sender']} {c['sender_sha256'][:12]}"
        for c in data.source["captures"]
    )
    found = Lineage.of({**data.source, "feature_hash": f"{data.feature_hash:016x}"})
    return replace(found, query=f"{found.query} ({captures})")


def save(model, data: Dataset, folder: Path) -> None:
    """Model (XGBoost's own format), inputs and feature program as files, without MLflow: what `compile` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    model.get_booster().save_model(folder / "model.ubj")
    _save_inputs(data, folder)


def _save_inputs(data: Dataset, folder: Path) -> None:
    (folder / INPUTS_FILE).write_text(json.dumps(inputs(data), indent=1) + "\n", encoding="utf-8")
    if program := known_programs().get(data.feature_hash):
        (folder / PROGRAM_FILE).write_bytes(program.oalf)
        (folder / FEATURES_FILE).write_bytes(program.json)


def log(
    tracking: Tracking,
    model,
    data: Dataset,
    figures: dict[str, float],
    table: str,
    register: str | None,
    samples: Path | None = None,
    retrained_from: str | None = None,
) -> dict:
    """One run: lineage as tags, figures, the comparison, the model with its inputs and feature program; with
    `register`, a version of it. `samples`: a file to keep with the run, where it stands nowhere else.

    Returns {"run_id", "version" or None}. Nothing is written when a version is asked for that lineage does not allow.
    """
    made_by = lineage(data)
    if register:
        made_by.require()
        if data.feature_hash not in known_programs():
            raise TrainingError(
                f"not registered: feature program {data.feature_hash:016x} is none of the contract's (policies);"
                " an AP could not compute its features"
            )
    mlflow = tracking.connect()
    import mlflow.xgboost as flavour

    with said("logging the run"):
        mlflow.set_experiment(EXPERIMENT)
        tags = made_by.tags() | {
            TAG + "experiment": EXPERIMENT,
            TAG + "source": json.dumps(data.source, sort_keys=True),
            "mlflow.source.name": "oal-train window fit",
        }
        if retrained_from:
            tags["retrained_from"] = retrained_from
        with mlflow.start_run(run_name=EXPERIMENT, tags=tags) as run:
            mlflow.log_params(
                {key: str(value) for key, value in regressors.XGBOOST.items()}
                | {"inputs": len(data.inputs), "captures": ",".join(sorted(set(data.capture.tolist())))}
            )
            mlflow.log_metrics({key: value for key, value in figures.items() if np.isfinite(value)})
            mlflow.log_text(
                f"kind: {EXPERIMENT}  # `oal-train fit --retrain` goes on with oal_training.window\n", EXPERIMENT_FILE
            )
            with tempfile.TemporaryDirectory() as folder:
                _save_inputs(data, Path(folder))
                mlflow.log_artifacts(folder)
            if samples:
                mlflow.log_artifact(str(samples))
            if table:
                mlflow.log_text(table + "\n", "report/report.md")
            logged = flavour.log_model(
                model,
                name="model",
                model_format="ubj",
                signature=mlflow.models.infer_signature(data.x[:5], data.y[:5]),
                pip_requirements=[f"xgboost-cpu=={made_by.environment['xgboost-cpu']}"],
            )
            run_id = run.info.run_id
    if not register:
        return {"run_id": run_id, "version": None}
    with said(f"registering {register}"):
        version = mlflow.register_model(logged.model_uri, register)
        for key, value in {"feature_hash": made_by.feature_hash, "retrained_from": retrained_from}.items():
            if value:
                mlflow.MlflowClient().set_model_version_tag(register, version.version, key, value)
    return {"run_id": run_id, "version": int(version.version)}
