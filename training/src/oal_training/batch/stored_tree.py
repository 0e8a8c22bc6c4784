"""The tree of a version as it lies in MLflow. A model is data, never code: only skops files of the types listed here
are read. Reading a pickle runs what it holds, so none is read, whoever registered it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from oal_training.errors import TrainingError
from oal_training.tracking import Origin, Tracking, said

TRUSTED_TYPES = ["sklearn.tree._tree.Tree"]
MAX_BYTES = 64 << 20


def fetch(tracking: Tracking, found: Origin):
    """The DecisionTreeClassifier of a version; TrainingError when it is stored in any other form."""
    mlflow = tracking.connect()
    with tempfile.TemporaryDirectory(prefix="oal-model-") as folder:
        with said(f"fetching {found.name}/{found.version}"):
            files = mlflow.artifacts.download_artifacts(artifact_uri=found.model_uri, dst_path=folder)
        return read(Path(files), f"{found.name}/{found.version}")


def read(folder: Path, what: str):
    """The DecisionTreeClassifier of a model folder that mlflow.sklearn wrote in skops format. TrainingError names
    `what` and says why it is not read.
    """
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    path = _file(folder, what)
    try:
        tree = skops.io.load(path, trusted=TRUSTED_TYPES)
    except UntrustedTypesFoundException as error:
        raise TrainingError(f"{what} holds types that are not read here: {error}") from None
    except Exception as error:  # a damaged file can fail anywhere inside skops
        raise TrainingError(
            f"{what}: its model file cannot be read as skops: {type(error).__name__}: {str(error)[:200]}"
        ) from None
    if type(tree).__name__ != "DecisionTreeClassifier":
        raise TrainingError(f"{what} is a {type(tree).__name__}, not a DecisionTreeClassifier")
    return tree


def _file(folder: Path, what: str) -> Path:
    """The model file that MLmodel names, inside the folder and in skops format."""
    try:
        flavor = yaml.safe_load((folder / "MLmodel").read_text(encoding="utf-8"))["flavors"]["sklearn"]
        form, name = flavor.get("serialization_format", "pickle"), str(flavor.get("pickled_model", "model.skops"))
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise TrainingError(f"{what} was not logged as a scikit-learn model: {type(error).__name__}: {error}") from None
    if form != "skops":
        raise TrainingError(
            f"{what} is stored as {form}, and pickles are not read: reading one runs what it holds. Register it with"
            ' `oal-train fit --register`, or log it with serialization_format="skops",'
            f" skops_trusted_types={TRUSTED_TYPES}"
        )
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise TrainingError(f"{what}: its model file `{name}` is not there")
    if path.stat().st_size > MAX_BYTES:
        raise TrainingError(f"{what}: its model file has more than {MAX_BYTES} bytes")
    return path
