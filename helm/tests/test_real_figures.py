"""Figures of the real node that README gives are those of a committed run."""
import json
import re

import pytest
from conftest import ROOT

RESULTS = ROOT / "helm" / "cluster" / "real" / "results"
README = (ROOT / "helm" / "README.md").read_text()


def rows(heading: str) -> dict[str, str]:
    """First cell → last cell of the table whose head begins so."""
    (table,) = re.findall(rf"^\| {re.escape(heading)}.*\n\|[-|]+\|\n((?:\|.*\n)+)", README, re.M)
    return {cells[0].strip(): cells[-1].strip() for cells in (line.strip("|\n").split("|") for line in
                                                            table.splitlines())}


@pytest.mark.parametrize(("heading", "file"), [("of a whole run", "warm")])
def test_the_readme_says_what_a_run_measured(heading, file):
    measured = {one["name"]: one["value"] for one in json.loads((RESULTS / f"{file}.json").read_text())}
    said = rows(heading)
    assert said
    assert {name: float(value) for name, value in said.items()} == {name: measured[name] for name in said}


def test_the_tests_of_a_whole_run_are_as_many_as_the_readme_says():
    import ast

    text = (ROOT / "helm/cluster/real/test_installed.py").read_text()
    (components,) = re.findall(r"^COMPONENTS = (\(.*?\))$", text, re.M | re.S)
    (said,) = re.findall(r"of a whole run, (\d+) tests", README)
    assert int(said) == len(re.findall(r"^def test_", text, re.M)) - 1 + len(ast.literal_eval(components))
