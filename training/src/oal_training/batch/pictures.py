"""Pictures of a report: precision and recall of onset and of each class, reliability, confusion matrices."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt

from oal_training.batch import scores
from oal_training.batch.rivals import COLUMN
from oal_training.batch.validation import PERSISTENCE, Judged

COLOURS = (
    "#4269d0",
    "#efb118",
    "#ff725c",
    "#6cc5b0",
    "#3ca951",
    "#ff8ab7",
    "#a463f2",
    "#97bbf5",
    "#9c6b4e",
    "#7f7f7f",
    "#1b3a6b",
)
LEAST_ITEMS = 10  # of a point of the reliability diagram


def _styles(models) -> dict[str, dict]:
    others = [m for m in models if m != PERSISTENCE]
    return {PERSISTENCE: {"color": "black", "linestyle": "--"}} | {
        m: {"color": COLOURS[i % len(COLOURS)]} for i, m in enumerate(others)
    }


def _save(figure, path: Path) -> Path:
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def precision_recall(path: Path, part: Judged) -> Path:
    """Precision over recall of onset, a line a model."""
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    base = part.scores[PERSISTENCE]
    for model, style in _styles(part.predictions).items():
        if part.scores[model].onsets:
            recall, precision = scores.precision_recall(part.predictions[model])
            axes.step(
                np.append(0, recall),
                np.append(precision[0], precision),
                where="pre",
                label=f"{model}  {part.scores[model].onset_ap:.3f}",
                **style,
            )
    axes.axhline(
        base.onset_rate, color="grey", linewidth=1, linestyle=":", label=f"constant score  {base.onset_rate:.3f}"
    )
    axes.set(
        xlabel="recall of onsets",
        ylabel="precision",
        xlim=(0, 1),
        ylim=(0, 1),
        title=f"Onset of congestion: {base.onsets} of {base.candidates} items, average precision",
    )
    axes.legend(loc="upper right", fontsize=8)
    return _save(figure, path)


def classes_precision_recall(path: Path, part: Judged, classes: tuple[str, ...]) -> Path:
    """Precision over recall of each class against the others, a panel a class, a line a model (the paper's Fig. 6).
    The best column says persistence's class, so it has no line of its own.
    """
    lines = -(-len(classes) // 2)
    figure, grid = plt.subplots(lines, 2, figsize=(11, 4.4 * lines), layout="constrained", squeeze=False)
    for k, (axes, name) in enumerate(zip(grid.flat, classes)):
        share = float(np.mean(next(iter(part.predictions.values())).y == k))
        for model, style in _styles(m for m in part.predictions if not m.startswith(COLUMN)).items():
            recall, precision, average = scores.class_precision_recall(part.predictions[model], k)
            if np.isfinite(average):
                axes.step(
                    np.append(0, recall),
                    np.append(precision[0], precision),
                    where="pre",
                    label=f"{average:.3f}  {model}",
                    linewidth=1.2,
                    **style,
                )
        axes.axhline(share, color="grey", linewidth=1, linestyle=":", label=f"{share:.3f}  constant score")
        axes.set(title=name, xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        corner = "lower left" if share > 0.4 else "upper right"  # away from the curves
        axes.legend(fontsize=7, loc=corner, title="average precision", title_fontsize=7)
    for axes in grid.flat[len(classes) :]:
        axes.axis("off")
    return _save(figure, path)


def reliability(path: Path, part: Judged, classes: tuple[str, ...]) -> Path:
    """Predicted probability of congestion (`classes`) against how often it came true; below, how many items said so."""
    figure, (axes, counts) = plt.subplots(
        2, 1, figsize=(6, 6.5), height_ratios=(4, 1), sharex=True, layout="constrained"
    )
    axes.plot((0, 1), (0, 1), color="grey", linewidth=1, linestyle=":")
    for model, style in _styles(part.predictions).items():
        said, true, n = scores.reliability(part.predictions[model])
        some = n >= LEAST_ITEMS
        axes.plot(said[some], true[some], marker="o", markersize=4, label=model, **style)
        counts.plot(said, n, marker=".", linewidth=1, **style)
    axes.set(
        ylabel="share that came true",
        title=f"Probability of {' or '.join(classes)} (points of at least {LEAST_ITEMS} items)",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    axes.legend(fontsize=8, loc="upper left")
    counts.set(xlabel="predicted probability", ylabel="items", yscale="log")
    return _save(figure, path)


def confusion(path: Path, part: Judged, classes: tuple[str, ...]) -> Path:
    """Matrices side by side; colour is the share of the true class."""
    models = list(part.scores)
    columns = min(3, len(models))
    lines = -(-len(models) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(3.6 * columns, 3.4 * lines), layout="constrained", squeeze=False
    )
    for axes, model in zip(grid.flat, models):
        matrix = part.scores[model].confusion
        share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
        axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
        for i in range(len(classes)):
            for j in range(len(classes)):
                axes.text(
                    j,
                    i,
                    f"{int(matrix[i, j])}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if share[i, j] > 0.6 else "black",
                )
        axes.set_xticks(range(len(classes)), classes, fontsize=7, rotation=30)
        axes.set_yticks(range(len(classes)), classes, fontsize=7)
        axes.set_title(model, fontsize=9)
    for axes in grid.flat[len(models) :]:
        axes.axis("off")
    figure.supxlabel("predicted", fontsize=9)
    figure.supylabel("came true", fontsize=9)
    return _save(figure, path)


def draw(folder: Path, prefix: str, part: Judged, classes: tuple[str, ...]) -> list[Path]:
    """All pictures of one way of splitting."""
    return [
        precision_recall(folder / f"{prefix}-onset.png", part),
        classes_precision_recall(folder / f"{prefix}-classes.png", part, classes),
        reliability(
            folder / f"{prefix}-reliability.png", part, classes[next(iter(part.predictions.values())).congested_from :]
        ),
        confusion(folder / f"{prefix}-confusion.png", part, classes),
    ]
