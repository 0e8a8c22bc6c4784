"""How good predictions are. Onset is the headline: no congestion now, congestion next, judged by average precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oal_training import macro_f1
from oal_training.batch.before import Episodes, alarms

RELIABILITY_BINS = 10
#: columns of `bootstrap`
FIGURES = ("macro_f1", "onset_ap", "before_ap", "accuracy", "brier", "calibration_error", "foreseen", "lead_s")
LESS_IS_BETTER = ("brier", "calibration_error")


@dataclass(frozen=True, eq=False)
class Predictions:
    """For n items: y and predicted classes int64[n], proba float64[n, k], score float64[n] (the greater, the likelier
    congestion), candidate bool[n] (no congestion now: an onset can occur), block int64[n] (what a bootstrap draws),
    congested_from (first class of congestion). before bool[n]: candidates in whose last second nothing was dropped, and
    the episodes that begin after such; None where nobody asks.
    """

    y: np.ndarray
    predicted: np.ndarray
    proba: np.ndarray
    score: np.ndarray
    candidate: np.ndarray
    block: np.ndarray
    congested_from: int
    before: np.ndarray | None = None
    episodes: Episodes | None = None

    def __getitem__(self, rows) -> Predictions:
        """These items; without episodes, since their rows are not whole."""
        return Predictions(
            *(getattr(self, f)[rows] for f in ("y", "predicted", "proba", "score", "candidate", "block")),
            self.congested_from,
            None if self.before is None else self.before[rows],
        )


@dataclass(frozen=True, eq=False)
class Scores:
    """precision, recall, f1: float[k], 0 where undefined; support int[k]; macro_f1: as module macro_f1 says; onset_ap:
    average precision over candidates, NaN without an onset or a non-onset; onset_rate: share of onsets among them,
    which is the onset_ap of a constant score; brier: mean of Σ(p − y)² over classes, 0…2; confusion int[k, k], rows
    are the truth. before_ap: of the onsets before the first drop, among before_candidates items; calibration_error:
    expected, of the probability of congestion, over tenths. With as many alarms as onsets before the first drop:
    foreseen, share of the episodes with an alarm up to their drop; lead_s, the median of how long before it, 0 for
    those not foreseen; lead_foreseen_s, of the others.
    """

    n: int
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    macro_f1: float
    accuracy: float
    onset_ap: float
    onset_rate: float
    onsets: int
    candidates: int
    brier: float
    confusion: np.ndarray
    before_ap: float = float("nan")
    before_onsets: int = 0
    before_candidates: int = 0
    calibration_error: float = float("nan")
    episodes: int = 0
    foreseen: float = float("nan")
    lead_s: float = float("nan")
    lead_foreseen_s: float = float("nan")


def confusion(y: np.ndarray, predicted: np.ndarray, k: int, weight: np.ndarray | None = None) -> np.ndarray:
    """Items by true class (row) and predicted class (column), [k, k]."""
    return np.bincount(y * k + predicted, weights=weight, minlength=k * k).reshape(k, k)


def rates(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall a class of a confusion matrix; 0 where they are undefined."""
    hit, said, is_ = np.diagonal(matrix), matrix.sum(axis=0), matrix.sum(axis=1)
    return hit / np.where(said > 0, said, 1), hit / np.where(is_ > 0, is_, 1)


