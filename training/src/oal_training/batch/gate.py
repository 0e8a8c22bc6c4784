"""May a version be champion? It and the one in force on the same kept items, by the judge of `oal-train fit`.

Of the version in force what is refused is what is worse beyond doubt: the whole 95 % interval of the difference, drawn
in pairs over blocks of time of an access point, lies below 0. Rivals that cost nothing (persistence, one column, two
thresholds: rivals.py) must be beaten: the figure itself must be above theirs. What cannot be known is refused too. The
registry asks before it releases.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oal_training import policies
from oal_training.batch import scores, validation
from oal_training.batch.persistence import Persistence, onset_score
from oal_training.batch.rivals import COLUMN, THRESHOLDS, Rule
from oal_training.batch.scores import Predictions
from oal_training.errors import TrainingError
from oal_training.stored.items import Items

FIGURES = {"accuracy": "right", "macro_f1": "macro F1", "onset_ap": "onset AP"}  # of scores.FIGURES
#: word in gate.yaml → name
RIVALS = {"persistence": validation.PERSISTENCE, "best_column": COLUMN, "two_thresholds": THRESHOLDS}


@dataclass(frozen=True)
class Rules:
    """figures: of FIGURES; rivals: of RIVALS; min_items, min_onsets: at least, of the kept items; block_s:
    lengths of blocks in seconds, the first that gives LEAST_BLOCKS is taken; rounds: draws.
    """

    figures: tuple[str, ...] = ("accuracy", "onset_ap")
    rivals: tuple[str, ...] = ()
    min_items: int = 200
    min_onsets: int = 20
    block_s: tuple[float, ...] = (30.0, 10.0)
    rounds: int = 300

    def __post_init__(self):
        if not self.figures or set(self.figures) - set(FIGURES) or set(self.rivals) - set(RIVALS):
            raise TrainingError(f"figures are some of {', '.join(FIGURES)}, rivals some of {', '.join(RIVALS)}")
        if not self.block_s or min(self.block_s) < 1 or self.min_items < 1 or self.min_onsets < 0 or self.rounds < 100:
            raise TrainingError("block_s are seconds from 1, min_items is 1 or more, rounds 100 or more")


def rules(policy: str) -> Rules:
    """Those of a policy's `gate.yaml`; without the file a version is compared with the one in force alone.
    TrainingError when the file cannot be understood.
    """
    return policies.gate_rules(policy, Rules)


@dataclass(frozen=True)
class Verdict:
    """refused: why, "" when it may pass; scores: by model, each figure; compared: what the differences are, in words;
    items, onsets: on which.
    """

    refused: str
    items: int
    onsets: int
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    compared: tuple[str, ...] = ()


def judge(
    items: Items,
    own: str,
    said: dict[str, tuple[np.ndarray, np.ndarray]],
    by: Rules,
    training: Items | None = None,
) -> Verdict:
    """The verdict on `own`. `said`: of it and of the one in force, if there is any: (class int64[n], probabilities
    float[n, k]) of these items. training: what `own` was fitted on; on it column and thresholds are chosen.
    """
    n, onsets = len(items), int(np.sum(items.candidates & items.congested))
    if n < by.min_items or onsets < by.min_onsets:
        few = f"{n} items with {onsets} onsets are too few to judge by: {by.min_items} with {by.min_onsets} are needed"
        return Verdict(few, n, onsets)
    if set(by.rivals) - {"persistence"} and training is None:
        return Verdict("the items that it was fitted on are not there: no rule can be chosen on them", n, onsets)
    length = validation.block_length(items, by.block_s)
    every = {name: validation.predictions(items, predicted, p, length) for name, (predicted, p) in said.items()}
    every |= _rivals(items, training, by, length)
    blocks = len(np.unique(every[own].block))
    figures = {name: scores.score(p) for name, p in every.items()}
    shown = {name: {figure: float(getattr(s, figure)) for figure in FIGURES} for name, s in figures.items()}
    cheap = [RIVALS[word] for word in by.rivals]
    others = [name for name in said if name != own] + cheap
    unequal = [name for name in others if not _same(every[own], every[name])]
    if unequal and blocks < validation.LEAST_BLOCKS:
        few = f"{blocks} blocks of {length:g} s are too few to draw from: {validation.LEAST_BLOCKS} are needed"
        return Verdict(few, n, onsets, shown)
    drawn = scores.bootstrap(every, by.rounds) if unequal else {}
    wrong, compared = [], [f"the same answers as {name}" for name in others if name not in unequal]
    wrong += [f"it says no more than {name}" for name in cheap if name not in unequal]
    for name in unequal:
        for figure in by.figures:
            column = scores.FIGURES.index(figure)
            low, high = scores.interval(drawn[own][:, column] - drawn[name][:, column])
            mine, its = shown[own][figure], shown[name][figure]
            words = f"{FIGURES[figure]} {mine:.3f} against {its:.3f} of {name}"
            compared.append(f"{words}, difference {mine - its:+.3f} (95 % {low:+.3f} to {high:+.3f})")
            if not np.isfinite([mine, its, low, high]).all():
                wrong.append(f"{words} cannot be compared")
            elif high < 0:
                wrong.append(f"worse: {compared[-1]}")
            elif name in cheap and mine <= its:
                wrong.append(f"no better: {compared[-1]}")
    where = f", on {n} items with {onsets} onsets in {blocks} blocks of {length:g} s"
    return Verdict("; ".join(wrong) + where if wrong else "", n, onsets, shown, tuple(compared))


def _rivals(items: Items, training: Items | None, by: Rules, length: float) -> dict[str, Predictions]:
    """Persistence, whose figures are always shown, and the rules that the policy asks for."""
    baseline = Persistence(len(items.classes)).fit(items)
    proba = baseline.proba(items)
    score = onset_score(items, proba)[0]
    found = {
        validation.PERSISTENCE: validation.predictions(items, baseline.predict(items), proba, length, score),
    }
    for word in by.rivals:
        if word != "persistence":
            rule = Rule(RIVALS[word], len(items.classes)).fit(training)
            answers = rule.predict(items), rule.proba(items), length, rule.score(items)
            found[RIVALS[word]] = validation.predictions(items, *answers)
    return found


def _same(a: Predictions, b: Predictions) -> bool:
    return np.array_equal(a.predicted, b.predicted) and np.array_equal(a.score, b.score)
