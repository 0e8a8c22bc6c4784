"""Parity, case by case: a library's model, the Python reference and the AP's C code on the same integers.

python tests/parity.py [CASES]      prints how many cases were compared; 0 differences or it fails
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

if __name__ == "__main__":
    sys.path[:0] = [
        str(Path(__file__).resolve().parents[1] / "src"),
        str(Path(__file__).resolve().parents[2] / "schema" / "src"),
    ]

import c_evaluator  # noqa: E402
from oal_registry import compile as compiler  # noqa: E402
from oal_schema.bundle import Bundle, encode, models_of, sign  # noqa: E402
from oal_schema.bundle_law import RWND_FAIR  # noqa: E402
from oal_schema.golden_bundles import feature_hash, program, random_tree  # noqa: E402
from oal_schema.tree import MISSING, Tree, WindowModel  # noqa: E402

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
INT64 = np.iinfo(np.int64)


def integers(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Features of every kind: small, beyond float32's 2^24, negative, huge, constant, missing."""
    scale = rng.choice([3, 100, 1 << 20, 1 << 25, 1 << 33, 1 << 53, 1 << 62], columns)
    x = np.empty((rows, columns), np.int64)
    for c in range(columns):
        x[:, c] = rng.integers(-int(scale[c]), int(scale[c]), rows) if rng.random() < 0.9 else rng.integers(-5, 5)
    x[rng.random(x.shape) < 0.02] = rng.choice([INT64.max, INT64.min + 1, 0, -1])
    x[rng.random(x.shape) < rng.choice([0.0, 0.1])] = MISSING
    return x


