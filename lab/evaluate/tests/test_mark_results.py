"""What the pages of the policy mark say of its aims is what the committed results say, and those are what the committed
cells give.
"""
import pathlib

import pytest
from evaluate import aims, results, table, verdict
from evaluate.methods import method

ROOT = pathlib.Path(__file__).resolve().parents[3]
KEPT = ROOT / "lab/evaluate/results/mark"


@pytest.fixture(scope="module")
def kept():
    """Results, aims, and in how many seeds these are asked for."""
    return results.Results.read(KEPT), *aims.load("mark")[:2]


def words(path: str) -> str:
    return " ".join((ROOT / path).read_text().split())


def test_the_table_is_what_the_cells_give(kept):
    r, wanted, _ = kept
    said = (KEPT / "table.md").read_text()
    for of in (aims.rows, aims.harm):
        assert table.markdown(of(r, wanted)) in said


def test_every_aim_has_its_seeds_its_verdict_and_its_line_in_the_policys_page(kept):
    r, wanted, seeds = kept
    page = (ROOT / "policies/mark/README.md").read_text()
    for row in aims.rows(r, wanted)[1:]:
        of = dict(zip(aims.rows(r, wanted)[0], row))
        if of["verdict"].startswith("open"):
            assert f"| {of['aim']} | " in page and "open: " in page
            continue
        figures = " | ".join((f"{of['figure']} {of['limit']}", of["measured"], of["seeds"], of["verdict"]))
        assert f"| {figures} |" in page, of["aim"]


def test_the_page_says_whom_it_costs(kept):
    r, wanted, _ = kept
    page = words("policies/mark/README.md")
    head, *rows = aims.harm(r, wanted)
    for row in rows:
        of = dict(zip(head, row))
        assert f"| `{of['method']}` | `{of['against']}` | {of['harmed']} of {of['stations × scenarios']}" in page


def test_the_page_says_why(kept):
    r, wanted, _ = kept
    page, named = words("policies/mark/README.md"), {aim.name: aim for aim in wanted}
    wait, throughput = (aims.figure(one.found) for one in aims.judge(r, named["wait-half"]))
    assert f"from 0.6 of a turn on leave {wait} of p95 queueing, and {throughput} of the throughput" in page
    of = lambda which, figure: verdict.mean(r, "one", method(which), figure).value
    assert (f"It has {of('dctcp-fq-ce5', 'queueing_p95_ms'):.0f} ms for CUBIC's"
            f" {of('cubic-fq', 'queueing_p95_ms'):.0f} over FQ-CoDel, and"
            f" {of('dctcp-fq-ce5', 'throughput_mbps'):.1f} Mbit/s for its"
            f" {of('cubic-fq', 'throughput_mbps'):.1f}") in page


def test_operators_are_told_the_same(kept):
    """docs/marks.md: what CUBIC with ECN has under marks, and whether half of the wait was reached."""
    r, wanted, _ = kept
    named = {aim.name: aim for aim in wanted}
    page = words("docs/marks.md")
    for name in ("wait", "throughput"):
        found, = aims.judge(r, named[name])
        assert f"{100 * (found.found.value - 1):+.0f} %".replace("-", "−") in page, name
