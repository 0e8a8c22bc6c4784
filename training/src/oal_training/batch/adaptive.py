"""River's adaptive random forest, prequentially: it learns each item when its label has settled, and never rests.

Of the items to learn beforehand at most MOST are taken, evenly: it costs some 0.7 ms an item.
"""

from __future__ import annotations

import numpy as np

from oal_training.batch.split import Fold
from oal_training.stored.items import Items

NAME = "adaptive forest (River)"
MOST = 20_000
TREES = 10
EVERY = 3  # of the items judged, every third is learned: their label windows overlap by nine tenths


def predict(items: Items, folds: list[Fold], seed: int = 0, most: int = MOST) -> tuple[np.ndarray, np.ndarray]:
    """(class int64[n], probabilities float[n, k]) of all items; those of no fold are of class 0."""
    from river import forest

    k = len(items.classes)
    proba = np.zeros((len(items), k))
    x = np.where(np.isnan(items.x), -1.0, items.x)  # it knows no missing values
    names = items.names
    for fold in folds:
        model = forest.ARFClassifier(n_models=TREES, seed=seed, leaf_prediction="mc")
        stride = max(1, -(-len(fold.train) // most))
        row = lambda i: dict(zip(names, x[i].tolist()))
        for i in fold.train[::stride]:
            model.learn_one(row(i), int(items.y[i]))
        due = 0
        for i in fold.test:
            while items.ts_us[fold.test[due]] + items.embargo_us <= items.ts_us[i]:
                if due % EVERY == 0:
                    model.learn_one(row(fold.test[due]), int(items.y[fold.test[due]]))
                due += 1
            for c, p in model.predict_proba_one(row(i)).items():
                proba[i, c] = p
    total = proba.sum(axis=1, keepdims=True)
    proba = np.where(total > 0, proba / np.maximum(total, 1e-12), np.eye(k)[0])
    return np.argmax(proba, axis=1), proba
