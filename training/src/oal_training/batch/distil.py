"""The best ensemble, told by one tree that fits on an access point.

The tree learns the teacher's probabilities instead of the bare classes: each item enters once a class, weighted by the
probability. It learns them on the real items and on perturbed ones, copies in which some features are another item's,
so that the tree also follows the teacher where the real items are thin. `truth` is the weight of what really happened
beside the teacher's word.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from oal_training.batch import split
from oal_training.batch.models import ENSEMBLES, Model, ModelSpec
from oal_training.batch.scores import average_precision, confusion
from oal_training.errors import TrainingError
from oal_training.macro_f1 import macro_f1
from oal_training.stored.items import Items

LEAST_WEIGHT = 0.002
MAX_ROWS = 300_000  # real and perturbed items that a tree is fitted to: some 500 MB


@dataclass(frozen=True)
class DistilSpec:
    """teachers: kinds of which the best on the latest quarter of the training items is taken; max_nodes: of the tree,
    inner nodes and leaves; min_share: least share of the items' weight in a leaf; copies: perturbed items an item;
    swap: share of features swapped; truth: 0…1. blend: all teachers, the mean of their probabilities; params: of each
    teacher, by kind.
    """

    teachers: tuple[str, ...] = ENSEMBLES
    max_nodes: int = 255
    min_share: float = 0.001
    copies: int = 3
    swap: float = 0.2
    truth: float = 0.3
    blend: bool = False
    params: dict = field(default_factory=dict)

    def __post_init__(self):
        if wrong := [t for t in self.teachers if t not in ENSEMBLES]:
            raise TrainingError(f"distil.teachers: {', '.join(wrong)} is none of {', '.join(ENSEMBLES)}")
        if (
            not self.teachers
            or not 3 <= self.max_nodes <= 4095
            or not 0 <= self.copies <= 50
            or not 0 <= self.swap <= 1
            or not 0 <= self.truth <= 1
        ):
            raise TrainingError("distil needs at least one teacher, max_nodes 3…4095, copies 0…50, swap and truth 0…1")


class Blend:
    """The mean of several models' probabilities."""

    def __init__(self, models: list[Model]):
        self.models = models

    def fit(self, items: Items) -> Blend:
        """Fit each on all of these items."""
        self.models = [model.fit(items) for model in self.models]
        return self

    def proba(self, x: np.ndarray) -> np.ndarray:
        """float[n, k]."""
        return sum(model.proba(x) for model in self.models) / len(self.models)

    def predict(self, x: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
        """The likeliest class of each item."""
        return np.argmax(self.proba(x) if proba is None else proba, axis=1)


class Distilled:
    """Fits a teacher, then the tree.

    `tree` is a DecisionTreeClassifier over the classes that occurred; `teacher` the Model, `teacher_kind` its name.
    """

    def __init__(self, spec: ModelSpec, k: int):
        self.spec, self.k = spec, k
        options = dict(spec.distil)
        if "teachers" in options:
            options["teachers"] = tuple(options["teachers"])
        try:
            self.distil = DistilSpec(**options)
        except TypeError as error:
            raise TrainingError(f"distil: {error}") from None

    def fit(self, items: Items) -> Distilled:
        """Fit on all of these items."""
        if self.distil.blend:
            self.teacher_kind = " + ".join(self.distil.teachers)
            self.teacher = Blend([Model(self._teacher(kind), self.k) for kind in self.distil.teachers]).fit(items)
        else:
            self.teacher_kind = self._best(items)
            self.teacher = Model(self._teacher(self.teacher_kind), self.k).fit(items)
        rng = np.random.default_rng(self.spec.seed)
        d = self.distil
        if len(items) > MAX_ROWS:
            items = items[np.sort(rng.choice(len(items), MAX_ROWS, replace=False))]
        n_copies = min(d.copies, MAX_ROWS // len(items) - 1)
        copies = np.repeat(items.x, n_copies, axis=0)
        other = items.x[rng.integers(len(items), size=len(copies))]
        copies = np.where(rng.random(copies.shape) < d.swap, other, copies)
        x = np.vstack([items.x, copies])
        soft = self.teacher.proba(x)
        soft[: len(items)] = (1 - d.truth) * soft[: len(items)] + d.truth * np.eye(self.k)[items.y]
        if n_copies:
            soft[len(items) :] /= n_copies  # perturbed items weigh as much as the real ones together
        row, c = np.nonzero(soft > LEAST_WEIGHT)
        self.tree = DecisionTreeClassifier(
            **{
                "max_leaf_nodes": (d.max_nodes + 1) // 2,
                "min_weight_fraction_leaf": d.min_share,
                "random_state": self.spec.seed,
            }
            | self.spec.params
        )
        self.tree.fit(x[row], c, sample_weight=soft[row, c])
        return self

    def _teacher(self, kind: str) -> ModelSpec:
        return ModelSpec(
            kind,
            params=dict(self.distil.params.get(kind, {})),
            class_weight=self.spec.class_weight,
            calibration=self.spec.calibration,
            calibrate_on=self.spec.calibrate_on,
            seed=self.spec.seed,
        )

    def _best(self, items: Items) -> str:
        """The teacher with the best sum of onset average precision and macro F1 on items that it did not learn from."""
        if len(self.distil.teachers) == 1:
            return self.distil.teachers[0]
        early, late = split.tail(items)
        if len(early) < 50 or len(late) < 50:
            return self.distil.teachers[0]
        held = items[late]
        c = held.candidates
        quality = {}
        for kind in self.distil.teachers:
            model = Model(self._teacher(kind), self.k).fit(items[early])
            proba = model.proba(held.x)
            quality[kind] = macro_f1(confusion(held.y, model.predict(held.x, proba), self.k)) + np.nan_to_num(
                average_precision(held.congested[c], proba[c][:, held.congested_from :].sum(axis=1))
            )
        return max(quality, key=quality.get)

    def proba(self, x: np.ndarray) -> np.ndarray:
        """float[n, k], of the tree."""
        out = np.zeros((len(x), self.k))
        out[:, self.tree.classes_] = self.tree.predict_proba(x)
        return out

    def predict(self, x: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
        """Class of each item, of the tree."""
        return np.argmax(self.proba(x) if proba is None else proba, axis=1)

    def fidelity(self, x: np.ndarray) -> tuple[float, float]:
        """Share of items with the teacher's class, and mean distance of the probability of each class from the
        teacher's.
        """
        mine, its = self.proba(x), self.teacher.proba(x)
        return float(np.mean(np.argmax(mine, axis=1) == np.argmax(its, axis=1))), float(np.mean(np.abs(mine - its)))