def average_precision(positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Σ (recall_i − recall_{i−1}) · precision_i over falling thresholds, ties together; NaN unless both kinds are
    there.
    """
    order = np.argsort(-score, kind="stable")
    return _average_precision(positive[order], score[order], None if weight is None else weight[order])


def _average_precision(positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None) -> float:
    """As above, sorted by falling score."""
    w = np.ones(len(positive)) if weight is None else weight
    total, hits = np.cumsum(w), np.cumsum(w * positive)
    if not len(w) or hits[-1] == 0 or hits[-1] == total[-1]:
        return float("nan")
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    last = last[total[last] > 0]
    return float(np.sum(np.diff(hits[last], prepend=0) * hits[last] / total[last]) / hits[-1])


def score(p: Predictions) -> Scores:
    """All figures of one set of predictions."""
    k = p.proba.shape[1]
    matrix = confusion(p.y, p.predicted, k)
    precision, recall = rates(matrix)
    onset = (p.y >= p.congested_from)[p.candidate]
    truth = np.eye(k)[p.y]
    rows = np.zeros(len(p.y), bool) if p.before is None else p.before
    early = (p.y >= p.congested_from)[rows]
    lead = leads(p)
    seen = lead[lead > 0]
    said, came, number = _tenths(p, np.zeros(len(p.y), np.int64), 1)
    return Scores(
        n=len(p.y),
        precision=precision,
        recall=recall,
        f1=macro_f1.f1_of(matrix),
        support=matrix.sum(axis=1),
        macro_f1=macro_f1.macro_f1(matrix),
        accuracy=float(np.mean(p.y == p.predicted)),
        onset_ap=average_precision(onset, p.score[p.candidate]),
        onset_rate=float(onset.mean()) if len(onset) else float("nan"),
        onsets=int(onset.sum()),
        candidates=len(onset),
        brier=float(np.mean(np.sum((p.proba - truth) ** 2, axis=1))),
        confusion=matrix,
        before_ap=average_precision(early, p.score[rows]),
        before_onsets=int(early.sum()),
        before_candidates=len(early),
        calibration_error=float(np.abs(said - came).sum() / max(number.sum(), 1)),
        episodes=len(lead),
        foreseen=float(np.mean(lead > 0)) if len(lead) else float("nan"),
        lead_s=float(np.median(lead)) if len(lead) else float("nan"),
        lead_foreseen_s=float(np.median(seen)) if len(seen) else float("nan"),
    )


def leads(p: Predictions) -> np.ndarray:
    """Of each episode, seconds from the alarm to the drop, 0 for none; every model raises as many alarms as there are
    onsets before the first drop.
    """
    if p.episodes is None or p.before is None or not len(p.episodes.at):
        return np.zeros(0)
    rate = float((p.y >= p.congested_from)[p.before].mean()) if p.before.any() else 0.0
    return p.episodes.lead(alarms(p.score, p.before, rate))


def _tenths(p: Predictions, block: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of the predicted probability of congestion, of what came true, and items, float[n, 10] by block and tenth
    of the prediction.
    """
    said = np.clip(p.proba[:, p.congested_from :].sum(axis=1), 0, 1)
    at = np.minimum((said * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1) + block * RELIABILITY_BINS
    return tuple(
        np.bincount(at, w, n * RELIABILITY_BINS).reshape(n, -1)
        for w in (said, (p.y >= p.congested_from).astype(float), np.ones(len(at)))
    )


def precision_recall(p: Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision of onset at each threshold, thresholds falling."""
    return _curve((p.y >= p.congested_from)[p.candidate], p.score[p.candidate])


def class_precision_recall(p: Predictions, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Recall and precision of class k against the others at each threshold of its probability, thresholds falling, and
    its average precision (NaN where it never came true, or always).
    """
    positive, s = p.y == k, p.proba[:, k]
    return *_curve(positive, s), average_precision(positive, s)


def _curve(positive: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-s, kind="stable")
    positive, s = positive[order], s[order]
    last = np.flatnonzero(np.append(s[1:] != s[:-1], True))
    hits = np.cumsum(positive)[last]
    return hits / max(hits[-1], 1), hits / (last + 1)


def reliability(p: Predictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per tenth of the predicted probability of congestion: mean prediction, share that came true, items.

    Empty tenths are left out.
    """
    said = np.clip(p.proba[:, p.congested_from :].sum(axis=1), 0, 1)
    true = p.y >= p.congested_from
    at = np.minimum((said * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    n = np.bincount(at, minlength=RELIABILITY_BINS)
    some = n > 0
    return (
        np.bincount(at, said, RELIABILITY_BINS)[some] / n[some],
        np.bincount(at, true, RELIABILITY_BINS)[some] / n[some],
        n[some],
    )


def bootstrap(every: dict[str, Predictions], rounds: int, seed: int = 0) -> dict[str, np.ndarray]:
    """FIGURES of each model, float[rounds, 8], on blocks of time drawn with replacement; the same draws for every
    model, so that differences between models are paired. All predictions must be of the same items. What nobody asks
    for (`before`, `episodes`) is NaN. The threshold of alarms is that of all items.
    """
    rng = np.random.default_rng(seed)
    first = next(iter(every.values()))
    names, block = np.unique(first.block, return_inverse=True)
    counts = np.stack(
        [np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names)) for _ in range(rounds)]
    ).astype(float)
    return {model: _drawn(p, names, block, counts) for model, p in every.items()}


def _drawn(p: Predictions, names: np.ndarray, block: np.ndarray, counts: np.ndarray) -> np.ndarray:
    k, found = p.proba.shape[1], np.full((len(counts), len(FIGURES)), np.nan)
    by_block = np.bincount(block * k * k + p.y * k + p.predicted, minlength=len(names) * k * k).reshape(len(names), -1)
    matrices = (counts @ by_block).reshape(-1, k, k)
    n = np.maximum(matrices.sum(axis=(1, 2)), 1)
    found[:, 0] = [macro_f1.macro_f1(m) for m in matrices]
    found[:, 1] = _drawn_ap(p, p.candidate, block, counts)
    if p.before is not None:
        found[:, 2] = _drawn_ap(p, p.before, block, counts)
    found[:, 3] = np.trace(matrices, axis1=1, axis2=2) / n
    errors = np.sum((p.proba - np.eye(k)[p.y]) ** 2, axis=1)
    found[:, 4] = counts @ np.bincount(block, errors, len(names)) / n
    said, came, _ = _tenths(p, block, len(names))
    found[:, 5] = np.abs(counts @ (said - came)).sum(axis=1) / n
    lead = leads(p)
    if len(lead):
        weight = counts[:, np.searchsorted(names, p.episodes.block)]
        found[:, 6] = weight @ (lead > 0) / np.maximum(weight.sum(axis=1), 1)
        order = np.argsort(lead, kind="stable")
        total = np.cumsum(weight[:, order], axis=1)
        found[:, 7] = lead[order][np.argmax(total * 2 >= total[:, -1:], axis=1)]
    return found


def _drawn_ap(p: Predictions, among: np.ndarray, block: np.ndarray, counts: np.ndarray) -> list[float]:
    rows = np.flatnonzero(among)
    rows = rows[np.argsort(-p.score[rows], kind="stable")]
    positive, s, b = (p.y >= p.congested_from)[rows], p.score[rows], block[rows]
    return [_average_precision(positive, s, c[b]) for c in counts]


def interval(values: np.ndarray) -> tuple[float, float]:
    """95 % interval; NaN when fewer than half of the rounds had a value."""
    some = values[np.isfinite(values)]
    return (
        (float("nan"), float("nan"))
        if len(some) * 2 < len(values) or not len(some)
        else tuple(np.quantile(some, (0.025, 0.975)).tolist())
    )
