"""What the pages of policies say of their aims is what the committed results say, and those are what the committed
cells give.
"""
import pathlib

import pytest
from evaluate import aims, results, table, verdict
from evaluate.methods import method

ROOT = pathlib.Path(__file__).resolve().parents[3]
JUDGED = ("mark", "uplink-cap", "learned-ecn")


def of_policy(policy: str) -> tuple[results.Results, list[aims.Aim], int]:
    """Committed results, aims, and in how many seeds these are asked for."""
    return results.Results.read(ROOT / "lab/evaluate/results" / policy), *aims.load(policy)[:2]


@pytest.fixture(scope="module", params=JUDGED)
def kept(request):
    return request.param, *of_policy(request.param)


@pytest.fixture(scope="module")
def marks():
    return of_policy("mark")


@pytest.fixture(scope="module")
def uploads():
    return of_policy("uplink-cap")


def words(path: str) -> str:
    return " ".join((ROOT / path).read_text().split())


def test_the_table_is_what_the_cells_give(kept):
    policy, r, wanted, _ = kept
    said = (ROOT / "lab/evaluate/results" / policy / "table.md").read_text()
    for of in (aims.rows, aims.harm):
        assert table.markdown(of(r, wanted)) in said


def test_every_aim_has_its_seeds_its_verdict_and_its_line_in_the_policys_page(kept):
    policy, r, wanted, seeds = kept
    page = (ROOT / "policies" / policy / "README.md").read_text()
    for row in aims.rows(r, wanted)[1:]:
        of = dict(zip(aims.rows(r, wanted)[0], row))
        if of["verdict"].startswith("open"):
            assert f"| {of['aim']} | " in page and "open: " in page
            continue
        assert int(of["seeds"]) >= seeds or f"{of['seeds']} of {seeds} seeds" in " ".join(page.split()), of["aim"]
        figures = " | ".join((f"{of['figure']} {of['limit']}", of["measured"], of["seeds"], of["verdict"]))
        assert f"| {figures} |" in page, of["aim"]


def test_the_page_says_whom_it_costs(kept):
    policy, r, wanted, _ = kept
    page = words(f"policies/{policy}/README.md")
    head, *rows = aims.harm(r, wanted)
    for row in rows:
        of = dict(zip(head, row))
        assert f"| `{of['method']}` | `{of['against']}` | {of['harmed']} of {of['stations × scenarios']}" in page


def test_the_page_of_marks_says_why(marks):
    r, wanted, _ = marks
    page, named = words("policies/mark/README.md"), {aim.name: aim for aim in wanted}
    wait, throughput = (aims.figure(one.found) for one in aims.judge(r, named["wait-half"]))
    assert f"from 0.6 of a turn on leave {wait} of p95 queueing, and {throughput} of the throughput" in page
    of = lambda which, figure: verdict.mean(r, "one", method(which), figure).value
    assert (f"It has {of('dctcp-fq-ce5', 'queueing_p95_ms'):.0f} ms for CUBIC's"
            f" {of('cubic-fq', 'queueing_p95_ms'):.0f} over FQ-CoDel, and"
            f" {of('dctcp-fq-ce5', 'throughput_mbps'):.1f} Mbit/s for its"
            f" {of('cubic-fq', 'throughput_mbps'):.1f}. L4S senders under this policy have"
            f" {of('l4s-fq+mark', 'throughput_mbps'):.1f} Mbit/s") in page
    own, quic = (aims.judge(r, named[name]) for name in ("own", "quic"))
    assert f"p95 of the wait {100 * (1 - own[0].found.value):.0f} % shorter" in page
    assert (f"QUIC has {100 * (1 - quic[0].found.value):.0f} % less, at {100 * quic[1].found.value:.0f} % of its"
            " throughput") in page


def test_operators_are_told_the_same_of_marks(marks):
    """docs/marks.md: what CUBIC with ECN has under marks, and whether half of the wait was reached."""
    r, wanted, _ = marks
    named = {aim.name: aim for aim in wanted}
    page = words("docs/marks.md")
    for name in ("wait", "throughput"):
        found, = aims.judge(r, named[name])
        assert f"{100 * (found.found.value - 1):+.0f} %".replace("-", "−") in page, name


def shown(r: results.Results, scenario: str, which: str, figure: str) -> float:
    return verdict.mean(r, scenario, method(which), figure).value


def test_the_page_of_uploads_says_why(uploads):
    r, wanted, _ = uploads
    page, named = words("policies/uplink-cap/README.md"), {aim.name: aim for aim in wanted}
    rate, wait = (lambda scenario, which, figure=figure: shown(r, scenario, which, figure)
                  for figure in ("up_mbps", "up_rtt_p95_ms"))
    assert (f"one station has {rate('up1-256', 'cubic-fifo'):.1f} Mbit/s and seven have"
            f" {rate('up7-256', 'cubic-fifo'):.1f}") in page
    assert f"{0.6 * wait('up7-256', 'cubic-fifo'):.0f} ms, of which the path itself is 256" in page
    short = [aims.figure(one.found) for one in aims.judge(r, named["round-trip-short"])]
    assert "p95 comes to {} and the uploads to {}".format(*short) in page
    long, bbr = (aims.judge(r, named[name]) for name in ("fq-long", "bbr-long"))
    assert (f"they keep {100 * long[0].found.value:.0f} %, and round trips still shrink to"
            f" {long[1].found.value:.2f}".replace("0.", ".")) in page
    assert f"costs it {100 * (1 - bbr[0].found.value):.0f} % (*bbr-long*)" in page
    assert (f"`bbr-fifo` has {rate('up7-256', 'bbr-fifo'):.1f} Mbit/s of the {rate('up7-256', 'cubic-fifo'):.1f} that"
            " CUBIC has") in page


def test_operators_are_told_the_same_of_uploads(uploads):
    """docs/upload-caps.md: what seven stations and what is beside uploads get."""
    r, wanted, _ = uploads
    named, page = {aim.name: aim for aim in wanted}, words("docs/upload-caps.md")
    for name in ("round-trip", "throughput", "fq-round-trip", "fq", "pages", "fq-pages", "bbr"):
        found, = aims.judge(r, named[name])
        assert f"{100 * (found.found.value - 1):+.0f} %".replace("-", "−") in page, name
    for name in ("downloads", "fq-downloads"):
        found, = aims.judge(r, named[name])
        assert f"{found.found.value:.1f} times" in page, name


def change(r: results.Results, aim: aims.Aim) -> str:
    """As a page writes it."""
    return f"{100 * (aims.judge(r, aim)[0].found.value - 1):+.0f} %".replace("-", "−")


def test_the_first_page_says_what_each_of_the_two_is_worth(marks, uploads):
    page = words("README.md")
    r, wanted, _ = uploads
    of = {aim.name: aim for aim in wanted}
    times = aims.judge(r, of["downloads"])[0].found.value
    assert (f"round trips {change(r, of['round-trip'])} behind a FIFO and {change(r, of['fq-round-trip'])} over"
            f" FQ-CoDel, downloads beside five uploads {times:.1f} times as much, for"
            f" {change(r, of['throughput'])} of") in page
    r, wanted, _ = marks
    of = {aim.name: aim for aim in wanted}
    assert f"p95 of their wait {change(r, of['wait'])} at {change(r, of['throughput'])} of throughput" in page
