"""A model that somebody registered is read as data: a pickle is refused, and what it holds does not run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import yaml
from oal_training.batch import stored_tree
from oal_training.cli import main
from oal_training.errors import TrainingError

LEARNING = Path(__file__).resolve().parents[3] / "lab" / "captures" / "learning.items.parquet"
SKLEARN = {"pickled_model": "model.pkl", "serialization_format": "cloudpickle", "sklearn_version": "1.9.1"}


class Trap:
    """Reading its pickle makes a file."""

    def __init__(self, trace: Path):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


@pytest.fixture
def trap(tmp_path) -> tuple[bytes, Path]:
    """A pickle, and the file that its reader makes."""
    trace = tmp_path / "it-ran"
    made = pickle.dumps(Trap(trace))
    pickle.loads(made)
    assert trace.exists(), "the trap works"
    trace.unlink()
    return made, trace


def folder(path: Path, content: bytes, **changes) -> Path:
    path.mkdir()
    flavors = {"sklearn": {**SKLEARN, **changes}, "python_function": {"loader_module": "mlflow.sklearn"}}
    (path / "MLmodel").write_text(yaml.safe_dump({"artifact_path": "model", "flavors": flavors}))
    (path / "model.pkl").write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "is stored as cloudpickle, and pickles are not read"),
        ({"serialization_format": "skops"}, "cannot be read as skops"),
        ({"serialization_format": "skops", "pickled_model": "../outside.skops"}, "is not there"),
    ],
)
def test_a_pickle_is_refused_and_does_not_run(tmp_path, trap, changes, said):
    content, trace = trap
    (tmp_path / "outside.skops").write_bytes(content)
    with pytest.raises(TrainingError, match=said):
        stored_tree.read(folder(tmp_path / "model", content, **changes), "evil/1")
    assert not trace.exists()


def test_evaluate_of_a_pickled_version_is_refused(mlflow_uri, tmp_path, trap, capsys):
    from mlflow import MlflowClient

    content, trace = trap
    client = MlflowClient(mlflow_uri, mlflow_uri)
    run = client.create_run(client.get_experiment_by_name("batch").experiment_id).info.run_id
    client.set_tag(run, "oal.source", json.dumps({"kind": "file"}))
    client.set_tag(run, "oal.to_us", "0")
    client.log_text(run, "name: evil\nmodel: {kind: decision_tree}\n", "experiment.yaml")
    client.log_artifacts(run, str(folder(tmp_path / "model", content)), "model")
    client.create_registered_model("evil")
    client.create_model_version("evil", f"{client.get_run(run).info.artifact_uri}/model", run)
    assert main(["evaluate", "--version", "evil/1", "--source", str(LEARNING), "--tracking-uri", mlflow_uri]) == 1
    assert "pickles are not read" in capsys.readouterr().err
    assert not trace.exists()
