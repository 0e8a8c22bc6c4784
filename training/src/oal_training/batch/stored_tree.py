"""The tree of a version as it lies in MLflow. A model is data, never code: only skops files of the types listed here
are read. Reading a pickle runs what it holds, so none is read, whoever registered it.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import yaml

from oal_training.errors import TrainingError
from oal_training.lineage import TAG
from oal_training.tracking import Origin, Tracking, said

TRUSTED_TYPES = ["sklearn.tree._tree.Tree"]
MAX_BYTES = 64 << 20
HASH_TAG = TAG + "model_sha256"


def fetch(tracking: Tracking, found: Origin):
    """The DecisionTreeClassifier of a version or run; TrainingError when it is stored in any other form."""
    mlflow = tracking.connect()
    with tempfile.TemporaryDirectory(prefix="oal-model-") as folder:
        with said(f"fetching {found.what}"):
            files = mlflow.artifacts.download_artifacts(artifact_uri=found.model_uri, dst_path=folder)
        return read(Path(files), found.what)


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


def content(tree) -> bytes:
    """All that decides a fitted tree's answers, and so the table in a bundle, as bytes.

    The skops file is no such thing: it holds addresses of objects, and is another one each time.
    """
    nodes = tree.tree_
    n = nodes.node_count
    leaf = nodes.children_left < 0
    columns = (
        np.asarray([tree.n_features_in_, n, nodes.value.shape[2]], "<i8"),
        np.asarray(tree.classes_, "<i8"),
        np.asarray(nodes.children_left, "<i8"),
        np.asarray(nodes.children_right, "<i8"),
        np.where(leaf, -1, nodes.feature).astype("<i8"),
        np.where(leaf, 0, nodes.threshold).astype("<f8"),
        np.where(leaf, 0, np.asarray(nodes.missing_go_to_left)[:n]).astype("u1"),
        np.asarray(nodes.value[:, 0, :], "<f8"),
    )
    return b"oal.tree.1" + b"".join(np.ascontiguousarray(column).tobytes() for column in columns)


def content_sha256(tree) -> str:
    """Hex SHA-256 of `content`; tag oal.model_sha256 of a run."""
    return hashlib.sha256(content(tree)).hexdigest()


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
