"""What bounds a model on sites that it never saw: two experiments on the corpus's part `validation`.

*Looking ahead* gives a model the features of some tenths of a second later, which no access point has in time. Where
that helps much, what tells of an onset is not there yet when it is asked. *Fewer runs* leaves parts of the training
runs out. Where the last doubling still helps, more runs would.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oal_training.batch import report, scores, split, validation
from oal_training.batch.models import Model, ModelSpec
from oal_training.errors import TrainingError
from oal_training.stored.items import Items

LATER = (0, 1, 2, 3, 5, 10)  # decision intervals
SHARES = (0.125, 0.25, 0.5, 1.0)  # of the runs learned from
BLOCK_S, ROUNDS = 30.0, 300


def later(items: Items, steps: int, interval_us: int) -> tuple[Items, np.ndarray]:
    """The items with the features that their access point had `steps` decision intervals later, and bool[m]: for which
    there are any. Labels, classes now and instants stay.
    """
    x = np.full_like(items.x, np.nan)
    found = np.zeros(len(items), bool)
    for name in items.groups:
        rows = np.flatnonzero(items.group == name)
        times = items.ts_us[rows]
        at = np.searchsorted(times, times + steps * interval_us)
        there = at < len(rows)
        there[there] = times[at[there]] == times[there] + steps * interval_us
        x[rows[there]], found[rows[there]] = items.x[rows[at[there]]], True
    return replace(items, x=x), found


def some_runs(groups: list[str], share: float) -> list[str]:
    """Every so many of the groups in order of their names: a smaller share is a part of a greater one."""
    step = round(1 / share)
    return sorted(groups)[::step]


def judged(train: Items, test: Items, seen: np.ndarray, spec: ModelSpec) -> tuple[scores.Scores, tuple[float, float]]:
    """Scores on `test` of the model that reads the features `seen` there, and the 95 % interval of its onset average
    precision.
    """
    model = Model(spec, len(train.classes)).fit(train)
    proba = model.proba(seen)
    found = validation.predictions(test, model.predict(seen, proba), proba, BLOCK_S)
    drawn = scores.bootstrap({"model": found}, ROUNDS)["model"]
    return scores.score(found), scores.interval(drawn[:, scores.FIGURES.index("onset_ap")])


def run(items: Items, spec: ModelSpec, log=print) -> dict:
    """{"look_ahead": [row, …], "runs": [row, …]}; a row has what was changed, onset_ap, interval_95, before_ap and
    accuracy. TrainingError when the items are not of the corpus.
    """
    if not all(split.part_of(name) for name in items.groups):
        raise TrainingError("these items are not of the corpus: give the folder that `lab/corpus/run --where` says")
    fold = split.by_part(items, "validation")
    interval_us = int(np.median(np.diff(items.ts_us[items.group == items.groups[0]])))
    known = np.logical_and.reduce([later(items, steps, interval_us)[1] for steps in LATER])
    result = {"look_ahead": [], "runs": []}

    def row(kind: str, what: dict, train: Items, test: Items, seen: np.ndarray) -> None:
        found, (low, high) = judged(train, test, seen, spec)
        figures = {"onset_ap": found.onset_ap, "interval_95": [low, high], "before_ap": found.before_ap}
        result[kind].append(what | {k: np.round(v, 4).tolist() for k, v in figures.items()}
                            | {"accuracy": round(found.accuracy, 4)})
        log(f"limits: {kind} {what}: onset AP {found.onset_ap:.3f}")

    for steps in LATER:
        moved, _ = later(items, steps, interval_us)
        learned, asked = (rows[known[rows]] for rows in (fold.train, fold.test))
        row("look_ahead", {"later_s": steps * interval_us / 1e6}, moved[learned], items[asked], moved.x[asked])
    train, test = items[fold.train], items[fold.test]
    for share in SHARES:
        kept = some_runs(train.groups, share)
        row("runs", {"ap_runs": len(kept)}, train[np.isin(train.group, kept)], test, test.x)
    return result


def text(result: dict, spec: ModelSpec) -> str:
    """The result as Markdown."""
    titles = {
        "look_ahead": ("features of so many seconds later", "later_s"),
        "runs": ("AP-runs learned from", "ap_runs"),
    }
    lines = [f"# What bounds a model: {spec.kind}, learned on the corpus's part train, judged on validation", ""]
    for kind, (title, key) in titles.items():
        rows = []
        for r in result[kind]:
            low, high = r["interval_95"]
            rows.append([f"{r[key]:g}", f"{r['onset_ap']:.3f}", f"{low:.3f}…{high:.3f}", f"{r['before_ap']:.3f}",
                         f"{r['accuracy']:.3f}"])
        lines += [report.table(rows, [title, "onset AP", "95 %", "before the drop", "right"]), ""]
    return "\n".join(lines).rstrip()
