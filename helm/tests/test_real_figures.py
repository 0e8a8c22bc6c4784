"""Figures of the real node that README gives are those of a committed run."""
import json
import re

import pytest
from conftest import ROOT

RESULTS = ROOT / "helm" / "cluster" / "real" / "results"
README = (ROOT / "helm" / "README.md").read_text()


def columns(heading: str) -> dict[str, dict[str, float]]:
    """Column → (first cell → figure) of the table whose head begins so; a cell with – is left out."""
    ((head, body),) = re.findall(rf"^\| ({re.escape(heading)}.*)\|\n\|[-|:]+\|\n((?:\|.*\n)+)", README, re.M)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *body.splitlines())]
    return {name: {row[0]: float(row[at]) for row in cells[1:] if row[at] != "–"} for at, name in
            enumerate(cells[0]) if at}


@pytest.mark.parametrize(("column", "file"), [("from nothing, s", "nothing"), ("warm, s", "warm")])
def test_the_readme_says_what_a_run_measured(column, file):
    measured = {one["name"]: one["value"] for one in json.loads((RESULTS / f"{file}.json").read_text())}
    said = columns("of a whole run")[column]
    assert "all of it, from make's start" in said
    assert said == {name: measured[name] for name in said}


def test_the_readme_says_how_long_the_page_took():
    measured = {one["name"]: one["value"] for one in json.loads((RESULTS / "page.json").read_text())}
    assert columns("of `make -C helm real-page`") == {"s": measured}


def test_the_readme_says_what_the_drills_measured():
    measured = {one["name"]: one["value"] for one in json.loads((RESULTS / "drills.json").read_text())}
    said = columns("of the drills")["s"]
    assert len(said) == 4 and said == {name: measured[name] for name in said}
    text = (ROOT / "helm/cluster/real/drills/test_several.py").read_text()
    assert f"of the drills, {len(re.findall('^def test_', text, re.M))} tests" in README
    waiting = measured["runnable processes at the end, mean of 15 minutes"]
    assert f"some {waiting:.0f} processes waited" in README


def test_the_tests_of_a_whole_run_are_as_many_as_the_readme_says():
    import ast

    text = (ROOT / "helm/cluster/real/test_installed.py").read_text()
    (components,) = re.findall(r"^COMPONENTS = (\(.*?\))$", text, re.M | re.S)
    (said,) = re.findall(r"of a whole run, (\d+) tests", README)
    assert int(said) == len(re.findall(r"^def test_", text, re.M)) - 1 + len(ast.literal_eval(components))
