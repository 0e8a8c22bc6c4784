"""The comparison beside the paper's Table 6: eight regressors, unacknowledged bytes alone or all that the AP sees."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from oal_training.window import dataset, validation
from oal_training.window.regressors import ON_AP, REGRESSORS
from oal_training.window.validation import SPLITS, UNA, Score

SAMPLES = Path(__file__).resolve().parents[4] / "lab/captures/window.parquet"
JUDGED, TUNED_ON = "learning", "learning2"
PAPER_R2 = 0.537  # Lin & Jiang 2020, best of Table 6; a random split of a time series
INPUTS = {"all": None, "UNA only": UNA}


class Mean:
    """The mean of the training windows: what any regressor must beat."""

    def fit(self, _, y: np.ndarray) -> Mean:
        """Learn the mean of y, bytes."""
        self.value = float(y.mean())
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        """That mean for each row."""
        return np.full(len(x), self.value)


def scores(
    data: dataset.Dataset,
    other: dataset.Dataset | None,
    regressors: Iterable[str],
    splits: Iterable[str],
    log=lambda _: None,
):
    """(regressor, inputs, split, Score), the mean first."""
    for split in splits:
        yield "mean", "none", split, validation.validate(Mean, data, split, other)
        for name in regressors:
            for inputs, names in INPUTS.items():
                mine, theirs = (
                    (data, other)
                    if names is None
                    else (data.only(names), other.only(names) if other is not None else None)
                )
                log(f"{name}, {inputs}, split by {split}")
                yield name, inputs, split, validation.validate(REGRESSORS[name], mine, split, theirs)


def row(regressor: str, inputs: str, split: str, s: Score | None) -> dict:
    """One line of the table; a figure that nobody has is empty."""
    figures = (
        {
            "R²": s.r2,
            "rel. error median": s.relative_median,
            "rel. error p90": s.relative_p90,
            "MAE KB": s.mae_bytes / 1000,
        }
        if s
        else {}
    )
    return {
        "regressor": regressor,
        "inputs": inputs,
        "R²": "",
        "rel. error median": "",
        "rel. error p90": "",
        "MAE KB": "",
        **figures,
        "split": split,
    }


def paper() -> dict:
    """The line of the paper's best figure."""
    return row("paper's best", "all", "random rows", None) | {"R²": PAPER_R2}


def rows(
    path: Path = SAMPLES,
    regressors: Iterable[str] = tuple(REGRESSORS),
    splits: Iterable[str] = ("time",),
    log=lambda _: None,
) -> list[dict]:
    """Lines of the table, the paper's first. Judged on the capture `learning`; settings were chosen on `learning2`."""
    samples = dataset.read(path)
    data, other = samples.of(JUDGED), samples.of(TUNED_ON) if "network" in splits else None
    return [paper()] + [
        row(name, inputs, f"by {split}", s) for name, inputs, split, s in scores(data, other, regressors, splits, log)
    ]


def markdown(lines: list[dict]) -> str:
    """The table as text."""
    head = list(lines[0])
    cells = [head] + [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in line.values()] for line in lines]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |" for line in cells]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])


def legend(splits: Iterable[str]) -> str:
    """What the splits are, and what the paper's figure is not."""
    return "\n".join(
        [
            *(f"- {SPLITS[s]}" for s in splits),
            (
                "- the paper's R² is of a random split of rows: neighbouring samples of one flow stand on both sides;"
                " it is no bar for the others"
            ),
            (
                f"- settings were chosen on the capture {TUNED_ON}; {JUDGED} was judged once they stood. On an AP runs"
                f" {ON_AP}"
            ),
        ]
    )
