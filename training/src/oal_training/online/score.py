"""How trees are judged: average precision of onset, and macro F1.

Counting instead of sorting, so that a score costs some 50 µs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oal_training import macro_f1 as of_table

CLASSES = 4
POOR = 2  # first of the congested classes
FINE = 10_000  # scores are integers 0…FINE


@dataclass(frozen=True)
class Score:
    """`onset_ap` is NaN when there is no onset among the items, or nothing but onsets; `macro_f1` when there is no
    item.
    """

    onset_ap: float
    macro_f1: float


NONE = Score(float("nan"), float("nan"))


def average_precision(score: np.ndarray, positive: np.ndarray) -> float:
    """Average precision (area under the stepwise PR curve; equal scores are one step) of integer scores 0…FINE.

    NaN when `positive` (bool) has only one value.
    """
    n_positive = int(np.count_nonzero(positive))
    if n_positive == 0 or n_positive == len(positive):
        return float("nan")
    everything = np.bincount(score, minlength=FINE + 1)[::-1]
    true = np.bincount(score[positive], minlength=FINE + 1)[::-1]
    steps = np.flatnonzero(true)
    hits = np.cumsum(true)[steps]
    return float(np.sum(true[steps] * hits / np.cumsum(everything)[steps]) / n_positive)


def macro_f1(predicted: np.ndarray, truth: np.ndarray) -> float:
    """`oal_training.macro_f1` of these items; NaN without any."""
    table = np.bincount(truth.astype(np.int64) * CLASSES + predicted, minlength=CLASSES * CLASSES)
    return of_table.macro_f1(table.reshape(CLASSES, CLASSES))


def onsets(class_now: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Which items are onsets: Good or Acceptable now, Poor or Bad next."""
    return (class_now < POOR) & (truth >= POOR)


def episodes(ts_us: np.ndarray, onset: np.ndarray, apart_us: int) -> int:
    """Separate episodes of onset: runs of onset items that are further than `apart_us` from the next."""
    times = ts_us[onset]
    return 0 if len(times) == 0 else 1 + int(np.count_nonzero(np.diff(times) > apart_us))


def score(predicted: np.ndarray, congested: np.ndarray, class_now: np.ndarray, truth: np.ndarray) -> Score:
    """Both figures.

    `congested`: integer score of Poor or Bad, 0…FINE. Onset is judged on items that are Good or Acceptable now.
    """
    calm = class_now < POOR
    return Score(average_precision(congested[calm], truth[calm] >= POOR), macro_f1(predicted, truth))


def beats(ours: Score, rivals: list[Score], margin_onset_ap: float, margin_macro_f1: float) -> bool:
    """Strictly better on both figures, by the margins; a figure that a rival has not (NaN) is no rival."""
    for rival in rivals:
        for mine, its, margin in (
            (ours.onset_ap, rival.onset_ap, margin_onset_ap),
            (ours.macro_f1, rival.macro_f1, margin_macro_f1),
        ):
            if not (mine > its and mine >= its + margin) and its == its:
                return False
    return ours.onset_ap == ours.onset_ap
