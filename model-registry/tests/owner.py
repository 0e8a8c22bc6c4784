"""A model owner: trains small real models, registers them, sets aliases and tags - as the MLflow page would."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from oal_registry import programs
from oal_registry.models import TRUSTED_TYPES
from sklearn.tree import DecisionTreeClassifier

OALF = programs.FOLDER / "congestion.oalf"
FEATURES = len(programs.by_name()["congestion"].features)
WINDOW_INPUTS = [0, 11, -5]  # features 0 and 11, column 4 of the flow table


def items(seed: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Integer features and classes 0-3 that depend on two of them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 100_000, (rows, FEATURES))
    return x, np.clip((x[:, seed % FEATURES] // 25_000 + x[:, 7] // 60_000), 0, 3)


class Owner:
    def __init__(self, url: str, user: str, password: str):
        os.environ.update(
            {
                "MLFLOW_TRACKING_USERNAME": user,
                "MLFLOW_TRACKING_PASSWORD": password,
                "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
                "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
                "MLFLOW_DISABLE_TELEMETRY": "true",
            }
        )
        import mlflow
        import mlflow.sklearn

        mlflow.set_tracking_uri(url)
        mlflow.set_registry_uri(url)
        self.mlflow, self.client = mlflow, mlflow.MlflowClient(url, url)

    def register(
        self,
        seed: int = 1,
        name: str = "congestion",
        estimator=None,
        program: bytes | None = OALF.read_bytes(),
        form: str = "skops",
        tags: dict | None = None,
    ) -> int:
        """Train on made-up items and register; the version."""
        x, y = items(seed)
        estimator = estimator or DecisionTreeClassifier(max_leaf_nodes=12, random_state=seed).fit(x, y)
        with self.mlflow.start_run() as run, tempfile.TemporaryDirectory() as folder:
            if program is not None:
                path = Path(folder) / "feature_program.oalf"
                path.write_bytes(program)
                self.mlflow.log_artifact(str(path))
            options = {"skops_trusted_types": TRUSTED_TYPES} if form == "skops" else {}
            info = self.mlflow.sklearn.log_model(
                estimator, name="model", serialization_format=form, pip_requirements=["scikit-learn"], **options
            )
        return self.add(name, info, run.info.run_id, tags)

    def add(self, name: str, info, run_id: str, tags: dict | None = None) -> int:
        from mlflow.exceptions import MlflowException

        try:
            self.client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        return int(
            self.client.create_model_version(
                name, info.model_uri, run_id, tags=tags or {}, await_creation_for=0, model_id=info.model_id
            ).version
        )

    def alias(self, alias: str, version: int, name: str = "congestion") -> None:
        self.client.set_registered_model_alias(name, alias, str(version))

    def unalias(self, alias: str, name: str = "congestion") -> None:
        self.client.delete_registered_model_alias(name, alias)

    def tag(self, version: int, key: str, value: str, name: str = "congestion") -> None:
        self.client.set_model_version_tag(name, str(version), key, value)

    def tags(self, version: int, name: str = "congestion") -> dict[str, str]:
        return self.client.get_model_version(name, str(version)).tags

    def register_window(self, seed: int = 1, program: bytes = OALF.read_bytes()) -> int:
        """A small XGBoost regression of the window from two features and a column of the flow table."""
        import mlflow.xgboost
        import xgboost

        rng = np.random.default_rng(seed)
        x = rng.integers(0, 100_000, (300, len(WINDOW_INPUTS)))
        model = xgboost.XGBRegressor(n_estimators=5, max_depth=3, tree_method="hist").fit(
            x.astype(np.float32), 1000 + x[:, 0] * 2 + x[:, 2]
        )
        with self.mlflow.start_run() as run, tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "feature_program.oalf").write_bytes(program)
            self.mlflow.log_artifacts(folder)
            self.mlflow.log_dict({"inputs": WINDOW_INPUTS}, "inputs.json")
            info = mlflow.xgboost.log_model(model, name="model", model_format="ubj", pip_requirements=["xgboost-cpu"])
        return self.add("window", info, run.info.run_id)
