"""One table: every model, the online trees and persistence on the same items, beside what the paper reports."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from oal_training.batch import adaptive, corpus, online, report, scores, split, validation
from oal_training.batch import experiment as experiments
from oal_training.batch.models import ModelSpec
from oal_training.errors import TrainingError
from oal_training.lineage import Lineage
from oal_training.stored.items import Items, concatenated
from oal_training.tracking import Tracking, log_report

EXPERIMENT = "compare"  # of MLflow
ONLINE = "online trees"
#: kind → name in the table; the experiment of the same name says how it is set up
MODELS = (
    "decision_tree",
    "random_forest",
    "xgboost_multiclass",
    "xgboost_ordinal",
    "lightgbm",
    "svm",
    "knn",
    "mlp",
    "distilled",
    "corpus",
)
RIVER = "river"
#: of many runs, the models whose time does not grow with the square of the items
OF_MANY = ("corpus", "decision_tree", "random_forest", "xgboost_multiclass", "lightgbm", "mlp", "distilled", RIVER)
SPLITS = ("time", "run", "validation", "test")
#: Table 4 of Lin and Jiang, "OAL" (WCMC 2020): precision, recall, F1 of Good, Acceptable, Poor, Bad, on its own traces,
#: rows split at random.
PAPER = {
    "decision tree": (
        (0.680, 0.431, 0.485, 0.612),
        (0.677, 0.432, 0.485, 0.626),
        (0.679, 0.432, 0.485, 0.622),
    ),
    "random forest": (
        (0.680, 0.504, 0.627, 0.795),
        (0.829, 0.446, 0.489, 0.594),
        (0.747, 0.423, 0.549, 0.680),
    ),
}
FIGURES = ("precision", "recall", "F1")
PAPER_NOTE = (
    'The paper is Lin and Jiang, "OAL" (WCMC 2020), Tables 4 and 6: other traces, and rows split at random, by which'
    " neighbouring items of one label window stand on both sides; so its figures are no bar for those above, which are"
    " split by time. Its .423 for Acceptable of the forest does not follow from its own precision and recall, which"
    " give .473. It reports neither persistence nor onset."
)


def specs(names: list[str] | None) -> dict[str, ModelSpec]:
    """The models asked for, as their experiments say."""
    if names and (wrong := [n for n in names if n not in (*MODELS, RIVER, ONLINE, "online")]):
        raise TrainingError(f"--models: {', '.join(wrong)} is none of {', '.join((*MODELS, RIVER))}, online")
    wanted = [n for n in MODELS if not names or n in names]
    return {name: experiments.load(experiment_of(name)).model for name in wanted}


def experiment_of(name: str) -> Path:
    """The experiment of a model: the decision tree's is the policy's own."""
    return experiments.OWN if name == "decision_tree" else experiments.EXPERIMENTS / f"{name}.yaml"


def folds_of(items: Items, how: str, folds: int, test_share: float) -> tuple[list[split.Fold], str]:
    """The folds of a split that the command can name, and its name in words."""
    if how in ("validation", "test"):
        fold = split.by_part(items, how)
        learned, judged = (len(items[rows].groups) for rows in (fold.train, fold.test))
        said = f"corpus: learned on {learned} AP-runs of train" + (" and validation" if how == "test" else "")
        return [fold], f"{said}, judged on the {judged} of {how}; no site is in both"
    spec = split.SplitSpec("run", groups=folds) if how == "run" else split.SplitSpec("time", test_share, folds)
    return split.folds(items, spec), split.name(items, spec)


def run(
    paths: list[Path],
    other: Path | None,
    names: list[str] | None,
    folds: int,
    test_share: float,
    settings_file: Path | None,
    out: Path | None,
    log=print,
    how: str = "time",
    where: Tracking | None = None,
) -> str:
    """The table and what belongs to it, in Markdown.

    paths: files or folders of items. how: one of SPLITS. `other`: items of another network, for a second table of
    models that learned there alone. out: a folder for report and pictures. where: an MLflow that gets them as a run
    of the experiment `compare`.
    """
    columns, metadata, items = corpus.read(paths, log)
    log(items.describe())
    parts, said = folds_of(items, how, folds, test_share)
    if not names and how != "time":
        names = list(OF_MANY)
    chosen, others, deployed = specs(names), {}, None
    if not names or {"online", ONLINE} & set(names):
        deployed = online.replay(columns, items, settings_file)
        log(f"online: {deployed.shipped} trees shipped of {deployed.decisions} decisions")
        others[ONLINE] = (deployed.predicted, deployed.proba, deployed.covered)
    if not names or RIVER in names:
        others[adaptive.NAME] = (*adaptive.predict(items, parts), np.ones(len(items), bool))
        log(f"{adaptive.NAME}: judged")
    judged = [validation.validate(items, parts, said, chosen, log=log, others=others, cheap=True)]
    if deployed is not None:
        judged[0].notes.extend(_about_online(judged[0], deployed))
    title = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
    lines = text(title, items, judged[0], metadata)
    if other:
        judged.append(_elsewhere(items, judged[0].rows, corpus.read([other], log)[2], other.name, chosen, log))
        lines += f"\n\n## {judged[1].split}\n\n{report.summary(judged[1], items.classes)}"
    with tempfile.TemporaryDirectory(prefix="oal-compare-") as temporary:
        folder = out or Path(temporary)
        if out or where:
            report.write(folder, f"Models on {title}", items, judged, [])
        if where:
            params = {"split": judged[0].split, "models": ",".join(chosen), "items": len(judged[0].rows)}
            run_id = log_report(where, EXPERIMENT, "compare", Lineage.of(items.source), report.mlflow_figures(judged),
                                folder, params)  # fmt: skip
            lines += f"\n\nMLflow run {run_id}"
    return lines


def _elsewhere(
    items: Items, rows: np.ndarray, there: Items, name: str, chosen: dict[str, ModelSpec], log
) -> validation.Judged:
    """The same items judged by models that never saw this network."""
    here = items[rows]
    joined = concatenated([there, here])
    is_here = np.isin(joined.ts_us, here.ts_us) & np.isin(joined.group, here.groups)
    if is_here.sum() != len(here) or set(there.groups) & set(here.groups):
        raise TrainingError(f"{name} holds items of the same access points; it is not another network")
    fold = split.Fold(np.flatnonzero(~is_here), np.flatnonzero(is_here))
    found_rows, found, notes = validation.fold_by_fold(joined, [fold], chosen, log)
    found[validation.PERSISTENCE] = found.pop(validation.PERSISTENCE)
    return validation.assemble(
        joined, found_rows, f"Leave-AP-out: the same items, all models learned on {name} alone", found, notes, 30.0, 300
    )


def text(title: str, items: Items, judged: validation.Judged, metadata: dict) -> str:
    """The answer of `oal-train compare`."""
    made_of = f" of capture {metadata['capture']}" if metadata.get("capture") else ""
    base = judged.scores[validation.PERSISTENCE]
    lines = [
        f"# Congestion classes: {title}{made_of}",
        "",
        items.describe() + ".",
        f"Split {judged.split}.",
        f"Judged on {base.n} items, {base.onsets} of {base.candidates} without congestion now before an onset.",
        "",
        report.summary(judged, items.classes),
        "",
        "## Before the first drop, calibration and lead time",
        "",
        report.before(judged),
        "",
        *report.differences(judged, [name for name in judged.scores if name in MODELS]),
    ]
    lines += [f"- {note}" for note in judged.notes] + [
        "- `?`: the 95 % interval of the difference to persistence holds 0",
        "",
    ]
    lines += [
        "## The paper's Table 4 beside it: precision, recall and F1 a class",
        "",
        report.table(_beside(judged), ["model", "figure", *items.classes, "mean", "split"]),
        "",
        PAPER_NOTE,
        "",
    ]
    return "\n".join(lines).rstrip()


def window_table(log=print) -> str:
    """Table 6: what the window model's part says."""
    from oal_training.window import report as window

    log("window model: judging its regressors (oal-train window evaluate tells more)")
    try:
        lines = window.rows()
    except TrainingError as error:
        return f"## Window model beside the paper's Table 6\n\nnot done: {error}"
    return (
        "## Window model beside the paper's Table 6: sender's congestion window,"
        f" R²\n\n{window.markdown(lines)}\n\n{window.legend(('time',))}"
    )


