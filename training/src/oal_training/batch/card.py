"""The card of a version: what it is, what it learned from, how good it is beside rules that learn nothing, what it is
not, and how to be rid of it or make it again. One page of Markdown: artifact of the run, and its text on MLflow's page.
"""

from __future__ import annotations

from datetime import UTC, datetime

from oal_training.batch import data_sets, report
from oal_training.batch.validation import PERSISTENCE, Judged
from oal_training.lineage import Lineage
from oal_training.stored.items import Items

FILE = "model_card.md"
MAX_CHARACTERS = 5000  # of a description in MLflow's database


def text(
    name: str,
    model: str,
    nodes: int,
    lineage: Lineage,
    parts: list[Judged],
    fitted_on: Items,
    held_out: Items | None,
    hashes: dict[str, str],
) -> str:
    """The card. model: how `parts` name it; hashes: of the kept items, by role."""
    sections = [
        f"# {name}",
        f"A decision tree of {nodes} nodes over {len(fitted_on.names)} features (program {lineage.feature_hash}) that"
        f" says the class, {', '.join(fitted_on.classes)}, of the losses {fitted_on.horizon_us / 1e6:g} to"
        f" {fitted_on.embargo_us / 1e6:g} s ahead, on an access point.",
        "## Data",
        f"{lineage.query}, SHA-256 `{lineage.data_sha256[:16]}`.",
        _kept("Fitted on", fitted_on, hashes[data_sets.TRAINING]),
        (
            _kept("Held out", held_out, hashes[data_sets.EVALUATION])
            if held_out is not None
            else "Held out: nothing, there were too few; it cannot be compared, so it cannot be champion."
        ),
        "## Scores",
        "Beside persistence (the class stays) and a constant, which learn nothing. By time and by access point each"
        " part is answered by a model that did not see it; *held out* is this very tree. 95 % intervals.",
        _scores(parts, model),
        "## Limits",
        *_limits(parts, model, fitted_on),
        "## Back, and again",
        "To go back, set `champion` on the version before, or delete the alias; `oal-deploy ctl kill fleet` stops all"
        " control at once. To make it again from what was kept: `oal-train rebuild RUN_ID`, with the code of"
        f" `{lineage.git_revision[:12]}`.",
    ]
    whole = "\n\n".join(sections) + "\n"
    return whole if len(whole) <= MAX_CHARACTERS else whole[: MAX_CHARACTERS - 2] + "…\n"


def _kept(words: str, items: Items, digest: str) -> str:
    begin, end = (datetime.fromtimestamp(int(us) / 1e6, UTC) for us in (items.ts_us[0], items.ts_us[-1]))
    when = f"{begin:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"
    return f"{words}: {items.describe()}; {when}, kept as `{digest[:16]}`."


def _scores(parts: list[Judged], model: str) -> str:
    rows = []
    for part in parts:
        for name, s in part.scores.items():
            if name in (model, PERSISTENCE):
                spans = part.intervals[name]
                figures = [report.number(s.macro_f1), report.span(spans["macro_f1"]), report.number(s.onset_ap)]
                rows.append([f"{part.kind}: {name}", *figures, report.span(spans["onset_ap"]), report.number(s.brier)])
        rows.append([f"{part.kind}: constant", "", "", report.number(part.scores[PERSISTENCE].onset_rate), "", ""])
    return report.table(rows, ["", "macro F1", "95 %", "onset AP", "95 %", "Brier"])


def _limits(parts: list[Judged], model: str, fitted_on: Items) -> list[str]:
    seconds = (fitted_on.ts_us[-1] - fitted_on.ts_us[0]) / 1e6
    said = [
        f"- It knows {len(fitted_on.groups)} access point(s) and {seconds / 60:.0f} min of them; elsewhere the"
        " figures may differ.",
        "- Labels of time in which a policy clamped windows are what came of that, not what would have come.",
    ]
    if absent := [name for k, name in enumerate(fitted_on.classes) if not (fitted_on.y == k).any()]:
        said.append(f"- It never saw {', '.join(absent)}.")
    for part in parts:
        low, high = part.intervals[model].get("macro_f1_gain", (float("nan"),) * 2)
        if not low > 0:
            span = report.span((low, high))
            said.append(f"- {part.kind}: its gain of macro F1 over persistence is within chance ({span}).")
    return ["\n".join(said)]
