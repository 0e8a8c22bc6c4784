"""What `oal-train factors` found, as Markdown, JSON and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from oal_training.factors import association, measures, paper
from oal_training.factors.association import Association
from oal_training.factors.measures import Loss, Row
from oal_training.stored.items import Items

MARK = " *"


def number(value: float | None, places: int = 3) -> str:
    """A figure, or - where there is none."""
    return "-" if value is None or not np.isfinite(value) else f"{value:.{places}f}"


def with_span(value: float, span: tuple[float, float], places: int = 3) -> str:
    """A figure with its interval."""
    if not np.isfinite(value):
        return "-"
    return number(value, places) + (f" ({span[0]:.{places}f}…{span[1]:.{places}f})" if np.isfinite(span[0]) else "")


def _gain(a: Association) -> str:
    text = with_span(a.gain, a.gain_span)
    return text + (" ?" if np.isfinite(a.gain) and np.isfinite(a.chance) and a.gain <= a.chance else "")


def markdown(items: Items, found: list[Row], loss: Loss) -> str:
    """The whole report."""
    lines = [
        "# What goes with congestion loss",
        "",
        f"{items.describe()}. Loss now: congestion loss ratio of the second that ends now; ahead: of the second that"
        f" the label is about, which begins {items.horizon_us / 1e6:g} s later.",
        "",
        "## Loss ratio (Fig. 4)",
        "",
        "| | mean | " + " | ".join(f"p{p}" for p in loss.percentiles) + " |",
        "|---|" + "---:|" * (1 + len(loss.percentiles)),
        f"| here | {with_span(loss.mean, loss.mean_span, 4)} | "
        + " | ".join(with_span(v, s, 4) for v, s in loss.percentiles.values())
        + " |",
        f"| paper | {paper.LOSS_MEAN:.4f} | "
        + " | ".join(number(paper.LOSS_PERCENTILES.get(p), 4) for p in loss.percentiles)
        + " |",
        "",
        "## Metrics (Table 2)",
        "",
        "| metric | column | tau-b paper | tau-b now | tau-b ahead | per AP | gain paper | gain now, bits"
        " | gain ahead, bits |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found:
        column = "-" if row.column is None else f"`{row.column}`"
        lines.append(
            f"| {row.paper.name if row.paper else '-'} | {column}{MARK if row.column in paper.COUNTS_LOSSES else ''}"
            f" | {number(row.paper.tau if row.paper else None)} | {with_span(row.now.tau, row.now.tau_span)}"
            f" | {with_span(row.ahead.tau, row.ahead.tau_span)} | {number(row.within)}"
            f" | {number(row.paper.gain if row.paper else None)} | {_gain(row.now)} | {_gain(row.ahead)} |"
        )
    still = [f"`{name}`" for name in items.names if name not in measures.varying(items)]
    lines += ["", *legend(), *([f"- have one value only in these items: {', '.join(still)}"] if still else [])]
    return "\n".join(lines) + "\n"


def legend() -> list[str]:
    """What the figures are and are not."""
    return [
        "- tau-b: Kendall's, of all items. In brackets 95 %: bootstrap over blocks of"
        f" {measures.BLOCK_S:g} s of an access point, {association.ROUNDS} draws, the same for every metric, on"
        f" {association.TAU_BINS} equally full bins and moved by what those differ from all items",
        "- per AP: median over access points of tau-b now, what differs between them left out",
        f"- gain: information gain about the class of the loss (Good, Acceptable, Poor, Bad), metric in at most"
        f" {association.GAIN_BINS} equally full bins and one for missing; ?: no more than the 95th percentile of what"
        " the metric's own blocks gain when they are dealt to other blocks (chance)",
        "- *: counts losses itself; no finding about a cause",
        '- "-": we have no such column, it does not vary, or the paper has no such metric',
        "- the paper's gain has no binning or unit named; its last row contradicts itself (.8 and 0)",
    ]


def _clean(value):
    if isinstance(value, float):
        return round(value, 6) if np.isfinite(value) else None
    if isinstance(value, tuple | list):
        return [_clean(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _clean(v) for k, v in value.items()}
    return value


def figures(items: Items, found: list[Row], loss: Loss) -> dict:
    """The same as numbers; null where there is none."""
    return _clean(
        {
            "source": {k: items.source.get(k) for k in ("file", "query", "file_sha256", "rows", "aps", "feature_hash")},
            "horizon_us": items.horizon_us,
            "loss": {
                "mean": loss.mean,
                "mean_95": loss.mean_span,
                "percentiles": {p: {"value": v, "95": span} for p, (v, span) in loss.percentiles.items()},
                "paper": {"mean": paper.LOSS_MEAN, "percentiles": paper.LOSS_PERCENTILES},
            },
            "metrics": [
                {
                    "paper": vars(row.paper) if row.paper else None,
                    "column": row.column,
                    "now": vars(row.now),
                    "ahead": vars(row.ahead),
                    "tau_within_ap": row.within,
                }
                for row in found
            ],
        }
    )


def mlflow_figures(found: list[Row], loss: Loss) -> dict[str, float]:
    """Metrics of a run: tau.COLUMN, gain.COLUMN and their `_ahead`, loss.*; finite ones only."""
    out = {"loss.mean": loss.mean} | {f"loss.p{p}": v for p, (v, _) in loss.percentiles.items()}
    for row in found:
        if row.column:
            out |= {
                f"tau.{row.column}": row.now.tau,
                f"tau_ahead.{row.column}": row.ahead.tau,
                f"gain.{row.column}": row.now.gain,
                f"gain_ahead.{row.column}": row.ahead.gain,
            }
    return {k: float(v) for k, v in out.items() if np.isfinite(v)}


def write(folder: Path, items: Items, found: list[Row], loss: Loss) -> None:
    """factors.md, factors.json, loss.png, distributions.png into `folder`."""
    from oal_training.factors import pictures

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "factors.md").write_text(markdown(items, found, loss), encoding="utf-8")
    (folder / "factors.json").write_text(json.dumps(figures(items, found, loss), indent=1) + "\n", encoding="utf-8")
    pictures.loss_cdf(folder / "loss.png", loss)
    pictures.distributions(folder / "distributions.png", items)
