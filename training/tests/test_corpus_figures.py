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
    "decision tree of the policy, 8 leaves": "decision_tree",
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


def gain(model: str, rival: str, figure: str, beyond_chance: bool) -> str:
    """The difference as the page writes it; whether its interval excludes 0 must be as the page says."""
    value, low, high = models()[model]["minus"][rival][figure]
    assert (low > 0 or high < 0) == beyond_chance, (model, rival, figure)
    return f"{'+' if value > 0 else '−'}{short(abs(value))}"


def test_what_the_text_says_of_the_tree_is_in_the_results():
    page = " ".join((TRAINING / "README.md").read_text().split())
    best = "best column, before the drop"
    cheap = ("persistence", "best column", best, "two thresholds")
    assert max(cheap, key=lambda rule: models()[rule]["onset_ap"]) == best
    assert f"better than persistence ({gain('corpus', 'persistence', 'onset_ap', True)}, beyond chance)" in page
    assert f"({gain('corpus', best, 'onset_ap', False)} over the best, within chance)" in page
    assert f"as often as persistence ({gain('corpus', 'persistence', 'accuracy', False)}, within chance)" in page
    assert f"macro F1 is worse ({gain('corpus', 'persistence', 'macro_f1', True)}, beyond chance)" in page
    teacher = "corpus: its teacher"
    assert (f"is right more often ({gain(teacher, 'persistence', 'accuracy', True)}), ranks onsets better than the best"
            f" column ({gain(teacher, best, 'onset_ap', True)}) and those before the drop too"
            f" ({gain(teacher, best, 'before_ap', True)}), all three beyond chance") in page
    times = models()["corpus"]["onset_ap"] / models()[best]["onset_ap"]
    assert f"{times:.2f} times and {short(models()['corpus']['onset_ap'])} are reached" in page


def test_the_table_of_one_access_point_is_that_of_the_results():
    page = (TRAINING / "README.md").read_text()
    splits = json.loads((TRAINING / "results/learning.json").read_text())["splits"]
    here, elsewhere = (part["models"] for part in splits.values())
    part = page.split("**On later minutes of the same access point.**")[1]
    said = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.split("\n\n")[1].splitlines()[2:-1]]
    names = NAMES | {"k-NN": "knn", "XGBoost, multi-class": "xgboost_multiclass", "XGBoost, ordinal": "xgboost_ordinal",
                     "distilled, 255 nodes": "distilled", "SVM": "svm", "MLP": "mlp",
                     "online trees, as deployed": "online trees"}  # fmt: skip
    for name, *cells in said:
        mine, other = here[names[name]], elsewhere.get(names[name]) if name != "persistence" else None
        figures = [short(mine[k]) + (f" ({short(other[k])})" if other else "")
                   for k in ("accuracy", "macro_f1", "onset_ap")]  # fmt: skip
        assert cells == [*figures, short(mine["brier"])], name
    text, minus = " ".join(part.split()), here["decision_tree"]["minus"]
    for rival, figure, beyond in (("persistence", "accuracy", True), ("persistence", "onset_ap", True),
                                  ("best column", "onset_ap", False)):  # fmt: skip
        value, low, high = minus[rival][figure]
        words = f"({'+' if value > 0 else '−'}{short(abs(value))}, {'beyond' if beyond else 'within'} chance)"
        assert words in text and (low > 0 or high < 0) == beyond


def test_the_table_of_the_window_model_is_that_of_the_results():
    kept = json.loads((TRAINING / "results/window-splits.json").read_text())
    found = {(row["regressor"], row["inputs"], row["split"]): row for row in kept}
    names = {"XGBoost (on the AP)": "xgboost", "random forest": "random_forest", "AdaBoost": "adaboost",
             "decision tree": "decision_tree", "linear": "linear", "support vectors": "svr",
             "nearest neighbours": "knn", "neural network": "mlp"}  # fmt: skip
    table = (TRAINING / "README.md").read_text().split("| regressor | all: time |")[1].split("\n\n")[0]
    said = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:-1]]
    assert [row[0] for row in said] == list(names)
    for label, *cells in said:
        keys = [(names[label], inputs, f"by {split}") for inputs in ("all", "UNA only")
                for split in ("time", "flow", "network")]  # fmt: skip
        for cell, row in zip(cells, map(found.get, keys), strict=True):
            value = float(cell.split(",")[0].strip("*").replace("−", "-"))
            assert value == round(row["R²"], 3 if abs(row["R²"]) < 1 else 1), (label, cell)
            assert cell.endswith(f" {100 * row['rel. error median']:.0f} %"), (label, cell)
    for split in ("time", "flow", "network"):
        best = max((row for row in kept if row["split"] == f"by {split}"), key=lambda row: row["R²"])
        assert best["regressor"] == "xgboost"


