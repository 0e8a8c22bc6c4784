"""Learned marks (policies/learned-ecn): K-means, two clusters, on round trips of acknowledgements and times between
them, and the cheapest rivals. Rows are those of ecn_samples.py.

What is free is chosen on validation time: how many acknowledgements (H), the weight of round trips (β), where values
are clipped (k σ of training data), and a rival's threshold. Congested is the cluster of longer round trips."""
from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from oal_schema.centroids import Centroids, compiled
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from .ecn_samples import APART, AT, HALF, RTT

LATEST, BETAS, CLIPS = (1, 2, 3, 4), tuple(n / 10 for n in range(11)), (1, 3, 5)
POINTS, STARTS = 1000, 2  # of a fit: so many rows, evenly spread; so many beginnings
THRESHOLDS = 60
LEAST_WEIGHT = 1e-3  # instead of 0, so that every input has a scale
#: Seconds of a run: training, validation and test, half a second apart.
TIMES = {"train": (2.0, 8.0), "validation": (8.5, 11.0), "test": (11.5, 14.0)}
#: "exponential": scaled to 0…1, then expm1(3x), after the paper. "logarithmic": z-scores of logarithms, as a kernel has
#: them in integers (policies/loss-cause/law.h).
FORMS = ("exponential", "logarithmic")


def within(rows: np.ndarray, part: str) -> np.ndarray:
    first, last = TIMES[part]
    return rows[(rows[:, AT] >= first * 1e6) & (rows[:, AT] < last * 1e6)]


@dataclass(frozen=True, eq=False)
class Points:
    """x: round trip and time apart of each acknowledgement, then of the one before, and so on; half: the truth."""

    x: np.ndarray
    half: np.ndarray


def points(runs: list[np.ndarray], latest: int) -> Points:
    x = [np.stack([run[latest - 1 - back:len(run) - back or None, column] for back in range(latest)
                   for column in (RTT, APART)], axis=1) for run in runs if len(run) >= latest]
    return Points(np.concatenate(x).astype(float), np.concatenate([run[latest - 1:, HALF] for run in runs
                                                                   if len(run) >= latest]).astype(bool))


def macro_f1(truth: np.ndarray, said: np.ndarray) -> float:
    """Mean of both classes' F1; a class that neither is nor is said does not count."""
    f1 = []
    for which in (True, False):
        right = int(((truth == which) & (said == which)).sum())
        seen = int((truth == which).sum() + (said == which).sum())
        if seen:
            f1.append(2 * right / seen)
    return float(np.mean(f1))


@dataclass(frozen=True, eq=False)
class Marks:
    """A fit. low, span: of training data in the form's own unit, after which values are clipped at `most`; weight: of
    each input; free, full: the weighted centres.
    """

    form: str
    low: np.ndarray
    span: np.ndarray
    most: np.ndarray
    weight: np.ndarray
    free: np.ndarray
    full: np.ndarray

    def scaled(self, x: np.ndarray) -> np.ndarray:
        if self.form == "logarithmic":  # nothing is clipped: the kernel's form does not
            return (np.log1p(x) - self.low) / self.span * self.weight
        return np.expm1(3 * (np.clip(x, self.low, self.most) - self.low) / self.span) * self.weight

    def says(self, x: np.ndarray) -> np.ndarray:
        z = self.scaled(x)
        return ((z - self.free) ** 2).sum(axis=1) >= ((z - self.full) ** 2).sum(axis=1)

    def integers(self) -> Centroids:
        """For a kernel: of the logarithmic form alone."""
        return compiled(self.low, self.span / self.weight, self.free, self.full, True)


