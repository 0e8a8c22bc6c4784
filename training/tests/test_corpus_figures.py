"""The table of training/README.md for sites that no model saw is that of the committed results."""

from __future__ import annotations

import json
from pathlib import Path

TRAINING = Path(__file__).resolve().parents[1]
NAMES = {
    "persistence": "persistence",
    "best column as it is": "best column",
    "best column, chosen before the drop": "best column, before the drop",
    "two thresholds": "two thresholds",
    "decision tree of the policy, 31 nodes": "decision_tree",
    "distilled, 127 nodes (`corpus.yaml`)": "corpus",
    "… its teacher, too large for an AP": "corpus: its teacher",
    "random forest": "random_forest",
    "XGBoost": "xgboost_multiclass",
    "LightGBM": "lightgbm",
    "River's adaptive forest": "adaptive forest (River)",
}


def models() -> dict:
    found = json.loads((TRAINING / "results/corpus-models.json").read_text())["splits"]
    assert len(found) == 1
    return next(iter(found.values()))["models"]


def short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def test_the_table_is_that_of_the_results():
    page = (TRAINING / "README.md").read_text()
    table = page.split("**On sites that it never saw.**")[1].split("\n\n")[1]
    said = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert [row[0] for row in said] == list(NAMES)
    for row in said:
        m = models()[NAMES[row[0]]]
        low, high = m["interval_95"]["onset_ap"]
        figures = [short(m[k]) for k in ("accuracy", "macro_f1")]
        figures += [f"{short(m['onset_ap'])} ({short(low)}…{short(high)})", short(m["before_ap"]), short(m["foreseen"])]
        assert row[1:] == [*figures, f"{m['lead_s']:.1f}"], row[0]


def test_what_the_text_says_of_the_tree_is_in_the_results():
    page = " ".join((TRAINING / "README.md").read_text().split())
    persistence, column = (models()["corpus"]["minus"][name] for name in ("persistence", "best column"))
    right, worse = persistence["accuracy"], persistence["macro_f1"]
    assert f"right more often than persistence (+{short(right[0])})" in page and right[1] > 0
    assert f"macro F1 is worse (−{short(-worse[0])}, beyond chance)" in page and worse[2] < 0
    onset, better = column["onset_ap"], models()["corpus: its teacher"]["minus"]["best column"]
    assert f"worse than `unacked_bytes` as it is (−{short(-onset[0])}, beyond chance)" in page and onset[2] < 0
    assert f"(+{short(better['onset_ap'][0])}, beyond chance)" in page and better["onset_ap"][1] > 0
    assert persistence["onset_ap"][1] > 0 > better["before_ap"][1]
    assert "best column: unacked_bytes" in (TRAINING / "results/corpus-models.md").read_text()


def test_what_bounds_a_model_is_in_the_results():
    page = " ".join((TRAINING / "README.md").read_text().split())
    found = json.loads((TRAINING / "results/limits.json").read_text())
    ap = {row["later_s"]: short(row["onset_ap"]) for row in found["look_ahead"]}
    assert (f"is {ap[0.0]} with the features of the instant, {ap[0.3]} with those 0.3 s later, {ap[0.5]} with 0.5 s,"
            f" {ap[1.0]} with 1 s") in page
    runs = {row["ap_runs"]: short(row["onset_ap"]) for row in found["runs"]}
    assert "with {}, {}, {} and {} AP-runs".format(*runs) in page
    assert "it is {}, {}, {}, {}: the last".format(*runs.values()) in page
