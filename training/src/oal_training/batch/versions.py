"""Versions of the tree in MLflow: log a batch run, register its tree."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

from oal_training import policies
from oal_training.batch import card, data_sets, stored_tree, tree_view
from oal_training.batch.stored_tree import TRUSTED_TYPES
from oal_training.batch.validation import Judged
from oal_training.errors import TrainingError
from oal_training.lineage import TAG, Lineage
from oal_training.stored.items import Items
from oal_training.stored.programs import KnownProgram, known_programs
from oal_training.tracking import EXPERIMENT_FILE, FEATURES_FILE, PROGRAM_FILE, Tracking, said

EXPERIMENT = "batch"
EXAMPLE_ROWS = 3


def check(lineage: Lineage, is_tree: bool, policy: str | None = None) -> None:
    """TrainingError when a version may not be made of this: data or code unknown, no tree, or features that no AP
    computes.
    """
    lineage.require()
    if not is_tree:
        raise TrainingError(
            "not registered: only a decision tree (kinds decision_tree and distilled) runs on an access point; distil"
            " this model"
        )
    if policy and not begins(int(lineage.feature_hash, 16), policies.feature_hash(policy)):
        raise TrainingError(
            f"not registered: the items are of feature program {lineage.feature_hash}, and policy {policy} takes"
            f" {policies.feature_hash(policy):016x}"
        )
    if int(lineage.feature_hash, 16) not in known_programs():
        raise TrainingError(
            f"not registered: feature program {lineage.feature_hash} is none of the contract's (policies); an AP"
            " could not compute its features"
        )


def begins(earlier: int, whole: int) -> bool:
    """Is the first of two programs, by their hashes, the other one or its first features? Such trees go on being valid:
    features are only added, at the end.
    """
    known = known_programs()
    if earlier == whole:
        return True
    if earlier not in known or whole not in known:
        return False
    one, other = known[earlier], known[whole]
    return one.described["name"] == other.described["name"] and other.names[: len(one.names)] == one.names


def _log_files(mlflow, experiment_text: str, program: KnownProgram | None) -> None:
    """What the registry compiles a version by, and a retrain repeats it by."""
    with tempfile.TemporaryDirectory(prefix="oal-") as name:
        folder = Path(name)
        (folder / EXPERIMENT_FILE).write_text(experiment_text, encoding="utf-8")
        if program:
            (folder / PROGRAM_FILE).write_bytes(program.oalf)
            (folder / FEATURES_FILE).write_bytes(program.json)
        mlflow.log_artifacts(name)


def _log_view(mlflow, tree, name: str, items: Items, program: KnownProgram | None) -> None:
    """The tree as people read it: tree/tree.txt whole, tree/tree.png cut."""
    units = tree_view.units_of(program.json) if program else {}
    view = tree_view.of_sklearn(tree, items.names, tuple(units.get(n, "1") for n in items.names), items.classes)
    with tempfile.TemporaryDirectory(prefix="oal-") as folder:
        tree_view.write(Path(folder), view, name)
        mlflow.log_artifacts(folder, "tree")


def _signature(items: Items):
    """What the tree takes and gives, by name. A missing value is NaN."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    inputs = [ColSpec("double", name, required=False) for name in items.names]
    return ModelSignature(Schema(inputs), Schema([ColSpec("long", "class")]))


def _example(items: Items):
    """Some items as the tree takes them."""
    import pandas as pd

    return pd.DataFrame(items.x[:EXAMPLE_ROWS], columns=list(items.names))


def log_run(
    tracking: Tracking,
    *,
    name: str,
    lineage: Lineage,
    experiment_text: str,
    source: dict,
    figures: dict,
    folder: Path | None,
    fitted_on: Items,
    held_out: Items | None = None,
    tree=None,
    parts: list[Judged] | None = None,
    register: str | None = None,
    retrained_from: str | None = None,
    params: dict | None = None,
    policy: str | None = None,
) -> dict:
    """One run: lineage as tags, figures as metrics, `folder` as artifacts, the items that the tree was fitted on and
    those held out, the tree as an sklearn model; with `register`, a version of it.

    Returns {"run_id", "version" or None}. Nothing is written to MLflow when a version is asked for that lineage does
    not allow.
    """
    if register:
        check(lineage, tree is not None, policy)
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
        tags |= {k: v for k, v in {"retrained_from": retrained_from, "policy": policy}.items() if v}
        with mlflow.start_run(run_name=name, tags=tags) as run:
            mlflow.log_params({k: str(v)[:500] for k, v in (params or {}).items()})
            mlflow.log_metrics(figures)
            _log_files(mlflow, experiment_text, program)
            sets = {data_sets.TRAINING: fitted_on} | ({data_sets.EVALUATION: held_out} if held_out is not None else {})
            hashes = data_sets.keep(mlflow.MlflowClient(), run.info.run_id, sets)
            if folder:
                mlflow.log_artifacts(str(folder), "report")
            model, described = None, ""
            if tree is not None:
                _log_view(mlflow, tree, name, fitted_on, program)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "X has feature names")  # the tree asks for none
                    model = flavour.log_model(
                        tree,
                        name="model",
                        signature=_signature(fitted_on),
                        input_example=_example(fitted_on),
                        serialization_format="skops",
                        skops_trusted_types=TRUSTED_TYPES,
                        pip_requirements=[f"scikit-learn=={lineage.environment['scikit-learn']}", "skops"],
                    )
                model_kind, nodes = (params or {}).get("kind", name), tree.tree_.node_count
                described = card.text(name, model_kind, nodes, lineage, parts or [], fitted_on, held_out, hashes)
                mlflow.log_text(described, card.FILE)
                mlflow.set_tag(stored_tree.HASH_TAG, stored_tree.content_sha256(tree))
                mlflow.set_tag("mlflow.note.content", described)
            run_id = run.info.run_id
    if not register:
        return {"run_id": run_id, "version": None}
    with said(f"registering {register}"):
        client = mlflow.MlflowClient()
        version = mlflow.register_model(model.model_uri, register)
        client.update_model_version(register, version.version, described)
        for key, value in {
            "retrained_from": retrained_from,
            "policy": policy,
            "feature_hash": lineage.feature_hash,
            TAG + "experiment": name,
        }.items():
            if value:
                client.set_model_version_tag(register, version.version, key, value)
    return {"run_id": run_id, "version": int(version.version)}