def _about_online(judged: validation.Judged, deployed: online.Deployed) -> list[str]:
    covered = deployed.covered[judged.rows]
    notes = [
        f"online trees: {deployed.shipped} shipped of {deployed.decisions} decisions, second by second from all items"
        f" before; each judged only on items after it was on the AP; in force at {covered.mean():.1%} of the items"
        " judged"
        + ("" if covered.all() else ", persistence stands in at the others"),
        "the other models learn once a test part",
    ]
    if covered.any() and not covered.all():
        mine, base = (scores.score(judged.predictions[name][covered]) for name in (ONLINE, validation.PERSISTENCE))
        notes.append(
            f"where an online tree was in force: macro F1 {report.number(mine.macro_f1)}, persistence"
            f" {report.number(base.macro_f1)}; onset AP {report.number(mine.onset_ap)}, persistence"
            f" {report.number(base.onset_ap)}, constant score {report.number(base.onset_rate)}"
        )
    return notes


def _beside(judged: validation.Judged) -> list[list[str]]:
    """Rows of Table 4, the paper's above ours; then of each other model that was judged."""
    rows = []
    ours = {"decision tree": "decision_tree", "random forest": "random_forest"}
    for name, values in PAPER.items():
        rows += _figures(f"{name}, paper", values, "random rows")
        if mine := judged.scores.get(ours[name]):
            rows += _figures(f"{name}, here", (mine.precision, mine.recall, mine.f1), "by time", mine.macro_f1)
    for name, s in judged.scores.items():
        if name not in ours.values():
            rows += _figures(f"{name}, here", (s.precision, s.recall, s.f1), "by time", s.macro_f1)
    return rows


def _figures(name: str, values, split_by: str, macro_f1: float | None = None) -> list[list[str]]:
    """A line each of precision, recall and F1; `macro_f1` is F1's mean over the classes that occur."""
    means = [sum(v) / len(v) for v in values]
    if macro_f1 is not None:
        means[-1] = macro_f1
    return [
        [name, figure, *(report.number(float(v)) for v in each), report.number(float(mean)), split_by]
        for figure, each, mean in zip(FIGURES, values, means)
    ]