def test_what_bounds_a_model_is_in_the_results():
    page = " ".join((TRAINING / "README.md").read_text().split())
    found = json.loads((TRAINING / "results/limits.json").read_text())
    ap = {row["later_s"]: short(row["onset_ap"]) for row in found["look_ahead"]}
    assert (f"is {ap[0.0]} with the features of the instant, {ap[0.3]} with those 0.3 s later, {ap[0.5]} with 0.5 s,"
            f" {ap[1.0]} with 1 s") in page
    runs = {row["ap_runs"]: short(row["onset_ap"]) for row in found["runs"]}
    assert "with {}, {}, {} and {} AP-runs".format(*runs) in page
    assert "it is {}, {}, {}, {}: the last".format(*runs.values()) in page


def test_what_ways_to_say_a_class_give_is_in_the_results():
    page = " ".join((TRAINING / "README.md").read_text().split())
    here, fleet = json.loads((TRAINING / "results/choosing.json").read_text())
    assert (here["items"], fleet["items"]) == ("learning.items.parquet", "fleet.items.parquet")

    def said(model: str, rule: str, figure: str, beyond_chance: bool) -> str:
        value, low, high = next(r for r in fleet["rows"] if r["what"] == f"{model}, {rule}")[f"{figure}_gain"]
        assert (low > 0 or high < 0) == beyond_chance, (model, rule, figure)
        return f"{'+' if value > 0 else '−'}{short(abs(value))}"

    stays = "the class now, unless"
    for words in (
        f"as often as persistence ({said('decision_tree', 'the likeliest', 'right', False)}, within chance)",
        f"loses macro F1 ({said('decision_tree', 'the likeliest', 'macro_f1', True)}, beyond chance)",
        f"right more often ({said('decision_tree', stays, 'right', True)}, beyond chance)",
        f"loses none ({said('decision_tree', stays, 'macro_f1', False)}, within chance)",
        f"({said('random_forest', stays, 'right', True)} and {said('random_forest', stays, 'macro_f1', True)}, beyond",
    ):
        assert words in page, words
    assert all(row["macro_f1_gain"][1] < 0 for row in here["rows"] if row["macro_f1_gain"])


def test_figures_of_trees_are_those_of_the_results():
    page = (TRAINING.parent / "docs/figures.md").read_text().split("| on the last 314 s of `learning`")[1]
    said = {row.split("|")[1].split(":")[0].split(",")[0].strip(): [cell.strip() for cell in row.split("|")[2:5]]
            for row in page.split("\n\n")[0].splitlines()[2:]}
    here = next(iter(json.loads((TRAINING / "results/learning.json").read_text())["splits"].values()))["models"]
    names = {"online trees as deployed": "online trees", "decision tree": "decision_tree",
             "random forest": "random_forest", "XGBoost ordinal": "xgboost_ordinal", "persistence": "persistence",
             "best single column as it is": "best column"}  # fmt: skip
    assert list(said) == [*names, "constant score"]
    for label, name in names.items():
        assert said[label] == [short(here[name][k]) for k in ("accuracy", "macro_f1", "onset_ap")], label


def test_the_corpus_that_was_recorded_is_the_one_that_was_learned_from():
    lab = TRAINING.parent / "lab"
    page = (lab / "corpus/README.md").read_text()
    lines = [line for line in page.splitlines() if line.count("|") == 11]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    title, _, *counts = rows
    numbers = {row[0]: dict(zip(title[1:], row[1:])) for row in counts}
    assert list(numbers) == ["train", "test", "validation", "all"]
    columns = ("sites", "runs", "AP-runs", "items", "onset items", "onset episodes")
    total = {c: int(numbers["all"][c]) for c in columns}
    assert total == {c: sum(int(numbers[part][c]) for part in ("train", "test", "validation")) for c in columns}
    assert total["runs"] >= 40 and total["AP-runs"] >= 60 and total["onset episodes"] >= 500
    source = json.loads((TRAINING / "results/corpus-models.json").read_text())["source"]
    assert (total["items"], total["AP-runs"]) == (source["rows"], source["aps"])
    assert f"of {total['runs']} runs, {total['AP-runs']} AP-runs**" in " ".join(page.split())
    for other in ("README.md", "../CHANGELOG.md"):
        text = " ".join((lab / other).read_text().split())
        assert f"Figures are of the {total['runs']} runs that were recorded" in text
    learned = " ".join((TRAINING / "README.md").read_text().split())
    ap_runs = {part: int(numbers[part]["AP-runs"]) for part in numbers}
    assert (f"learned on {ap_runs['train'] + ap_runs['validation']} AP-runs of 21 sites, judged once on"
            f" {ap_runs['test']} of 7 others, {int(numbers['test']['items']):,} items with"
            f" {int(numbers['test']['onset items']):,} before an onset") in learned
