"""What the pages of policies say of their aims is what the committed results say, and those are what the committed
cells give.
"""
import pathlib

import numpy as np
import pytest
from evaluate import aims, bbr_told, causes, results, sender_models, table, verdict
from evaluate.methods import method

ROOT = pathlib.Path(__file__).resolve().parents[3]
RESULTS = ROOT / "lab/evaluate/results"
JUDGED = ("loss-cause", "mark", "uplink-cap", "learned-ecn", "cc-select")
#: Where a policy's own folder has results of something else as well: lab/grid's.
FOLDERS = {"cc-select": "cc-select-wifi"}


def of_policy(policy: str) -> tuple[results.Results, list[aims.Aim], int]:
    """Committed results, aims, and in how many seeds these are asked for."""
    return results.Results.read(RESULTS / FOLDERS.get(policy, policy)), *aims.load(policy)[:2]


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
    said = (RESULTS / FOLDERS.get(policy, policy) / "table.md").read_text()
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


def test_the_first_pages_table_says_the_same_of_each_policy(marks, uploads):
    page = (ROOT / "README.md").read_text()
    row = {line.split("[")[1].split("]")[0]: line for line in page.splitlines()
           if line.startswith("| [") and "policies/" in line}
    r, wanted, _ = uploads
    of = {aim.name: aim for aim in wanted}
    assert (f"round trips {change(r, of['round-trip'])} behind a FIFO, for {change(r, of['throughput'])} of"
            ) in row["uplink-cap"]
    r, wanted, _ = marks
    of = {aim.name: aim for aim in wanted}
    assert f"wait {change(r, of['wait'])}, at {change(r, of['throughput'])} of" in row["mark"]
    r, wanted, _ = of_policy("loss-cause")
    of = {aim.name: aim for aim in wanted}
    told, plain = (verdict.mean(r, "edge", method(name), "long_mbps").value for name in ("lc_ap-fq", "cubic-fq"))
    right = sorted(100 * aims.judge(r, of[name])[0].found.value for name in ("fifo", "fq", "bbr"))
    assert (f"right for {right[0]:.0f} to {right[-1]:.0f} % of both; told, a sender at the edge of a cell has"
            f" {told:.2f} Mbit/s for CUBIC's {plain:.2f}") in row["loss-cause"]
    r, wanted, _ = of_policy("learned-ecn")
    wait, left = (100 * (one.found.value - 1) for one in aims.judge(
        r, next(aim for aim in wanted if aim.name == "threshold-wait")))
    assert f"p95 queueing {wait:.0f} % at {left:.0f} % of throughput".replace("-", "−") in row["learned-ecn"]
    for figure in ("+66.3 %", "+65.0 %"):
        assert figure in row["cc-select"] and figure in words("policies/cc-select/README.md")
    for figure in ("−21.0 %", "−50.3 %"):
        assert figure in row["rwnd-fair"] and page.count(figure) >= 2, "as in the table of the page"


def diagnosis() -> list[aims.Aim]:
    """Aims of loss-cause without those at senders."""
    return [aim for aim in aims.load("loss-cause")[0] if aim.method.looks_on]


@pytest.fixture(scope="module")
def losses():
    folder = ROOT / "lab/evaluate/results/loss-cause"
    r = results.Results.read(folder)
    return r, causes.rows(causes.lines_of(r)), words("policies/loss-cause/README.md")


def test_the_page_of_losses_has_a_line_of_each_aim_of_the_diagnosis(losses):
    head, *rows = aims.rows(losses[0], diagnosis())
    assert len(rows) >= 16 and {int(row[head.index("seeds")]) for row in rows} == {10}
    said = (ROOT / "lab/evaluate/results/loss-cause/table.md").read_text()
    assert table.markdown([head, *rows]) in said
    for row in rows:
        of = dict(zip(head, row))
        assert (f"| {of['aim']} | {of['asked']} | `{of['method']}` | {of['figure']} {of['limit']} | {of['measured']} |"
                f" {of['seeds']} | {of['verdict']} |") in losses[2]


def test_the_page_of_losses_says_who_else_would_have_known(losses):
    r, tables, page = losses
    assert (ROOT / "lab/evaluate/results/loss-cause/causes.md").read_text() == causes.text(r) + "\n"
    head, *rows = tables["Who knows it"]
    for row in rows:
        of = dict(zip(head, row))
        assert (f"| {of['who']} | `{of['senders, queue']}` | {of['balanced accuracy']} | {of['queue called queue']} |"
                f" {of['air called air']} |") in page, row
    of = {(row[0], row[1]): dict(zip(head, row)) for row in rows}
    rtt = of[causes.NAMES["rtt"], "cubic-fifo"]["balanced accuracy"].split()[0]
    assert f"is right for {rtt} of both" in page


