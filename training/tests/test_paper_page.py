"""Every figure of docs/paper.md is that of the committed results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
RESULTS = ROOT / "training" / "results"


def result(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows(heading: str) -> dict[str, list[str]]:
    """First cell → the others, of the first table under a heading."""
    table = re.search(r"((?:^\|.*\n)+)", PAGE.split(f"## {heading}")[1], re.M)[1]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    return {line[0]: line[1:] for line in lines}


def spanned(value: float, span: list[float]) -> str:
    return f"{value:.3f} ({span[0]:.3f}…{span[1]:.3f})"


@pytest.mark.parametrize(
    "heading, name", [("What goes with loss", "factors"), ("The same on the corpus", "corpus-factors")]
)
def test_table_2_is_that_of_the_results(heading, name):
    metrics = {m["paper"]["name"]: m for m in result(name)["metrics"] if m["paper"]}
    found = rows(heading)
    assert len(found) >= 7
    for name, cells in found.items():
        m = metrics[name]
        now = m["now"]
        assert cells == [
            f"{m['paper']['tau']:.3f}", spanned(now["tau"], now["tau_span"]),
            f"{m['paper']['gain']:.3f}", spanned(now["gain"], now["gain_span"]),
        ], name  # fmt: skip


def test_what_the_text_says_of_loss_is_in_the_results():
    found = result("factors")
    ahead = {m["column"]: m["ahead"] for m in found["metrics"]}
    assert spanned(ahead["unacked_bytes"]["tau"], ahead["unacked_bytes"]["tau_span"]) in " ".join(PAGE.split())
    assert max((m["tau"] for name, m in ahead.items() if m["tau"]), default=0) == ahead["unacked_bytes"]["tau"]
    corpus = {m["column"]: m["ahead"]["tau"] for m in result("corpus-factors")["metrics"]}
    assert f"(`longest_wait_us`, tau-b {corpus['longest_wait_us']:.3f}," in PAGE
    assert f"as senders show it (tau-b {corpus['loss_permille_1s']:.3f})" in " ".join(PAGE.split())
    assert sorted((v for v in corpus.values() if v), reverse=True)[:2] == [corpus["longest_wait_us"],
                                                                           corpus["loss_permille_1s"]]  # fmt: skip
    loss = found["loss"]
    low, high = loss["mean_95"]
    said = f"{loss['mean'] * 100:.2f} % in the mean ({low * 100:.2f}…{high * 100:.2f} %)"
    assert said in " ".join(PAGE.split())
    p = [f"{loss['percentiles'][str(n)]['value'] * 100:.1f}" for n in (50, 90, 99)]
    assert f"50, 90, 99 of {p[0]}, {p[1]} and {p[2]} %" in " ".join(PAGE.split())


@pytest.mark.parametrize(
    "name, model",
    [
        ("decision tree", "decision_tree"),
        ("random forest", "random_forest"),
        ("SVM", "svm"),
        ("k-NN", "knn"),
        ("neural network", "mlp"),
        ("persistence", "persistence"),
    ],
)
def test_table_4_is_that_of_the_results(name, model):
    split = next(iter(result("classes")["splits"].values()))
    classes = split["models"][model]["classes"]
    assert rows("Classes")[f"{name}, here"] == [f"{c['f1']:.3f}" for c in classes.values()]


def test_table_6_is_that_of_the_results():
    short = lambda value: f"{value:.3f}".lstrip("0")
    found = rows("The sender's window")
    made = result("window")["table_6"]
    assert len(made) == 8 == len(found)
    for row in made:
        paper = ", ".join(short(v) for v in row["paper"])
        here = [
            ", ".join(short(row["r2"][f"{split}, {i}"]["value"]) for i in ("UNA only", "the paper's seven", "all"))
            for split in ("rows", "time")
        ]
        assert found[row["regressor"]] == [paper, *here], row["regressor"]


def test_table_5_is_that_of_the_results():
    minus = lambda value: f"{value:.2f}".replace("0.", ".").replace("-", "−")
    text = " ".join(PAGE.split())
    for row in result("window")["table_5"]:
        if row["paper"] and row["here"]["value"] is not None:
            here, paper = minus(row["here"]["value"]), minus(row["paper"])
            assert re.search(rf"{re.escape(here)} \((the paper.s )?{re.escape(paper)}\)", text), row["column"]


def test_the_seven_inputs_add_by_rows_and_not_by_time():
    """What the page says of the two splits."""
    for row in result("window")["table_6"]:
        by = {key: figure for key, figure in row["r2"].items()}
        if row["regressor"] != "Linear":
            assert 0.1 < by["rows, the paper's seven"]["value"] - by["rows, UNA only"]["value"] < 0.22
        alone, seven = by["time, UNA only"]["95"], by["time, the paper's seven"]["95"]
        assert alone[0] < seven[1] and seven[0] < alone[1]
        assert by["rows, all"]["value"] > by["time, all"]["value"]
