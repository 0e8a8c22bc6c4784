"""The committed figures are those of the committed probes and files, the table is theirs, and the README's is the
table's.
"""
import pathlib
import re

import pytest
from responsiveness import catalogue, figures, flent, kept, report

HERE = pathlib.Path(__file__).resolve().parents[1]
RESULTS = HERE / "results"
FOUND = kept.read(RESULTS)


def test_every_cell_is_there():
    seeds = {cell.seed for cell in FOUND}
    assert len(seeds) >= 5
    assert len(FOUND) == len(seeds) * len(catalogue.NAMES) * 6


def test_rpm_is_what_the_probes_give():
    seen = kept.seen(RESULTS)
    assert len(seen) == sum(cell.test.startswith("rpm") for cell in FOUND)
    for cell, said in FOUND.items():
        if cell.test.startswith("rpm"):
            found = figures.of_rpm(seen[cell.test, cell.method.name, cell.seed], cell.test.removeprefix("rpm_"))
            assert found == {name: pytest.approx(said[name]) if name != "confidence" else said[name] for name in found}


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.flent.gz")), ids=lambda file: file.name)
def test_flents_files_give_the_figures(file):
    test, method = file.name.removesuffix(".flent.gz").split(".")
    seed = min(cell.seed for cell in FOUND)
    said = next(f for c, f in FOUND.items() if (c.test, c.method.name, c.seed) == (test, method, seed))
    data = flent.read(file)
    found = figures.of_flent(data, catalogue.DELAY_S, data["metadata"]["LENGTH"], catalogue.down(test))
    assert found == {name: pytest.approx(said[name]) for name in found}


def test_the_table_is_that_of_the_cells():
    assert (RESULTS / "table.md").read_text() == report.table(FOUND)


def rows(text: str) -> list[str]:
    """Rows of tables, marks of emphasis and padding taken off."""
    return [re.sub(r"\s*\|\s*", "|", line.replace("*", "")).strip("|") for line in text.splitlines()
            if line.startswith("|")]


def test_the_readme_says_what_the_table_says():
    """Its rows name a test, then say the first cells of that test's row in the table."""
    table = {}
    for part in (RESULTS / "table.md").read_text().split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        table |= {(title, row.split("|")[0]): row.split("|") for row in rows(body)}
    heads: dict[str, list[str]] = {title: cells for (title, name), cells in table.items() if name == "change"}
    said, columns = 0, []
    for row in rows((HERE / "README.md").read_text()):
        title, *cells = row.split("|")
        if title == "test":
            columns = cells[1:]
        elif title in heads:
            for column, cell in zip(columns, cells[1:], strict=True):
                if cell != "–":
                    assert cell == table[title, cells[0]][heads[title].index(column)]
                    said += 1
    assert said >= 20
