from __future__ import annotations

from pathlib import Path

import pytest
from oal_training.batch import parquet

CAPTURES = Path(__file__).resolve().parents[3] / "lab" / "captures"
LEARNING = CAPTURES / "learning.items.parquet"


def quiet(_line: str) -> None:
    pass


@pytest.fixture(scope="session")
def learning():
    """Items of the committed capture `learning`."""
    return parquet.read(LEARNING, log=quiet)


@pytest.fixture(scope="session")
def mlflow_uri(tmp_path_factory):
    """A real MLflow store and registry, in SQLite, without its server."""
    from mlflow import MlflowClient

    folder = tmp_path_factory.mktemp("mlflow")
    uri = f"sqlite:///{folder}/mlflow.db"
    MlflowClient(uri, uri).create_experiment("batch", artifact_location=str(folder / "artifacts"))
    return uri
