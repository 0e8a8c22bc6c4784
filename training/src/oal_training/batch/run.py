"""One experiment from items to report, tree and version."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from oal_training.batch import split
from oal_training.batch.distil import Distilled
from oal_training.batch.experiment import Experiment
from oal_training.batch.models import Model
from oal_training.batch.persistence import Persistence
from oal_training.batch.validation import HELD_OUT, PERSISTENCE, Judged, assemble, block_length, validate
from oal_training.errors import TrainingError
from oal_training.stored.items import Items, with_range

SHORT_BLOCK_S = 10.0  # of blocks, where the experiment's are too few


def check(items: Items, experiment: Experiment) -> None:
    """TrainingError when the items are too few, or all of one class."""
    if len(items) < experiment.least_items:
        raise TrainingError(
            f"too few items: {len(items)}, need {experiment.least_items} (least_items of the experiment); let the"
            " platform run longer or take a longer range"
        )
    if len(set(items.y.tolist())) == 1:
        raise TrainingError(
            f"all {len(items)} items are {items.classes[items.y[0]]}: there is nothing to tell apart; take a range in"
            " which congestion came and went"
        )


def evaluate(items: Items, experiment: Experiment, log=print) -> tuple[list[Judged], list[str]]:
    """Every way of splitting that the items allow, and reasons why others were not done.

    TrainingError when none is possible.
    """
    check(items, experiment)
    specs = {} if experiment.model.kind == PERSISTENCE else {experiment.model.kind: experiment.model}
    parts, skipped = [], []
    for spec in experiment.splits:
        try:
            folds = split.folds(items, spec)
        except TrainingError as error:
            skipped.append(f"split {spec.kind}: {error}")
            continue
        name = split.name(items, spec)
        log(f"split {name}")
        bootstrap = experiment.bootstrap
        parts.append(validate(items, folds, name, specs, bootstrap.block_s, bootstrap.rounds, log))
    if not parts:
        raise TrainingError("; ".join(skipped))
    return parts, skipped


def hold_out(items: Items, experiment: Experiment, log=print) -> tuple[Items, Items | None]:
    """What the model is fitted on, and the latest items, which it is not; None where too few would be left."""
    early, late = split.tail(items, experiment.held_out) if experiment.held_out else (np.arange(len(items)), [])
    if len(late) and len(early) >= experiment.least_items and len(set(items.y[early].tolist())) > 1:
        log(f"held out: the latest {len(late)} items; the model is fitted on the {len(early)} before them")
        return with_range(items[early]), with_range(items[late])
    log("held out: nothing; a version of this run cannot be compared with another, so it is not let in as champion")
    return items, None


def fit(items: Items, experiment: Experiment, log=print):
    """The experiment's model on all of these items."""
    check(items, experiment)
    k = len(items.classes)
    if experiment.model.kind == PERSISTENCE:
        return Persistence(k).fit(items)
    began = time.monotonic()
    model = (Distilled if experiment.model.kind == "distilled" else Model)(experiment.model, k).fit(items)
    log(f"{experiment.model.kind} on {len(items)} items ({time.monotonic() - began:.1f} s)")
    return model


def as_tree(model):
    """The DecisionTreeClassifier of a model, calibration written into its leaves; None when the model is no tree."""
    if isinstance(model, Distilled):
        return model.tree
    if not isinstance(model, Model) or model.spec.kind != "decision_tree" or model.estimator is None:
        return None
    tree = model.estimator
    if model.calibrator:
        values = np.zeros((tree.tree_.node_count, model.k))
        values[:, model.seen] = tree.tree_.value[:, 0, :]
        changed = model.calibrator(values)[:, model.seen]
        total = changed.sum(axis=1, keepdims=True)
        tree.tree_.value[:, 0, :] = np.where(total > 0, changed / np.maximum(total, 1e-12), tree.tree_.value[:, 0, :])
        model.calibrator = None
    tree.classes_ = model.seen.astype(np.int64)
    return tree


def validate_tree(items: Items, tree, name: str, trained_until_us: int, experiment: Experiment) -> Judged:
    """An existing tree on the items that are later than those it was trained on.

    Persistence learns its frequencies on the first of them.
    """
    later = items[items.ts_us > trained_until_us + items.embargo_us]
    if len(later) < experiment.least_items:
        raise TrainingError(
            f"too few items: {len(later)} of {len(items)} are later than what {name} was trained on, need"
            f" {experiment.least_items}"
        )
    if getattr(tree, "n_features_in_", len(items.names)) != len(items.names):
        raise TrainingError(
            f"{name} takes {tree.n_features_in_} features, the items have {len(items.names)}: they are of another"
            " feature program"
        )
    k = len(items.classes)
    proba = np.zeros((len(later), k))
    proba[:, tree.classes_.astype(int)] = tree.predict_proba(later.x)
    baseline = Persistence(k).fit(later)
    found = {name: (np.argmax(proba, axis=1), proba), PERSISTENCE: (baseline.predict(later), baseline.proba(later))}
    return assemble(
        later,
        np.arange(len(later)),
        f"by time: all items are later than those that {name} was trained on",
        found,
        ["the frequencies of persistence are of these very items, which favours it (Brier)"],
        experiment.bootstrap.block_s,
        experiment.bootstrap.rounds,
    )


def judge_held_out(items: Items, tree, name: str, experiment: Experiment) -> Judged:
    """The very tree that is logged, on the items that it was not fitted on."""
    proba = np.zeros((len(items), len(items.classes)))
    proba[:, tree.classes_.astype(int)] = tree.predict_proba(items.x)
    baseline = Persistence(len(items.classes)).fit(items)
    found = {name: (np.argmax(proba, axis=1), proba), PERSISTENCE: (baseline.predict(items), baseline.proba(items))}
    length = block_length(items, (experiment.bootstrap.block_s, SHORT_BLOCK_S))
    return assemble(
        items,
        np.arange(len(items)),
        f"{HELD_OUT}: the latest {len(items)} items, of which the tree saw none",
        found,
        [],
        length,
        experiment.bootstrap.rounds,
    )


def mlflow_figures(parts: list[Judged], model: str) -> dict[str, float]:
    """Figures for MLflow: of the model and of persistence, by way of splitting; only those that exist."""
    found = {}
    for part in parts:
        for prefix, name in (("", model), ("persistence_", PERSISTENCE)):
            if name in part.scores:
                s = part.scores[name]
                found |= {
                    f"{part.kind}.{prefix}{figure}": getattr(s, figure)
                    for figure in ("macro_f1", "onset_ap", "brier", "accuracy")
                }
        found[f"{part.kind}.onset_rate"] = part.scores[PERSISTENCE].onset_rate
    return {key: float(value) for key, value in found.items() if np.isfinite(value)}


def share(items: Items) -> dict[str, float]:
    """How much of what ClickHouse has these items are: of a long range a sample is read."""
    there = {"data.items": float(len(items))}
    if "share" in items.source:
        there |= {"data.items_there": float(items.source["items_there"]), "data.share": float(items.source["share"])}
    return there


def params(experiment: Experiment) -> dict[str, str]:
    """Parameters for MLflow."""
    values = dataclasses.asdict(experiment.model)
    return {k: v for k, v in values.items() if v not in ({}, None)} | {"experiment": experiment.name}
