"""What the project's README says of learning in control is what the committed results say, and those are what the
committed cells give.
"""
import pathlib
import re
import sys

from evaluate import __main__ as command

ROOT = pathlib.Path(__file__).resolve().parents[3]
KEPT = ROOT / "lab/evaluate/results/ablation"


def section(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table below a heading, its two head rows left out; marks of emphasis taken off."""
    below = text.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    rows = [[cell.strip().replace("*", "").replace("−", "-") for cell in line.strip("|").split("|")]
            for line in below[below.index("|"):].split("\n\n")[0].splitlines()]
    return rows[2:]


def columns(row: list[str]) -> list[str]:
    """Throughput, mean, p95 delay, jitter, congestion loss and a new flow's first drops, of a row of `beside_paper`."""
    return [row[i] for i in (1, 2, 3, 5, 6, 8)]


def test_readme_says_what_the_results_say():
    kept = (KEPT / "table.md").read_text()
    beside = {row[0]: columns(row) for row in section(kept, "Beside the paper")}
    added = next(row for row in section(kept, "What each part adds")
                 if row[:2] == ["mean", "cubic-fq+oal against cubic-fq+queue"])
    wanted = [beside["cubic-fq+queue"], beside["cubic-fq+oal"], [*added[2:7], added[8]], beside["cubic-fq+oracle"]]
    said = [row[1:] for row in section((ROOT / "README.md").read_text(), "What learning adds")]
    assert said[:4] == wanted


def test_readme_says_whom_it_costs():
    rows = {row[0]: row for row in section((KEPT / "table.md").read_text(), "Whom it costs")}
    page = " ".join((ROOT / "README.md").read_text().split())
    found = re.search(r"(\d+) of (\d+) stations of scenarios lose more than 10 % of their goodput \(([\d.]+) would by"
                      " chance", page)
    assert list(found.groups()) == [rows["cubic-fq+queue"][i] for i in (2, 1, 3)]


def test_the_committed_table_is_that_of_the_committed_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "--from", str(KEPT), "--report", str(tmp_path)])
    assert command.main() in (0, None)
    tables = [(folder / "table.md").read_text().split("\n## ", 1)[1] for folder in (KEPT, tmp_path)]
    assert tables[0] == tables[1]
