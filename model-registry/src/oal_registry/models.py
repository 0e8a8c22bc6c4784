"""Versions of registered models, fetched from MLflow and compiled to node tables.

A model is data here, never code: only skops files (for scikit-learn, with the types listed below) and XGBoost's own
format are read. A pickled model is refused, because reading one runs whatever it holds - next to the key that signs
bundles.
"""

from __future__ import annotations

import json
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import yaml
from oal_schema.manifest import Manifest, ModelPlan
from oal_schema.nodes import BundleError
from oal_schema.tree import Tree
from oal_schema.window import WindowModel

from oal_registry import programs
from oal_registry.errors import NotPackagable
from oal_registry.mlflow_client import Gone, MlflowRegistry
from oal_registry.programs import Program

TRUSTED_TYPES = ["sklearn.tree._tree.Tree"]
MAX_MODEL_BYTES = 64 << 20
KEPT = 16  # compiled versions
FEATURE_PROGRAM, INPUTS = "feature_program.oalf", "inputs.json"


@dataclass(frozen=True)
class CompiledModel:
    """One model of a version, as an AP runs it.

    plan         its role in the bundle, its kind and the name that it is registered by
    run_id       of MLflow; empty for none
    error_bound  how far integers may be from the library's answer, in bytes; 0 for a tree
    """

    plan: ModelPlan
    version: int
    run_id: str
    program: Program
    table: Tree | WindowModel
    error_bound: float = 0.0

    @property
    def name(self) -> str:
        """As people write a version: congestion/3."""
        return f"{self.plan.registered}/{self.version}"


class Models:
    """Compiles versions of the models of one policy and keeps the latest; a version's model does not change in MLflow.
    """

    def __init__(self, registry: MlflowRegistry, manifest: Manifest):
        self.registry, self.manifest = registry, manifest
        self._kept: OrderedDict[tuple[ModelPlan, int, str], CompiledModel] = OrderedDict()

    def compiled(self, plan: ModelPlan, version: int) -> CompiledModel:
        """NotPackagable when the version cannot run on an AP, Gone when there is no such version."""
        found = self.registry.version(plan.registered, version)
        key = (plan, version, found.run_id or "")
        if key not in self._kept:
            with tempfile.TemporaryDirectory(prefix="oal-model-") as folder:
                try:
                    self._kept[key] = self._compile(plan, version, found.run_id or "", Path(folder))
                except BundleError as error:
                    raise NotPackagable(str(error)) from None
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _compile(self, plan: ModelPlan, version: int, run_id: str, folder: Path) -> CompiledModel:
        from oal_registry import compile as compiler

        what = f"{plan.registered}/{version}"
        files = self._fetch(plan.registered, version, folder)
        program = self._program(what, run_id, files, folder)
        try:
            if plan.kind == "tree":
                table, bound = compiler.tree(load_sklearn(files, what), program.feature_hash), 0.0
            else:
                inputs = self._inputs(what, run_id, files, folder)
                table, bound = compiler.window(load_xgboost(files, what), inputs, program.feature_hash)
        except (ValueError, TypeError) as error:
            raise NotPackagable(f"{what}: {error}") from None
        table.check(len(program.words))
        return CompiledModel(plan, version, run_id, program, table, bound)

    def _fetch(self, model: str, version: int, folder: Path) -> Path:
        try:
            found = self.registry.download(model, version, folder)
        except Gone as error:
            raise NotPackagable(f"its model files are not there: {error}") from None
        if (size := sum(path.stat().st_size for path in found.rglob("*") if path.is_file())) > MAX_MODEL_BYTES:
            raise NotPackagable(f"its model files have {size} bytes; at most {MAX_MODEL_BYTES}")
        return found

    def _file(self, name: str, run_id: str, model: Path, folder: Path) -> Path | None:
        """A file that training logged with the model, or beside it in the run."""
        beside = model / name
        if beside.is_file():
            return beside
        return self.registry.run_file(run_id, name, folder) if run_id else None

    def _program(self, what: str, run_id: str, files: Path, folder: Path) -> Program:
        """The program of the policy, when the version was trained with it or with its first features: those keep their
        places, so an upgrade that adds features goes on with the champions that are there.
        """
        path = self._file(FEATURE_PROGRAM, run_id, files, folder)
        path = path or self._file(f"{self.manifest.program}.oalf", run_id, files, folder)
        if path is None:
            raise NotPackagable(
                f"neither {what} nor its run has the artifact {FEATURE_PROGRAM}; register it with `oal-train fit"
                " --register`"
            )
        program, wanted = programs.of_bytes(path.read_bytes(), what), programs.of_name(self.manifest.program)
        if wanted is None or not programs.begins(wanted.feature_hash, program.feature_hash):
            raise NotPackagable(
                f"feature_mismatch: {what} was trained with the feature program {program.name}, policy"
                f" {self.manifest.name} takes {self.manifest.program}"
            )
        return wanted

    def _inputs(self, what: str, run_id: str, files: Path, folder: Path) -> list[int]:
        path = self._file(INPUTS, run_id, files, folder)
        if path is None:
            raise NotPackagable(f"neither {what} nor its run has the artifact {INPUTS}")
        try:
            value = json.loads(path.read_text())
            inputs = value["inputs"] if isinstance(value, dict) else value
            return [int(v) for v in inputs]
        except (ValueError, KeyError, TypeError) as error:
            raise NotPackagable(f"{INPUTS} is not a list of inputs: {error}") from None