def fit(p: Points, form: str, beta: float, clip: float, seed: int) -> Marks:
    x = p.x[np.linspace(0, len(p.x) - 1, min(len(p.x), POINTS)).astype(int)]
    values = np.log1p(x) if form == "logarithmic" else x
    mean, deviation = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-6)
    low, most = np.maximum(values.min(axis=0), mean - clip * deviation), np.minimum(
        values.max(axis=0), mean + clip * deviation)
    weight = np.maximum(np.tile([beta, 1 - beta], x.shape[1] // 2), LEAST_WEIGHT)
    clipped = np.clip(values, low, most)
    if form == "logarithmic":
        low, span = mean, deviation
        z = (clipped - low) / span * weight
    else:
        span = np.maximum(most - low, 1e-6)
        z = np.expm1(3 * (clipped - low) / span) * weight
    made = KMeans(2, n_init=STARTS, random_state=seed).fit(z)
    full = int(np.argmax([x[made.labels_ == k, 0].mean() for k in (0, 1)]))
    return Marks(form, low, span, most, weight, made.cluster_centers_[1 - full], made.cluster_centers_[full])


def choose(train: list[np.ndarray], validation: list[np.ndarray], form: str, seed: int,
           latest: tuple[int, ...] = LATEST) -> tuple[Marks, dict]:
    """The fit that is best on validation time, and what was chosen."""
    best: tuple[float, Marks, dict] | None = None
    for h in latest:
        seen, judged = points(train, h), points(validation, h)
        for beta, clip in itertools.product(BETAS, CLIPS):
            made = fit(seen, form, beta, clip, seed)
            score = macro_f1(judged.half, made.says(judged.x))
            if best is None or score > best[0]:
                best = score, made, {"latest": h, "beta": beta, "clip": clip, "validation": round(score, 4)}
    return best[1], best[2]


def threshold(train: list[np.ndarray], validation: list[np.ndarray]) -> float:
    """The round trip, µs, from which on a queue counts as half full: the best one on validation time."""
    seen, judged = points(train, 1), points(validation, 1)
    steps = np.unique(np.quantile(seen.x[:, 0], np.linspace(0, 1, THRESHOLDS)))
    return float(steps[int(np.argmax([macro_f1(judged.half, judged.x[:, 0] >= step) for step in steps]))])


def linear(train: list[np.ndarray], validation: list[np.ndarray]) -> tuple[Marks, dict]:
    """Not clusters but what the access point's truth teaches: logistic regression on the same inputs. Its border is
    that of two centres, so that a kernel has it in the same form.
    """
    best: tuple[float, Marks, dict] | None = None
    for h, balanced in itertools.product(LATEST[:2], (None, "balanced")):
        seen, judged_on = points(train, h), points(validation, h)
        values = np.log1p(seen.x)
        low, span = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-6)
        if seen.half.all() or not seen.half.any():
            continue
        made = LogisticRegression(class_weight=balanced).fit((values - low) / span, seen.half)
        w, size = made.coef_[0], float(np.linalg.norm(made.coef_[0]))
        border = -made.intercept_[0] * w / size ** 2
        marks = Marks("logarithmic", low, span, low, np.ones(len(w)), border - w / size, border + w / size)
        score = macro_f1(judged_on.half, marks.says(judged_on.x))
        if best is None or score > best[0]:
            best = score, marks, {"latest": h, "balanced": balanced is not None, "validation": round(score, 4)}
    return best[1], best[2]


def fitted(train: list[np.ndarray], validation: list[np.ndarray], seed: int) -> dict[str, tuple[Marks, dict]]:
    """Who marks by more than a threshold, by name."""
    return {form: choose(train, validation, form, seed) for form in FORMS} | {"linear": linear(train, validation)}


def judged(train: list[np.ndarray], validation: list[np.ndarray], tests: dict[str, list[np.ndarray]],
           seed: int) -> list[dict]:
    """A row a test: macro F1 of each who marks, the share of rows that are half full, and those that are called so."""
    at_us, usual = threshold(train, validation), points(train, 1).half.mean() >= 0.5
    made, out = fitted(train, validation, seed), []
    for name, runs in tests.items():
        alone = points(runs, 1)
        row = {"test": name, "rows": len(alone.half), "half": float(alone.half.mean()), "rtt_us": at_us,
               "rtt": macro_f1(alone.half, alone.x[:, 0] >= at_us),
               "always": macro_f1(alone.half, np.ones(len(alone.half), bool)),
               "majority": macro_f1(alone.half, np.full(len(alone.half), usual))}
        for who, (marks, chosen) in made.items():
            p = points(runs, chosen["latest"])
            said = marks.says(p.x)
            row |= {who: macro_f1(p.half, said), f"{who}_marks": float(said.mean())} | {
                f"{who}_{key}": value for key, value in chosen.items()}
        out.append(row)
    return out
