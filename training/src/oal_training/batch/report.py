"""What was found, as text, Markdown and JSON: the same for every source and model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from oal_training.batch.scores import FIGURES, LESS_IS_BETTER, Scores
from oal_training.batch.validation import HELD_OUT, PERSISTENCE, Judged
from oal_training.stored.items import Items


def number(value: float, places: int = 3) -> str:
    """A figure, or – where there is none."""
    return "–" if value is None or not np.isfinite(value) else f"{value:.{places}f}"


def span(pair: tuple[float, float]) -> str:
    """An interval, or – where there is none."""
    return "–" if not np.isfinite(pair[0]) else f"{pair[0]:.3f}…{pair[1]:.3f}"


def table(rows: list[list[str]], header: list[str]) -> str:
    """Aligned Markdown; the first column to the left, the others to the right."""
    widths = [max(len(str(r[i])) for r in [header, *rows]) for i in range(len(header))]
    line = (
        lambda cells: "| "
        + " | ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(cells, widths)))
        + " |"
    )
    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])


def summary(judged: Judged, classes: tuple[str, ...]) -> str:
    """One line a model."""
    base = judged.scores[PERSISTENCE]
    header = [
        "model",
        *(f"F1 {c}" for c in classes),
        "macro F1",
        "95 %",
        "onset AP",
        "95 %",
        "Brier",
        "against persistence (macro F1, onset AP)",
    ]
    rows = []
    for name, s in judged.scores.items():
        spans = judged.intervals[name]
        rows.append(
            [
                name,
                *(number(v) if s.support[i] or s.confusion[:, i].any() else "–" for i, v in enumerate(s.f1)),
                number(s.macro_f1),
                span(spans["macro_f1"]),
                number(s.onset_ap),
                span(spans["onset_ap"]),
                number(s.brier),
                "" if name == PERSISTENCE else verdict(s, base, spans),
            ]
        )
    rows.append(["constant score", *("" for _ in classes), "", "", number(base.onset_rate), "", "", ""])
    return table(rows, header)


def before(judged: Judged) -> str:
    """One line a model: right, onsets before the first drop, calibration, and how long before a drop it warns."""
    header = ["model", "right", "95 %", "onset AP before the drop", "95 %", "calibration error", "foreseen", "lead s"]
    header += ["lead s of those foreseen"]
    rows = []
    for name, s in judged.scores.items():
        spans = judged.intervals[name]
        cells = [name, number(s.accuracy), span(spans["accuracy"]), number(s.before_ap), span(spans["before_ap"])]
        cells += [number(s.calibration_error), number(s.foreseen), number(s.lead_s, 2), number(s.lead_foreseen_s, 2)]
        rows.append(cells)
    base = judged.scores[PERSISTENCE]
    share = base.before_onsets / base.before_candidates if base.before_candidates else float("nan")
    rows.append(["constant score", "", "", number(share), *[""] * 5])
    legend = (
        f"{base.before_onsets} onsets in {base.before_candidates} items in whose last second nothing was dropped;"
        f" {base.episodes} first drops. Every model raises as many alarms there as there are onsets. Foreseen: share of"
        " the drops with an alarm that lasts up to them; lead: median over all of them, 0 where not foreseen."
    )
    return f"{table(rows, header)}\n\n{legend}"


WORDS = ("macro F1", "onset AP", "before the drop", "right", "Brier", "calibration", "foreseen", "lead s")
SHORT = dict(zip(FIGURES, WORDS))


def differences(judged: Judged, models: list[str]) -> list[str]:
    """Tables of the differences of these models to each of the others, `?` where the interval holds 0."""
    lines = []
    for model in models:
        rows = []
        for rival, found in judged.against.get(model, {}).items():
            cells = []
            for figure in FIGURES:
                d, low, high = found[figure]
                sure = "" if low > 0 or high < 0 else " ?"
                cells.append(f"{d:+.3f} [{low:+.3f}, {high:+.3f}]{sure}" if np.isfinite(d) else "–")
            rows.append([rival, *cells])
        less = ", ".join(SHORT[figure] for figure in LESS_IS_BETTER)
        lines += [f"### {model}, minus each rival", "", table(rows, ["rival", *SHORT.values()]), ""]
        lines += [f"Less is better: {less}.", ""]
    return lines


def verdict(s: Scores, base: Scores, spans: dict) -> str:
    """Gains over persistence; `?` where the 95 % interval of the gain holds 0."""
    words = []
    for figure, mine, its in (
        ("macro_f1_gain", s.macro_f1, base.macro_f1),
        ("onset_ap_gain", s.onset_ap, base.onset_ap),
    ):
        low, high = spans[figure]
        words.append(
            "–" if not np.isfinite(mine - its) else f"{mine - its:+.3f}" + ("" if low > 0 or high < 0 else " ?")
        )
    return ", ".join(words)


def per_class(judged: Judged, model: str, classes: tuple[str, ...]) -> str:
    """Precision, recall, F1 and number of items of each class, then the confusion matrix."""
    s = judged.scores[model]
    figures = table(
        [
            [c, number(s.precision[i]), number(s.recall[i]), number(s.f1[i]), str(int(s.support[i]))]
            for i, c in enumerate(classes)
        ],
        [model, "precision", "recall", "F1", "items"],
    )
    matrix = table(
        [[c, *(str(int(v)) for v in s.confusion[i])] for i, c in enumerate(classes)],
        ["is, below; predicted, right", *classes],
    )
    return figures + "\n\n" + matrix


def text(title: str, items: Items, parts: list[Judged], skipped: list[str]) -> str:
    """The whole report in Markdown."""
    lines = [f"# {title}", "", items.describe() + ".", ""]
    for part in parts:
        base = part.scores[PERSISTENCE]
        lines += [
            f"## {part.split[0].upper() + part.split[1:]}",
            "",
            f"Judged on {base.n} items, {base.onsets} of {base.candidates} without congestion now before an onset.",
            "",
            summary(part, items.classes),
            "",
        ]
        lines += [f"- {note}" for note in part.notes] + [
            "- `?`: the 95 % interval of the difference to persistence holds 0",
            "",
        ]
        for model in part.scores:
            lines += [per_class(part, model, items.classes), ""]
    lines += [f"Not done: {reason}" for reason in skipped]
    return "\n".join(lines).rstrip() + "\n"


def figures(parts: list[Judged], classes: tuple[str, ...]) -> dict:
    """The same as numbers for JSON; NaN becomes null."""
    clean = lambda v: None if isinstance(v, float) and not np.isfinite(v) else v
    out = {}
    for part in parts:
        models = {}
        for name, s in part.scores.items():
            models[name] = {
                "items": s.n,
                "macro_f1": clean(s.macro_f1),
                "accuracy": clean(s.accuracy),
                "onset_ap": clean(s.onset_ap),
                "onset_rate": clean(s.onset_rate),
                "onsets": s.onsets,
                "candidates": s.candidates,
                "brier": clean(s.brier),
                "before_ap": clean(s.before_ap),
                "before_onsets": s.before_onsets,
                "before_candidates": s.before_candidates,
                "calibration_error": clean(s.calibration_error),
                "episodes": s.episodes,
                "foreseen": clean(s.foreseen),
                "lead_s": clean(s.lead_s),
                "lead_foreseen_s": clean(s.lead_foreseen_s),
                "confusion": s.confusion.astype(int).tolist(),
                "classes": {
                    c: {
                        "precision": float(s.precision[i]),
                        "recall": float(s.recall[i]),
                        "f1": float(s.f1[i]),
                        "items": int(s.support[i]),
                    }
                    for i, c in enumerate(classes)
                },
                "interval_95": {k: [clean(v) for v in pair] for k, pair in part.intervals[name].items()},
            }
            for rival, found in part.against.get(name, {}).items():
                models[name].setdefault("minus", {})[rival] = {
                    figure: [clean(round(v, 5)) for v in triple] for figure, triple in found.items()
                }
        out[part.split] = {"models": models, "notes": part.notes}
    return out


def mlflow_figures(parts: list[Judged]) -> dict[str, float]:
    """Metrics of a run: FIGURE.MODEL of the first split, FIGURE.MODEL.2 of the second and so on; finite ones only."""
    out = {}
    for place, part in enumerate(parts, 1):
        for model, s in part.scores.items():
            key = re.sub(r"[^A-Za-z0-9_. -]", "_", model) + (f".{place}" if place > 1 else "")
            out |= {f"{figure}.{key}": float(getattr(s, figure)) for figure in FIGURES}
    return {k: v for k, v in out.items() if np.isfinite(v)}


def write(folder: Path, title: str, items: Items, parts: list[Judged], skipped: list[str]) -> None:
    """report.md, report.json and the pictures into `folder`."""
    from oal_training.batch import pictures

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(text(title, items, parts, skipped), encoding="utf-8")
    (folder / "report.json").write_text(
        json.dumps(
            {"title": title, "source": items.source, "splits": figures(parts, items.classes), "not_done": skipped},
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )
    for part in parts:
        if not part.split.startswith(HELD_OUT):  # a table is enough
            pictures.draw(folder, part.kind, part, items.classes)