def _flavor(folder: Path, name: str, what: str, wanted: str) -> dict:
    try:
        described = yaml.safe_load((folder / "MLmodel").read_text())
        flavors = described["flavors"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise NotPackagable(f"{what} has no readable MLmodel file: {error}") from None
    if name not in flavors:
        raise NotPackagable(f"{what} was logged as {', '.join(flavors)}; it must be {wanted}")
    return flavors[name]


def _data_file(folder: Path, relative: str, what: str) -> Path:
    path = (folder / relative).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise NotPackagable(f"{what}: its model file `{relative}` is not there")
    return path


def load_sklearn(folder: Path, what: str):
    """The estimator of a model folder that mlflow.sklearn wrote in skops format."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    flavor = _flavor(folder, "sklearn", what, "a DecisionTreeClassifier by mlflow.sklearn")
    form = flavor.get("serialization_format", "pickle")
    if form != "skops":
        raise NotPackagable(
            f'{what} is a {form}; log it with serialization_format="skops", skops_trusted_types={TRUSTED_TYPES}:'
            " pickles are not read here"
        )
    path = _data_file(folder, flavor.get("pickled_model", "model.skops"), what)
    try:
        return skops.io.load(path, trusted=TRUSTED_TYPES)
    except UntrustedTypesFoundException as error:
        raise NotPackagable(
            f"{what} holds types that are not read here: {error}; an AP runs a DecisionTreeClassifier: distil the model"
            " into one"
        ) from None
    except Exception as error:  # a damaged file can fail anywhere inside skops
        raise NotPackagable(f"{what}: its model file cannot be read: {type(error).__name__}: {error}") from None


def load_xgboost(folder: Path, what: str):
    """The booster of a model folder that mlflow.xgboost wrote."""
    import xgboost

    flavor = _flavor(folder, "xgboost", what, "an XGBoost regressor by mlflow.xgboost")
    path = _data_file(folder, flavor.get("data", "model.ubj"), what)
    if path.suffix not in (".ubj", ".json"):
        raise NotPackagable(f'{what}: model file {path.name}; log it with model_format="ubj"')
    try:
        return xgboost.Booster(model_file=str(path))
    except xgboost.core.XGBoostError as error:
        raise NotPackagable(f"{what}: its model file cannot be read: {str(error).splitlines()[0]}") from None
