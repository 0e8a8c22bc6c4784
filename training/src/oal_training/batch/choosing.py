"""What a model gains in one figure it may pay for in another: one model's probabilities, four ways to say a class.

*The likeliest* is what access points say. *As often as it came* weighs the probabilities so that each class is said as
often as the training items had it. *The class now, unless* stays with the class now until another one is likelier by a
margin. *Either* weighs and stays. Weights and margin are chosen on the latest quarter of the training items, by a model
of those before: for the margin, what adds right and macro F1 up to the most. No rule sees the items that are judged.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oal_training import macro_f1
from oal_training.batch import compare, corpus, report, scores, split, validation
from oal_training.batch.models import Model, ModelSpec
from oal_training.batch.persistence import Persistence
from oal_training.stored.items import Items

LIKELIEST, WEIGHED, STAYS, EITHER = ("the likeliest", "as often as it came", "the class now, unless", "either")
RULES = (LIKELIEST, WEIGHED, STAYS, EITHER)
MARGINS = np.round(np.arange(0, 1.01, 0.05), 2)
ROUNDS, FOLDS, TEST_SHARE, BLOCK_S = 300, 4, 0.6, 30.0
STEPS = 200  # of the search for weights; it stands still long before


def weights(proba: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A factor a class with which the likeliest class is each one about as often as in y."""
    k = proba.shape[1]
    wanted = (np.bincount(y, minlength=k) + 1) / (len(y) + k)
    found = np.ones(k)
    for step in range(STEPS):
        said = (np.bincount((proba * found).argmax(axis=1), minlength=k) + 1) / (len(y) + k)
        found *= (wanted / said) ** (0.5 / (1 + step / 20))
    return found / found.sum()


def stay(proba: np.ndarray, now: np.ndarray, margin: float) -> np.ndarray:
    """The class now, unless another is likelier by more than the margin."""
    likeliest = proba.argmax(axis=1)
    rows = np.arange(len(proba))
    return np.where(proba[rows, likeliest] - proba[rows, now] > margin, likeliest, now)


def margin(proba: np.ndarray, now: np.ndarray, y: np.ndarray) -> float:
    """The one of MARGINS with the greatest sum of right and macro F1; the least of several."""
    k = proba.shape[1]

    def gain(value: float) -> float:
        said = stay(proba, now, value)
        return float(np.mean(said == y)) + macro_f1.macro_f1(scores.confusion(y, said, k))

    return float(max(MARGINS, key=gain))


def _normed(proba: np.ndarray) -> np.ndarray:
    return proba / proba.sum(axis=1, keepdims=True)


def chosen(train: Items, test: Items, spec: ModelSpec) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Classes by rule, and the model's probabilities, of the items `test`; everything is learned from `train`."""
    k = len(train.classes)
    earlier, later = (train[rows] for rows in split.tail(train))
    of_later = Model(spec, k).fit(earlier).proba(later.x)
    by_weight = weights(of_later, later.y)
    margins = [margin(p, Persistence(k).fit(earlier).predict(later), later.y)
               for p in (of_later, _normed(of_later * by_weight))]
    proba, now = Model(spec, k).fit(train).proba(test.x), Persistence(k).fit(train).predict(test)
    weighed = _normed(proba * by_weight)
    return {LIKELIEST: proba.argmax(axis=1), WEIGHED: weighed.argmax(axis=1), STAYS: stay(proba, now, margins[0]),
            EITHER: stay(weighed, now, margins[1])}, proba


def run(path: Path, names: list[str], log=print) -> dict:
    """{"items": file, "split": words, "judged": items, "rows": [row, …]}; a row is a model and a rule, with right and
    macro F1, and both less persistence's with 95 % intervals (None for persistence itself).
    """
    items = corpus.read([path], log)[2]
    parts, said = compare.folds_of(items, "time", FOLDS, TEST_SHARE)
    k, rows = len(items.classes), np.sort(np.concatenate([part.test for part in parts]))
    found: dict[str, tuple] = {}
    for name, spec in compare.specs(names).items():
        classes, proba = {rule: np.zeros(len(items), np.int64) for rule in RULES}, np.zeros((len(items), k))
        for part in parts:
            by_rule, proba[part.test] = chosen(items[part.train], items[part.test], spec)
            for rule in RULES:
                classes[rule][part.test] = by_rule[rule]
        found |= {f"{name}, {rule}": (classes[rule][rows], proba[rows]) for rule in RULES}
        log(f"choosing: {name} on {path.name}")
    base = Persistence(k)
    said_by_base, of_base = np.zeros(len(items), np.int64), np.zeros((len(items), k))
    for part in parts:
        base.fit(items[part.train])
        said_by_base[part.test], of_base[part.test] = base.predict(items[part.test]), base.proba(items[part.test])
    found[validation.PERSISTENCE] = said_by_base[rows], of_base[rows]
    judged = validation.assemble(items, rows, said, found, [], BLOCK_S, ROUNDS)
    out = []
    for name, s in judged.scores.items():
        less = judged.against[name].get(validation.PERSISTENCE, {})
        out.append({"what": name, "right": round(s.accuracy, 4), "macro_f1": round(s.macro_f1, 4),
                    "right_gain": np.round(less["accuracy"], 4).tolist() if less else None,
                    "macro_f1_gain": np.round(less["macro_f1"], 4).tolist() if less else None})
    return {"items": path.name, "split": said, "judged": len(rows), "rows": out}


def text(results: list[dict]) -> str:
    """The results as Markdown."""
    lines = ["# One model, four ways to say a class", ""]
    for found in results:
        rows = []
        for r in found["rows"]:
            gains = ["" if r[key] is None else "{:+.3f} [{:+.3f}, {:+.3f}]".format(*r[key])
                     for key in ("right_gain", "macro_f1_gain")]
            rows.append([r["what"], f"{r['right']:.3f}", gains[0], f"{r['macro_f1']:.3f}", gains[1]])
        lines += [f"## {found['items']}: {found['judged']} items judged", "", f"Split {found['split']}.", "",
                  report.table(rows, ["model and rule", "right", "less persistence's", "macro F1",
                                      "less persistence's"]), ""]
    return "\n".join(lines).rstrip()