def test_the_page_of_losses_says_where_it_is_wrong(losses):
    r, tables, page = losses
    head, *rows = tables["At which station"]
    here = {row[2]: dict(zip(head, row))["balanced accuracy"] for row in rows if row[:2] == ["mixed", "cubic-fq"]}
    assert f"half of its frames fail, short flows beside a long one) has {here['yard']}" in page
    others = [float(value.split()[0]) for name, value in here.items() if name != "yard" and value != "–"]
    assert f"The two others there that lose by both have {min(others):.3f} and more" in page and len(others) == 2
    told = [one["cause"] for one in causes.lines_of(r) if one["truth"] != "elsewhere" and one["cause"] != "none"]
    assert sum(cause in ("both", "unknown") for cause in told) < 0.01 * len(told)
    assert "they are below 1 % of rows" in page


def test_the_first_page_says_what_the_diagnosis_is_worth(losses):
    found, page = {aim.name: aim for aim in aims.load("loss-cause")[0]}, words("README.md")
    fifo, fq, sender, sender_fq = (aims.judge(losses[0], found[name])[0].found.value
                                   for name in ("fifo", "fq", "sender-fifo", "sender-fq"))
    assert (f"is right for {100 * fifo:.0f} % of both kinds behind a FIFO and for {100 * fq:.0f} % over FQ-CoDel, where"
            f" a sender's own K-means has {100 * sender:.0f} and {100 * sender_fq:.0f} %") in page


def test_the_page_of_losses_counts_what_was_not_lost_here(losses):
    _, tables, page = losses
    head, *rows = tables["Rows"]
    of = [dict(zip(head, row)) for row in rows]
    bbr, = (row for row in of if row["senders, queue"] == "bbr-fifo")
    sums = [sum(int(row[name]) for row in of if row is not bbr) for name in (head[4], "lost packets")]
    assert (f"{int(bbr[head[4]]):,} rows of BBR behind a FIFO, beside {int(bbr['lost packets']):,} lost packets, of"
            f" which {int(bbr['of them queue']):,} say queue") in page
    assert f"of CUBIC in all cells {sums[0]} rows, beside {sums[1]:,} lost packets" in page
    assert not any(row["scenario"].startswith("wire") for row in of), "neither lost packets nor rows"


def test_what_telling_a_sender_is_worth_is_what_was_measured():
    r, _, _ = of_policy("loss-cause")
    page = words("policies/loss-cause/README.md")
    of = lambda where, which, figure="long_mbps": verdict.mean(r, where, method(which), figure).value
    edge = {name: of("edge", f"{name}-fq") for name in ("cubic", "reno", "veno", "lc_ap", "lc_truth", "bbr")}
    assert (f"CUBIC has {edge['cubic']:.2f} Mbit/s, Reno {edge['reno']:.2f}, Veno {edge['veno']:.2f}; `lc_ap`"
            f" {edge['lc_ap']:.2f}, and the truth {edge['lc_truth']:.2f}. BBR, which hardly listens to losses, has"
            f" {edge['bbr']:.2f}, at twice the wait in p95 ({of('edge', 'bbr-fq', 'queueing_p95_ms'):.0f} ms for"
            f" {of('edge', 'lc_ap-fq', 'queueing_p95_ms'):.0f}), and leaves a plain CUBIC beside it"
            f" {of('beside-edge', 'bbr-fq', 'plain_cubic_mbps'):.2f} Mbit/s, where `lc_ap` leaves"
            f" {of('beside-edge', 'lc_ap-fq', 'plain_cubic_mbps'):.2f} and another CUBIC"
            f" {of('beside-edge', 'cubic_ecn-fq', 'plain_cubic_mbps'):.2f}.") in page
    rows = bbr_told.kept()
    assert {len(bbr_told.of(rows, c, r)) for c in bbr_told.CONTROLS for r in bbr_told.RETRIES} == {10}
    at_most = {c: bbr_told.most(rows, c) for c in bbr_told.CONTROLS}
    said = {c: f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]" for c, m in at_most.items()}
    had = {(c, r): np.mean(list(bbr_told.of(rows, c, r).values())) for c in bbr_told.CONTROLS for r in bbr_told.RETRIES}
    assert (f"it has {had['bbr', 15]:.2f} Mbit/s for {had['bbr', 3]:.2f}, {said['bbr']} times, where CUBIC has"
            f" {had['cubic', 15]:.2f} for {had['cubic', 3]:.2f}, {said['cubic']} times") in page
    assert f"{edge['bbr'] / edge['lc_truth']:.2f} times what CUBIC has that is told the truth" in page
    again = {name: 100 * of("edge", f"{name}-fq", "duplicate_ack_ratio") for name in ("lc_truth", "reno", "lc_ap")}
    assert (f"the truth has {again['lc_truth']:.1f} %, Reno {again['reno']:.1f} and `lc_ap` {again['lc_ap']:.1f}."
            ) in page
    for where in ("edge", "wire-loss-003", "wire-loss-03", "wire-loss-3"):
        assert of(where, "lc_paper-fifo") < of(where, "lc_rule-fifo"), "behind the rule on every path"
    assert all(of(where, "lc_paper-fifo") < of(where, "reno-fifo") for where in ("edge", "wire-loss-3"))
    assert all(path["kmeans"]["refused"] and path["models"]["kmeans"] is None
               for path in sender_models.kept().values()), "no path has clusters that pass"
