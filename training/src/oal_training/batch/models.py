"""The models that an experiment can name.

Each takes features with NaN for missing and gives a probability for every class.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from oal_training.batch import split
from oal_training.batch.calibration import METHODS, Calibrator
from oal_training.batch.ordinal import Ordinal
from oal_training.errors import TrainingError
from oal_training.stored.items import Items

WEIGHTS = ("none", "balanced", "sqrt")


def _signed_log(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.log1p(np.abs(x))


def _scaled(estimator):
    """For models of distances: counters of bytes and of microseconds on one scale, missing values at the median with a
    flag beside.
    """
    return make_pipeline(
        FunctionTransformer(_signed_log),
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
        estimator,
    )


def _xgboost(params: dict, seed: int):
    from xgboost import XGBClassifier

    return XGBClassifier(
        **{
            "n_estimators": 150,
            "max_depth": 4,
            "learning_rate": 0.08,
            "subsample": 0.8,
            "colsample_bytree": 0.7,
            "min_child_weight": 5,
            "tree_method": "hist",
            "n_jobs": 1,
            "random_state": seed,
            "verbosity": 0,
        }
        | params
    )


def _lightgbm(params: dict, seed: int):
    try:
        from lightgbm import LGBMClassifier
    except OSError as error:  # no libgomp
        raise TrainingError(f"LightGBM cannot be loaded: {error}; install libgomp1 (platform/setup/apt gcc)") from None
    return LGBMClassifier(
        **{
            "n_estimators": 150,
            "num_leaves": 15,
            "learning_rate": 0.08,
            "subsample": 0.8,
            "subsample_freq": 1,
            "colsample_bytree": 0.7,
            "min_child_samples": 50,
            "n_jobs": 1,
            "random_state": seed,
            "deterministic": True,
            "verbosity": -1,
        }
        | params
    )


#: name → (factory of params and seed, takes sample weights, most rows it is fitted on)
FACTORIES = {
    "decision_tree": (
        lambda p, seed: DecisionTreeClassifier(
            **{"max_leaf_nodes": 32, "min_samples_leaf": 20, "random_state": seed} | p
        ),
        True,
        None,
    ),
    "random_forest": (
        lambda p, seed: RandomForestClassifier(
            **{"n_estimators": 200, "min_samples_leaf": 5, "n_jobs": 1, "random_state": seed} | p
        ),
        True,
        None,
    ),
    "xgboost_multiclass": (_xgboost, True, None),
    "xgboost_ordinal": (Ordinal, True, None),
    "lightgbm": (_lightgbm, True, None),
    "svm": (
        lambda p, seed: _scaled(SVC(**{"C": 1.0, "decision_function_shape": "ovr", "random_state": seed} | p)),
        True,
        20_000,
    ),
    "knn": (
        lambda p, seed: _scaled(KNeighborsClassifier(**{"n_neighbors": 30, "weights": "distance"} | p)),
        False,
        100_000,
    ),
    "mlp": (
        lambda p, seed: _scaled(
            MLPClassifier(
                **{
                    "hidden_layer_sizes": (32,),
                    "alpha": 0.01,
                    "early_stopping": False,
                    "max_iter": 150,
                    "random_state": seed,
                }
                | p
            )
        ),
        False,
        100_000,
    ),
}
ENSEMBLES = ("random_forest", "xgboost_multiclass", "xgboost_ordinal", "lightgbm", "mlp")


@dataclass(frozen=True)
class ModelSpec:
    """kind: a name of FACTORIES, `distilled` or `persistence`; params: for its library; class_weight: none, balanced,
    sqrt (of balanced), or the power itself, 0 to 1;
    calibration: none, sigmoid, isotonic, learned on held-out `calibrate_on` time or group; distil:
    see distil.py.
    """

    kind: str
    params: dict = field(default_factory=dict)
    class_weight: str | float = "none"
    calibration: str = "none"
    calibrate_on: str = "time"
    distil: dict = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self):
        kinds = [*FACTORIES, "distilled", "persistence"]
        for value, allowed, what in (
            (self.kind, kinds, "model.kind"),
            (*_named_weight(self.class_weight), "model.class_weight"),
            (self.calibration, METHODS, "model.calibration"),
            (self.calibrate_on, ("time", "group"), "model.calibrate_on"),
        ):
            if value not in allowed:
                raise TrainingError(f"{what} {value!r} is none of {', '.join(allowed)}")


def _named_weight(weight) -> tuple:
    """(what was said, what may be)."""
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    return (0, (0,)) if number and 0 <= weight <= 1 else (weight, WEIGHTS)


def sample_weight(y: np.ndarray, kind: str | float) -> np.ndarray:
    """Weight of each item, mean 1: `balanced` gives each class the same sum, `sqrt` goes half of the way, a number that
    power of the way.
    """
    power = {"none": 0.0, "sqrt": 0.5, "balanced": 1.0}.get(kind, kind)
    if not power:
        return np.ones(len(y))
    weight = (1.0 / np.bincount(y)[y]) ** power
    return weight / weight.mean()


def _softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class Model:
    """A fitted classifier over all k classes, also those that its training items did not have."""

    def __init__(self, spec: ModelSpec, k: int):
        self.spec, self.k = spec, k
        self.calibrator: Calibrator | None = None

    def fit(self, items: Items) -> Model:
        """Fit on all of these items; TrainingError when the library refuses."""
        self._fit(items)
        if self.spec.calibration != "none":
            early, late = split.tail(items, by=self.spec.calibrate_on)
            if len(early) >= 50 and len(late) >= 50:
                held = Model(
                    ModelSpec(self.spec.kind, self.spec.params, self.spec.class_weight, seed=self.spec.seed), self.k
                )._fit(items[early])
                self.calibrator = Calibrator(self.spec.calibration).fit(held.proba(items.x[late]), items.y[late])
        return self

    def _fit(self, items: Items) -> Model:
        factory, weighted, most = FACTORIES[self.spec.kind]
        x, y = items.x, items.y
        if most and len(y) > most:
            keep = np.sort(np.random.default_rng(self.spec.seed).choice(len(y), most, replace=False))
            x, y = x[keep], y[keep]
        self.seen, y = np.unique(y, return_inverse=True)  # XGBoost wants 0…n−1
        self.estimator = None
        if len(self.seen) == 1:
            return self
        try:
            self.estimator = factory(dict(self.spec.params), self.spec.seed)
            options = {}
            if weighted and self.spec.class_weight != "none":
                last = self.estimator.steps[-1][0] + "__" if hasattr(self.estimator, "steps") else ""
                options = {last + "sample_weight": sample_weight(y, self.spec.class_weight)}
            if isinstance(self.estimator, Ordinal):
                options["ts_us"], options["embargo_us"] = items.ts_us, items.embargo_us
            with (
                warnings.catch_warnings(),
                threadpool_limits(1, user_api="blas"),
            ):  # matrices this small are slower on two cores
                warnings.simplefilter("ignore", ConvergenceWarning)  # max_iter is a limit on purpose
                self.estimator.fit(x, y, **options)
        except (TypeError, ValueError) as error:
            raise TrainingError(f"{self.spec.kind} with {self.spec.params}: {error}") from None
        return self

    def proba(self, x: np.ndarray) -> np.ndarray:
        """Probability of each class, float[n, k]."""
        out = np.zeros((len(x), self.k))
        if self.estimator is None:
            out[:, self.seen] = 1.0
        elif hasattr(self.estimator, "predict_proba"):
            out[:, self.seen] = self.estimator.predict_proba(x)
        else:
            d = self.estimator.decision_function(x)
            out[:, self.seen] = _softmax(d if d.ndim == 2 else np.column_stack([-d, d]))
        return self.calibrator(out) if self.calibrator else out

    def predict(self, x: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
        """Class of each item, int64[n]: the likeliest, or where an ordinal model cuts."""
        if isinstance(self.estimator, Ordinal) and not self.calibrator:
            return self.seen[self.estimator.predict(x)]
        return np.argmax(self.proba(x) if proba is None else proba, axis=1)