def near_thresholds(
    rng: np.random.Generator, rows: int, x: np.ndarray, tables: list[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Rows of `x` in which half of the values lie at a threshold of one of the (feature, threshold) tables, or a few
    integers beside it.
    """
    out = x[rng.integers(0, len(x), rows)].copy()
    feature = np.concatenate([f for f, _ in tables])
    threshold = np.concatenate([t for _, t in tables])
    for c in range(x.shape[1]):
        if (at := threshold[feature == c]).size:
            moved = np.clip(
                rng.choice(at, rows).astype(object) + rng.integers(-2, 3, rows), INT64.min, INT64.max
            ).astype(np.int64)
            out[:, c] = np.where(rng.random(rows) < 0.5, moved, out[:, c])
    return out


def tree_cases(lib, seed: int, rows: int) -> int:
    """One random DecisionTreeClassifier; AssertionError where scikit-learn, Python and C differ in leaf, class or
    probability.
    """
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(seed)
    x = integers(rng, int(rng.integers(20, 800)), int(rng.integers(1, 46)))
    y = rng.choice(rng.choice(4, int(rng.integers(1, 5)), replace=False), len(x))
    y = np.where((x[:, 0] > np.median(x[:, 0])) & (rng.random(len(x)) < 0.7), y.max(), y)
    model = DecisionTreeClassifier(
        max_leaf_nodes=int(rng.integers(2, 200)),
        splitter=rng.choice(["best", "random"]),
        random_state=seed % 1000,
        class_weight=[None, "balanced"][seed % 2],
    ).fit(compiler.as_floats(x), y)
    tree = compiler.tree(model, feature_hash())
    signed, width = _signed(tree, None, seed), len(program()[0])
    cases = near_thresholds(rng, rows, x, [(tree.feature, tree.threshold)])
    wide = np.full((rows, width), MISSING)
    wide[:, : x.shape[1]] = cases
    c = c_evaluator.Evaluator(lib, signed)
    try:
        leaves, floats = tree.apply(wide), compiler.as_floats(cases)
        assert (c.leaves(wide) == leaves).all(), f"seed {seed}: C and Python differ"
        origin = dict(zip(leaves, model.apply(floats)))
        assert (
            len(set(origin.values())) == len(origin)
            and (np.array([origin[v] for v in leaves]) == model.apply(floats)).all()
        ), f"seed {seed}: leaves differ"
        assert (tree.predict(wide) == model.predict(floats)).all(), f"seed {seed}: classes differ"
        share = np.zeros((rows, 4))
        share[:, model.classes_] = model.predict_proba(floats)
        assert (
            np.abs(tree.leaf_permille[leaves] - 1000 * share[:, 1:]) <= 1
        ).all(), f"seed {seed}: probabilities differ"
        for v in set(leaves):
            class_, permille = c.leaf(int(v))
            assert (
                class_ == tree.leaf_class[v] and permille[1:] == list(tree.leaf_permille[v]) and sum(permille) == 1000
            )
    finally:
        c.close()
    return rows


def regressor(rng: np.random.Generator, seed: int):
    """A regressor of random kind and size, not fitted."""
    import xgboost
    from sklearn import ensemble
    from sklearn import tree as sktree

    kind = seed % 8
    if kind < 5:
        return xgboost.XGBRegressor(
            n_estimators=int(rng.integers(1, 101)),
            max_depth=int(rng.integers(1, 7)),
            learning_rate=float(rng.uniform(0.05, 0.5)),
            tree_method=["hist", "exact"][seed % 2],
            n_jobs=1,
            random_state=seed,
        )
    if kind == 5:
        return ensemble.GradientBoostingRegressor(
            n_estimators=int(rng.integers(1, 60)), max_depth=3, init=[None, "zero"][seed % 2], random_state=seed % 999
        )
    if kind == 6:
        return [ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor][seed % 2](
            n_estimators=int(rng.integers(1, 20)), max_leaf_nodes=40, random_state=seed % 999
        )
    return sktree.DecisionTreeRegressor(max_leaf_nodes=60, random_state=seed % 999)


def window_cases(lib, seed: int, rows: int) -> tuple[int, float]:
    """One random regressor; (cases, largest share of the bound that was used).

    AssertionError beyond the bound, or where C and Python differ.
    """
    rng = np.random.default_rng(seed)
    model = regressor(rng, seed)
    x = integers(rng, int(rng.integers(20, 500)), int(rng.integers(1, 21)))
    if seed % 8 == 5:
        x[x == MISSING] = 0  # GradientBoostingRegressor takes no missing values
    y = rng.integers(1460, 200_000, len(x)) + np.where(x[:, 0] > np.median(x[:, 0]), 300_000, 0)
    model.fit(compiler.as_floats(x), y)
    inputs = list(rng.permutation(len(program()[0]))[: x.shape[1]])
    window, bound = compiler.window(model, inputs, feature_hash(), lo=1460, hi=1 << 22)
    cases = near_thresholds(rng, rows, x, [(t[0], t[1]) for t in window.trees])
    if seed % 8 == 5:
        cases[cases == MISSING] = INT64.min + 1
    want = np.clip(model.predict(compiler.as_floats(cases)).astype(np.float64), window.lo, window.hi)
    got = window.predict(cases)
    worst = float(np.abs(got - want).max())
    assert worst <= bound, f"seed {seed}: {worst} bytes off, and the bound is {bound}"
    c = c_evaluator.Evaluator(lib, _signed(random_tree(1, 3), window, seed))
    try:
        assert (c.windows(cases) == got).all(), f"seed {seed}: C and Python differ"
    finally:
        c.close()
    return rows, worst / bound


def _signed(tree: Tree, window: WindowModel | None, seed: int) -> bytes:
    """A bundle of format 1, of every other seed one of format 2: that of a policy which is not rwnd-fair."""
    words, interval = program()
    policy = "parity" if seed % 2 else RWND_FAIR
    models = models_of(tree, window)
    made = Bundle(1, "fleet", "registry", "parity", 1, [], words, interval, models, of_policy=policy)
    assert made.format == 1 + seed % 2
    return sign(encode(made), KEY)


def main(cases: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lib = c_evaluator.build(Path(folder))
        for name, run in (("tree", tree_cases), ("window model", window_cases)):
            done = models = 0
            share = 0.0
            while done < cases:
                got = run(lib, models, 4000)
                done, share = done + (got if isinstance(got, int) else got[0]), max(
                    share, 0.0 if isinstance(got, int) else got[1]
                )
                models += 1
            print(
                f"{name}: {done} cases over {models} models, "
                + (
                    "library = Python = C"
                    if run is tree_cases
                    else f"Python = C, the library within the bound (at most {share:.0%} of it was used)"
                ),
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
