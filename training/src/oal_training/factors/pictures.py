"""Fig. 4 and Fig. 5 of our items."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt

from oal_training.factors import measures, paper
from oal_training.factors.measures import Loss
from oal_training.stored.items import Items

LOSS_COLOUR, OURS = "#c0392b", "#1b3a6b"


def _save(figure, path: Path) -> None:
    figure.savefig(path, dpi=100)
    plt.close(figure)


def loss_cdf(path: Path, loss: Loss) -> None:
    """Distribution function of the loss ratio with its percentiles, the paper's as crosses."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    share = np.arange(1, len(loss.ratios) + 1) / len(loss.ratios)
    axes.step(np.append(0, loss.ratios * 100), np.append(0, share), where="post", color=OURS, label="here")
    for p, (value, span) in loss.percentiles.items():
        axes.plot(value * 100, p / 100, "o", color=OURS)
        if np.isfinite(span[0]):
            label = "95 % of a percentile" if p == min(loss.percentiles) else None
            axes.hlines(p / 100, span[0] * 100, span[1] * 100, color=OURS, linewidth=5, alpha=0.25, label=label)
        axes.annotate(f"p{p}: {value:.1%}", (value * 100, p / 100), (6, -12), textcoords="offset points", fontsize=9)
    axes.plot(
        [v * 100 for v in paper.LOSS_PERCENTILES.values()],
        [p / 100 for p in paper.LOSS_PERCENTILES],
        "x",
        color=LOSS_COLOUR,
        markersize=9,
        markeredgewidth=2,
        label="paper: p50, p90, p99",
    )
    axes.set(
        xlabel="congestion loss ratio of a second, %",
        ylabel="share of seconds",
        ylim=(0, 1.02),
        xlim=(0, 100),
        title=f"Loss ratio: mean {loss.mean:.2%}, the paper's {paper.LOSS_MEAN:.2%}",
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    _save(figure, path)


def _unit(name: str, values: np.ndarray) -> tuple[np.ndarray, str]:
    """Values and their unit as people read them, by the ending of the column's name."""
    for ending, scale, unit in (
        ("_bytes_1s", 8e-6, "Mb/s"),
        ("_kbps", 1e-3, "Mb/s"),
        ("_bps", 1e-6, "Mb/s"),
        ("_bytes", 1e-3, "kB"),
        ("_ms", 0.1, "% of the second"),
        ("_permille_1s", 0.1, "%"),
        ("drops_1s", 1, "packets/s"),
        ("_pkts_1s", 1, "packets/s"),
        ("_1s", 1, "a second"),
        ("_dbm", 1, "dBm"),
    ):
        if name.endswith(ending):
            return values * scale, unit
    return values, ""


def distributions(path: Path, items: Items) -> None:
    """Nine panels: grey, how often a metric has a value (share of seconds); red, mean loss ratio there."""
    figure, grid = plt.subplots(3, 3, figsize=(12, 9.5), layout="constrained")
    columns = measures.varying(items)
    for axes, panel in zip(grid.flat, paper.FIG_5):
        name = paper.column(panel.columns, columns)
        axes.set_title(panel.title + (f"\n{name}" if name else ""), fontsize=10)
        if not name:
            said = "no such column,\nor it does not vary"
            axes.text(0.5, 0.5, said, ha="center", va="center", transform=axes.transAxes, color="grey")
            axes.set(xticks=[], yticks=[])
            continue
        values = items.x[:, items.names.index(name)]
        some = np.isfinite(values)
        shown, unit = _unit(name, values[some])
        top = float(np.quantile(shown, 0.995)) or float(shown.max())
        low = min(0.0, float(shown.min()))
        axes.hist(
            np.clip(shown, low, top), bins=40, range=(low, top), weights=np.full(len(shown), 100 / len(shown)),
            color="#9aa5b1",
        )  # fmt: skip
        middle, mean, _ = measures.curve(shown, items.loss_now[some])
        red = axes.twinx()
        red.plot(middle, mean * 100, color=LOSS_COLOUR, marker="o", markersize=3)
        red.set_ylim(0, None)
        axes.tick_params(axis="y", colors="#5b6670")
        red.tick_params(axis="y", colors=LOSS_COLOUR, labelsize=8)
        red.set_ylabel("loss, %", fontsize=8, color=LOSS_COLOUR)
        axes.tick_params(labelsize=8)
        axes.set_xlim(low, top)
        axes.set_xlabel(unit, fontsize=9)
    for row in grid:
        row[0].set_ylabel("seconds, %", fontsize=9)
    figure.suptitle("Distribution (grey, left) and mean congestion loss ratio in % (red, right)", fontsize=12)
    _save(figure, path)
