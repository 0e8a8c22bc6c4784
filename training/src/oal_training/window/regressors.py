"""XGBoost, which can run on an AP, and seven other regressors to compare it with.

Settings were chosen on the capture learning2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oal_training.policies import window_settings

ON_AP = "xgboost"
#: policies/rwnd-fair/window.yaml
XGBOOST = window_settings()["xgboost"]
SEED = XGBOOST["random_state"]
SVR_ROWS = 4000  # fitting costs the square of the rows; every n-th row of the training part is taken
KB = 1000.0  # scale of the target for regressors that need one near 1


class Thinned:
    """Fits on every n-th row, so that at most `limit` are used."""

    def __init__(self, model, limit: int):
        self.model, self.limit = model, limit

    def fit(self, x: np.ndarray, y: np.ndarray) -> Thinned:
        """Fit on every n-th row of x float64[m, k] and y float64[m]."""
        step = -(-len(y) // self.limit)
        self.model.fit(x[::step], y[::step])
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Windows float64[m] in bytes."""
        return self.model.predict(x)


class Scaled:
    """Target in KB."""

    def __init__(self, model):
        self.model = model

    def fit(self, x: np.ndarray, y: np.ndarray) -> Scaled:
        """Fit x float64[m, k] to y float64[m] in bytes."""
        self.model.fit(x, y / KB)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Windows float64[m] in bytes."""
        return self.model.predict(x) * KB


def xgboost(**changes):
    """The regressor that an AP runs; not fitted. `changes`: other settings of XGBRegressor."""
    from xgboost import XGBRegressor

    return XGBRegressor(**XGBOOST | {"n_jobs": 1} | changes)


def whole(*steps):
    """Missing values become the median, then `steps`: only XGBoost knows what to do with them."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), *steps)


def signed_log(x: np.ndarray) -> np.ndarray:
    """Counters and rates span many magnitudes."""
    return np.sign(x) * np.log1p(np.abs(x))


def _standard(model):
    """As `whole`, then logarithms with mean 0 and deviation 1: for regressors that add or measure distances."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    return Scaled(
        make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            FunctionTransformer(signed_log),
            StandardScaler(),
            model,
        )
    )


def decision_tree():
    """One tree of scikit-learn."""
    from sklearn.tree import DecisionTreeRegressor

    return whole(DecisionTreeRegressor(max_depth=10, min_samples_leaf=30, random_state=SEED))


def random_forest():
    """60 trees, averaged."""
    from sklearn.ensemble import RandomForestRegressor

    return whole(
        RandomForestRegressor(
            n_estimators=60, max_depth=14, min_samples_leaf=10, max_features=0.4, n_jobs=1, random_state=SEED
        )
    )


def adaboost():
    """30 trees, each on what those before got wrong."""
    from sklearn.ensemble import AdaBoostRegressor
    from sklearn.tree import DecisionTreeRegressor

    return whole(
        AdaBoostRegressor(
            DecisionTreeRegressor(max_depth=7, min_samples_leaf=20, max_features=0.5, random_state=SEED),
            n_estimators=30,
            learning_rate=0.1,
            loss="linear",
            random_state=SEED,
        )
    )


def linear():
    """A sum of inputs with weights (ridge)."""
    from sklearn.linear_model import Ridge

    return _standard(Ridge(alpha=1.0))


def svr():
    """Support vectors, on at most SVR_ROWS rows."""
    from sklearn.svm import SVR

    return Thinned(_standard(SVR(kernel="rbf", C=30.0, epsilon=1.0)), SVR_ROWS)


def knn():
    """The mean of 15 neighbours, the nearer the heavier."""
    from sklearn.neighbors import KNeighborsRegressor

    return _standard(KNeighborsRegressor(n_neighbors=15, weights="distance"))


def mlp():
    """A network of two layers."""
    from sklearn.neural_network import MLPRegressor

    return _standard(
        MLPRegressor(
            hidden_layer_sizes=(48, 24),
            batch_size=256,
            early_stopping=True,
            n_iter_no_change=5,
            max_iter=80,
            random_state=SEED,
        )
    )


REGRESSORS: dict[str, Callable] = {
    ON_AP: xgboost,
    "random_forest": random_forest,
    "decision_tree": decision_tree,
    "adaboost": adaboost,
    "linear": linear,
    "svr": svr,
    "knn": knn,
    "mlp": mlp,
}
