"""Fit and predict fold by fold: predictions for items that the model in question never saw."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from oal_training.batch import before, scores, split
from oal_training.batch.distil import Distilled
from oal_training.batch.models import Model, ModelSpec
from oal_training.batch.persistence import Persistence, onset_score
from oal_training.batch.rivals import CHEAP, Rule
from oal_training.batch.scores import Predictions, Scores
from oal_training.stored.items import Items

PERSISTENCE = "persistence"
HELD_OUT = "held out"  # how the name of that way begins
LEAST_BLOCKS = 8  # fewer are no sample to draw from


@dataclass(frozen=True, eq=False)
class Judged:
    """One way of splitting: name; predictions of each model, all of the same items `rows` (indices, in order of time);
    notes. against: by model, rival and figure, the difference to that rival and its interval.
    """

    split: str
    rows: np.ndarray
    predictions: dict[str, Predictions]
    scores: dict[str, Scores]
    intervals: dict[str, dict[str, tuple[float, float]]]
    notes: list[str] = field(default_factory=list)
    against: dict[str, dict[str, dict[str, tuple[float, float, float]]]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Short name of the way of splitting: time, ap, time_ap, held_out, run, part."""
        name = self.split.lower()
        if name.startswith(("leave-run-out", "corpus")):
            return "run" if name.startswith("leave") else "part"
        if name.startswith(HELD_OUT):
            return "held_out"
        return "ap" if name.startswith("leave-ap-out") else "time_ap" if "and by ap" in name else "time"


def blocks(items: Items, block_s: float) -> np.ndarray:
    """Number of the block of time of each item; an AP's blocks are its own."""
    _, ap = np.unique(items.group, return_inverse=True)
    start = items.ts_us // int(block_s * 1e6)
    return ap * (start.max() - start.min() + 1) + start - start.min()


def block_length(items: Items, lengths: tuple[float, ...]) -> float:
    """The first of these lengths of blocks, s, that gives LEAST_BLOCKS of the items; the last where none does."""
    return next((s for s in lengths if len(np.unique(blocks(items, s))) >= LEAST_BLOCKS), lengths[-1])


def predictions(
    items: Items, predicted: np.ndarray, proba: np.ndarray, block_s: float, score: np.ndarray | None = None
) -> Predictions:
    """Predictions of all `items`; the score for onset is the probability of congestion unless another is given."""
    block = blocks(items, block_s)
    return Predictions(
        y=items.y,
        predicted=predicted,
        proba=proba,
        score=proba[:, items.congested_from :].sum(axis=1) if score is None else score,
        candidate=items.candidates,
        block=block,
        congested_from=items.congested_from,
        before=items.candidates & before.not_yet_dropped(items),
        episodes=before.episodes(items, block),
    )


class _Pool:
    """Collects what the folds say about a model; `score` where it is not the probability of congestion."""

    def __init__(self, n: int, k: int):
        self.predicted, self.proba, self.score = np.full(n, -1, np.int64), np.zeros((n, k)), None

    def put(self, rows: np.ndarray, predicted: np.ndarray, proba: np.ndarray, score: np.ndarray | None = None) -> None:
        self.predicted[rows], self.proba[rows] = predicted, proba
        if score is not None:
            self.score = np.zeros(len(self.predicted)) if self.score is None else self.score
            self.score[rows] = score

    def of(self, rows: np.ndarray) -> tuple:
        """(class, probabilities) of these rows, and the score if it has one of its own."""
        return self.predicted[rows], self.proba[rows], *(() if self.score is None else (self.score[rows],))


