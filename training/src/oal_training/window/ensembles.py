"""The regressors of the paper's Table 6 that are not in `regressors`, and its eight by the paper's names."""

from __future__ import annotations

from collections.abc import Callable

from oal_training.window.regressors import REGRESSORS, SEED, whole

VOTERS = ("gradient_boosting", "random_forest", "linear")


def gradient_boosting():
    """100 trees of depth 4, each on half of the rows and what those before left over."""
    from sklearn.ensemble import GradientBoostingRegressor

    return whole(
        GradientBoostingRegressor(
            n_estimators=100, max_depth=4, min_samples_leaf=20, subsample=0.5, max_features=0.4, random_state=SEED
        )
    )


def bagging():
    """30 trees, each on rows drawn with replacement and all inputs, averaged."""
    from sklearn.ensemble import BaggingRegressor
    from sklearn.tree import DecisionTreeRegressor

    return whole(
        BaggingRegressor(
            DecisionTreeRegressor(max_depth=12, min_samples_leaf=10), n_estimators=30, n_jobs=1, random_state=SEED
        )
    )


def extra_trees():
    """60 trees with thresholds drawn at random, averaged."""
    from sklearn.ensemble import ExtraTreesRegressor

    return whole(
        ExtraTreesRegressor(
            n_estimators=60, max_depth=14, min_samples_leaf=10, max_features=0.6, n_jobs=1, random_state=SEED
        )
    )


def voting():
    """The mean of gradient boosting, random forest and a linear sum."""
    from sklearn.ensemble import VotingRegressor

    # sklearn clones its voters, which `Scaled` cannot do: the linear one is a pipeline with its own target here
    return VotingRegressor([("boosting", gradient_boosting()), ("forest", REGRESSORS["random_forest"]()),
                            ("linear", _linear())])  # fmt: skip


def _linear():
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    from oal_training.window.regressors import signed_log

    return whole(FunctionTransformer(signed_log), StandardScaler(), Ridge(alpha=1.0))


#: the paper's name → how ours is made
TABLE_6: dict[str, Callable] = {
    "GradientBoosting": gradient_boosting,
    "RandomForest": REGRESSORS["random_forest"],
    "Linear": REGRESSORS["linear"],
    "Voting": voting,
    "AdaBoost": REGRESSORS["adaboost"],
    "Bagging": bagging,
    "ExtraTrees": extra_trees,
    "XGB": REGRESSORS["xgboost"],
}