def fold_by_fold(
    items: Items, folds: list[split.Fold], specs: dict[str, ModelSpec], log=print, cheap: bool = False
) -> tuple[np.ndarray, dict[str, tuple], list[str]]:
    """Rows that were judged; per model (class, probabilities) of those, and a score where it is not the probability of
    congestion; notes. cheap: the rules of rivals.py, too.
    """
    k, n = len(items.classes), len(items)
    rivals = CHEAP if cheap else ()
    pools = {name: _Pool(n, k) for name in (*specs, *rivals, PERSISTENCE)}
    notes, fidelity, chosen = [], [], {name: [] for name in rivals}
    for number, fold in enumerate(folds, 1):
        train, test = items[fold.train], items[fold.test]
        absent = [items.classes[c] for c in range(k) if not (train.y == c).any() and (test.y == c).any()]
        if absent:
            notes.append(f"fold {number}: {', '.join(absent)} occur in the test part and not before")
        baseline = Persistence(k).fit(train)
        pools[PERSISTENCE].put(fold.test, baseline.predict(test), baseline.proba(test))
        for name in rivals:
            rule = Rule(name, k).fit(train)
            pools[name].put(fold.test, rule.predict(test), rule.proba(test), rule.score(test))
            chosen[name].append(rule.said)
        for name, spec in specs.items():
            began = time.monotonic()
            model = (Distilled if spec.kind == "distilled" else Model)(spec, k).fit(train)
            proba = model.proba(test.x)
            pools[name].put(fold.test, model.predict(test.x, proba), proba)
            if isinstance(model, Distilled):
                its = model.teacher.proba(test.x)
                pools.setdefault(f"{name}: its teacher", _Pool(n, k)).put(
                    fold.test, model.teacher.predict(test.x, its), its
                )
                fidelity.append((len(test), *model.fidelity(test.x), model.teacher_kind, model.tree.tree_.node_count))
            log(
                f"fold {number}/{len(folds)}: {name} on {len(train)} items, judged on {len(test)}"
                f" ({time.monotonic() - began:.1f} s)"
            )
    if fidelity:
        weight = np.array([f[0] for f in fidelity])
        same, distance = (float(np.average([f[i] for f in fidelity], weights=weight)) for i in (1, 2))
        notes.append(
            f"distilled: teacher's class on {same:.1%} of the test items, probabilities {distance:.3f} apart; teachers"
            f" {', '.join(sorted({f[3] for f in fidelity}))}; {max(f[4] for f in fidelity)} nodes at most"
        )
    notes += [f"{name}: {'; '.join(dict.fromkeys(said))}" for name, said in chosen.items()]
    rows = np.sort(np.concatenate([f.test for f in folds]))
    return rows, {name: p.of(rows) for name, p in pools.items()}, notes


def validate(
    items: Items,
    folds: list[split.Fold],
    name: str,
    specs: dict[str, ModelSpec],
    block_s: float = 30.0,
    rounds: int = 300,
    log=print,
    others: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None,
    cheap: bool = False,
) -> Judged:
    """Everything about one way of splitting, `name` in words. cheap: with the rules of rivals.py.

    `others`: predictions made elsewhere, (class, probabilities, mask of the items that they are for) of all items;
    persistence stands in for the rest.
    """
    rows, found, notes = fold_by_fold(items, folds, specs, log, cheap)
    baseline = found.pop(PERSISTENCE)
    for other, (predicted, proba, covered) in (others or {}).items():
        there = covered[rows]
        found[other] = (
            np.where(there, predicted[rows], baseline[0]),
            np.where(there[:, None], proba[rows], baseline[1]),
        )
    found[PERSISTENCE] = baseline
    return assemble(items, rows, name, found, notes, block_s, rounds)


def assemble(
    items: Items,
    rows: np.ndarray,
    name: str,
    found: dict[str, tuple],
    notes: list[str],
    block_s: float,
    rounds: int,
) -> Judged:
    """Scores and intervals of predictions of items[rows]; `found` as fold_by_fold gives it."""
    judged = items[rows]
    every = {}
    for model, (predicted, proba, *own) in found.items():
        score = own[0] if own else None
        if model == PERSISTENCE:
            score, form = onset_score(judged, proba)
            notes = [*notes, f"persistence predicts the class now; its score for onset: {form}"]
        every[model] = predictions(judged, predicted, proba, block_s, score)
    n_blocks = len(np.unique(next(iter(every.values())).block))
    drawn = (
        scores.bootstrap(every, rounds)
        if n_blocks >= LEAST_BLOCKS
        else {model: np.full((1, len(scores.FIGURES)), np.nan) for model in every}
    )
    figures = {m: scores.score(p) for m, p in every.items()}
    base = drawn.get(PERSISTENCE)
    intervals = {}
    for model, values in drawn.items():
        intervals[model] = {figure: scores.interval(values[:, i]) for i, figure in enumerate(scores.FIGURES)}
        if base is not None and model != PERSISTENCE:
            intervals[model] |= {
                "macro_f1_gain": scores.interval(values[:, 0] - base[:, 0]),
                "onset_ap_gain": scores.interval(values[:, 1] - base[:, 1]),
            }
    notes = [
        *notes,
        (
            f"95 % intervals: {rounds} bootstrap draws of {n_blocks} blocks of {block_s:g} s"
            if n_blocks >= LEAST_BLOCKS
            else f"no intervals: {n_blocks} blocks of {block_s:g} s are too few to draw from, {LEAST_BLOCKS} are needed"
        ),
    ]
    return Judged(name, rows, every, figures, intervals, notes, _against(figures, drawn))


def _against(
    figures: dict[str, Scores], drawn: dict[str, np.ndarray]
) -> dict[str, dict[str, dict[str, tuple[float, float, float]]]]:
    """Differences of each model to each of the others, paired: (difference, low, high)."""
    return {
        model: {
            rival: {
                figure: (
                    getattr(figures[model], figure) - getattr(figures[rival], figure),
                    *scores.interval(drawn[model][:, i] - drawn[rival][:, i]),
                )
                for i, figure in enumerate(scores.FIGURES)
            }
            for rival in figures
            if rival != model
        }
        for model in figures
    }
