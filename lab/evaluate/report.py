"""The page that a person reads, and everything beside it: tables, pictures, Parquet."""
import base64
import datetime
import html
import pathlib
import re

from . import paper, plots, spread, table, verdict
from .methods import NO_MODEL, QUEUES, Method, method
from .results import Results

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; font-size: 13px; margin: 1rem 0; display: block; overflow-x: auto }
td, th { padding: .2rem .55rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
td:first-child, th:first-child { text-align: left }
th { border-bottom: 2px solid #888 }
strong { color: #b00 }
img { max-width: 100% }
.note { color: #555 }
li { margin: .2rem 0 }
"""
CAPTIONS = {
    "tradeoff.png": "Throughput over p95 delay. To the upper left is better; a line leads from each baseline to OAL.",
    "changes.png": "What OAL changes against its own baseline.",
    "pages.png": "How long short transfers and bursts take beside long flows."
}
BESIDE_PAPER = "Mean over the scenarios of the change against the own baseline, with its 95 % interval."
OWN_TERMS = (
    "In the paper's own terms: CUBIC with OAL against BBR without, figures of an access point (throughput of its long"
    " flows together, means of delay and jitter), mean over the three. The paper: one room, 2.4 GHz, ten iterations of"
    " 600 s, queues not named; an iteration here is a seed, 12 s of each scenario. PCC Vivace is not played: no source"
    " of it is packaged."
)
ABLATION = ("Each against the same access points without any model; bold: the interval excludes 0. Nothing in a row is"
            " corrected for how many there are: one in twenty is chance.")
STATIONS = ("A station of a scenario is harmed when it loses more than 10 % of its goodput on average; by chance"
            " alone: so many would, by the spread of their seeds, if nothing were done to them; beyond chance: its"
            " whole interval is a loss, too; surely: its whole interval is a loss of more than 10 %.")
FAIRNESS = ("Change of Jain's index of throughput, mean delay and jitter over flows, stations and access points:"
            " means over the scenarios, against the own baseline.")
INTERVALS = (
    "delay, RTT, jitter and loss of a cell are means over its long flows (a user is a user); jitter is RFC 3550's,"
    " which is what the paper's is compared with; ± and [ ] are 95 % intervals of Student's t over seeds, changes"
    " paired by seed"
)
GAINS = "95 % intervals in brackets. Harm: more than 2 % of throughput lost or 5 % of p95 delay gained."


def bold(text: str) -> str:
    """HTML of a text in which **words** stand out."""
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text))


def as_html(markdown: str) -> str:
    """A Markdown table as HTML."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.strip().splitlines()]
    line = lambda row, tag: "<tr>" + "".join(f"<{tag}>{bold(cell)}</{tag}>" for cell in row) + "</tr>"
    return "<table>" + line(rows[0], "th") + "".join(line(row, "td") for row in rows[2:]) + "</table>"


def sentences(r: Results, name: str) -> list[str]:
    """Per control and queue what OAL did in a scenario, in words."""
    found = []
    for which in [m for m in r.methods if m.act == "oal"]:
        c = {
            f: verdict.change(r, name, which, which.baseline, f)
            for f in ("throughput_mbps", "delay_mean_ms", "delay_p95_ms")
        }
        if not all(c.values()):
            continue
        share = verdict.share_of_oracle(r, name, which)
        broken = verdict.harms(r, name, which)
        text = (
            f"{which.baseline.name}: throughput {table.percent(c['throughput_mbps'].value)}, mean delay"
            f" {table.percent(c['delay_mean_ms'].value)}, p95 delay {table.percent(c['delay_p95_ms'].value)}; "
            + (
                "the oracle finds no room for delay"
                if share is None
                else f"{100 * share:.0f} % of the oracle's gain in mean delay"
            )
        )
        text += "".join(
            f"; **{verdict.COMPARED[h.figure][0]} is beyond the limit"
            f" ({table.percent(verdict.LIMITS[h.figure], 0)}){'' if h.sure else ', within chance'}**"
            for h in broken
        )
        found.append(text + ".")
    return found


def reach(r: Results) -> str:
    """The aims, one by one, and whether they are reached."""
    rows = [["aim", "scenario", "measured", "reached"]]
    for name in r.scenarios:
        mine, base = method("cubic-fq+oal"), method("cubic-fq")
        q = verdict.change(r, name, mine, base, "queueing_p95_ms")
        t = verdict.change(r, name, mine, base, "throughput_mbps")
        if q and t:
            good = q.value <= -0.5 and t.value >= -0.02
            rows.append([
                "p95 queueing at most half of CUBIC's over FQ-CoDel, at ≥ 98 % of its throughput", name,
                f"{table.interval(q)}, throughput {table.interval(t)}", "yes" if good else "**no**"
            ])
    for name in r.scenarios:
        for which in [m for m in r.methods if m.act == "oal"]:
            base = verdict.better_baseline(r, name, which.control)
            share = verdict.share_of_oracle(r, name, which, baseline=base) if base else None
            if share is not None:
                rows.append([
                    f"80 % of the oracle's gain in mean delay over the better baseline ({base.name})", name,
                    f"{which.name}: {100 * share:.0f} %", "yes" if share >= 0.8 else "**no**"
                ])
    paper = {f: p for f, (_, _, p) in verdict.COMPARED.items() if p is not None}
    for f, aim in paper.items():
        more = verdict.COMPARED[f][1]
        for name in r.scenarios:
            for queue in QUEUES:
                c, o = (verdict.change(r, name, Method("bbr", queue, act), Method("bbr", queue), f)
                        for act in ("oal", "oracle"))
                if c and o and (o.value >= aim if more else o.value <= aim):  # the oracle shows that there is such room
                    rows.append([
                        f"the paper's {table.percent(aim)} in {verdict.COMPARED[f][0]} over BBR", name,
                        f"bbr-{queue}: {table.interval(c)}; oracle {table.percent(o.value)}", "yes" if
                        (c.value >= aim if more else c.value <= aim) else "**no**"
                    ])
    rows += _what_the_model_adds(r) + _newcomers(r) + _nobody_harmed(r)
    return table.markdown(rows)


def _what_the_model_adds(r: Results) -> list[list[str]]:
    """By scenario: is CUBIC with the model better than without, beyond chance, in p95 delay or completion?"""
    rows = []
    for queue in QUEUES:
        whole, queue_alone = (Method("cubic", queue, act) for act in ("oal", NO_MODEL))
        for name in r.scenarios:
            found = {f: c for f in ("delay_p95_ms", "fct_p95_ms")
                     if (c := verdict.change(r, name, whole, queue_alone, f))}
            if found:
                rows.append([
                    f"{whole.name} better than {queue_alone.name} in p95 delay or completion, beyond chance", name,
                    "; ".join(f"{verdict.COMPARED[f][0]} {table.interval(c)}" for f, c in found.items()),
                    "yes" if any(c.high < 0 for c in found.values()) else "**no**"
                ])
    return rows


def _newcomers(r: Results) -> list[list[str]]:
    """By scenario: does a new flow behind a FIFO cause at most a quarter of the drops that it does without control?"""
    rows, which = [], Method("cubic", "fifo", "oal")
    for name in r.scenarios:
        if c := verdict.change(r, name, which, which.baseline, "first_second_drops"):
            rows.append(["a new flow behind a FIFO causes at most 25 % of the drops", name,
                         f"{which.name}: {table.interval(c)}", "yes" if c.value <= -0.75 else "**no**"])
    return rows


def _nobody_harmed(r: Results) -> list[list[str]]:
    """By method: does no station lose more than a tenth beyond chance, and are stations no less alike?"""
    rows = []
    for which in [m for m in r.methods if m.act == "oal"]:
        if found := verdict.stations(r, which, which.baseline):
            sure = sum(s.sure for s in found)
            rows.append(["no station loses more than 10 % of its goodput beyond chance", "all",
                         f"{which.name}: {sure} of {len(found)} do", "**no**" if sure else "yes"])
        if c := verdict.overall(r, which, which.baseline, "jain_throughput_station"):
            rows.append(["Jain's index over stations not below the baseline's", "all",
                         f"{which.name}: {table.interval(c)}", "**no**" if c.high < 0 else "yes"])
    return rows


def markdown(r: Results, title: str, how: list[str]) -> str:
    parts = [
        f"# {title}\n", *(f"- {line}" for line in how), f"\n## Beside the paper\n{BESIDE_PAPER}\n",
        table.beside_paper(r), f"{OWN_TERMS}\n", table.markdown(paper.rows(r)),
        f"## What OAL gains and costs\n{GAINS}\n",
        table.gains(r), "## Aims\n",
        reach(r), f"## What each part adds\n{ABLATION}\n", table.ablation(r) or "No ablation was played.\n",
        f"## Whom it costs\n{STATIONS}\n", table.stations(r),
        f"## Fairness\n{FAIRNESS}\n", table.fairness(r)
    ]
    for name in r.scenarios:
        parts += [f"## {name}\n", table.scenario(r, name)]
    return "\n".join(parts)


def write(r: Results, folder: pathlib.Path, title: str, how: list[str]) -> pathlib.Path:
    """Parquet, table, pictures and page; the page's path."""
    r.write(folder)
    (folder / "table.md").write_text(markdown(r, title, how))
    pictures = plots.draw(r, folder)
    image = lambda path: (
        f'<figure><img alt="{html.escape(CAPTIONS[path.name])}"'
        f' src="data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"><figcaption'
        f' class="note">{html.escape(CAPTIONS[path.name])}</figcaption></figure>'
    )
    parts = [
        (
            "<!doctype html><html lang=en><meta"
            f" charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style><h1>{html.escape(title)}</h1>"
        ),
        "<ul class=note>" + "".join(f"<li>{html.escape(line)}" for line in how) + "</ul>",
    ]
    if r.failures:
        parts.append("<h2>Failed cells</h2><ul>"
                     + "".join(f"<li><strong>{html.escape(c.name)}</strong>: {html.escape(e[-400:])}"
                               for c, e in r.failures.items()) + "</ul>")
    parts += [f"<h2>Beside the paper</h2><p>{BESIDE_PAPER}</p>", as_html(table.beside_paper(r)),
              f"<p>{html.escape(OWN_TERMS)}</p>", as_html(table.markdown(paper.rows(r))),
              *(image(p) for p in pictures), f"<h2>What OAL gains and costs</h2><p>{GAINS}</p>",
              as_html(table.gains(r)), "<h2>Aims</h2>", as_html(reach(r))]
    if parts_added := table.ablation(r):
        parts += [f"<h2>What each part adds</h2><p>{html.escape(ABLATION)}</p>", as_html(parts_added)]
    parts += [f"<h2>Whom it costs</h2><p>{html.escape(STATIONS)}</p>", as_html(table.stations(r)),
              f"<h2>Fairness</h2><p>{html.escape(FAIRNESS)}</p>", as_html(table.fairness(r))]
    for name in r.scenarios:
        parts += [
            f"<h2>{html.escape(name)}</h2><ul>" + "".join(f"<li>{bold(s)}" for s in sentences(r, name)) + "</ul>",
            as_html(table.scenario(r, name))
        ]
    page = folder / "report.html"
    page.write_text("\n".join(parts))
    return page


def parts(r: Results) -> str:
    """Hashes of exporters, policies and models that the cells were played with."""
    found = {f"{name} {one['made_of'][name]}" for one in r.found.values() for name in one["made_of"]
             if one["made_of"][name]}
    return ", ".join(sorted(found)) or "parts that were not written down"


def about(r: Results, which: str, settings, kernel: str) -> list[str]:
    """How the figures were made, line by line."""
    played = [f["cell"]["packets"] for f in r.found.values()]
    cost = spread.mean([f["cost"]["cpu_s"] for f in r.found.values()])
    return [
        f"made {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC; set {which}: {len(r.scenarios)} scenarios,"
        f" {len(r.methods)} methods, {len(r.seeds)} seeds; {len(r.found)} of {len(r.cells)} cells played,"
        f" {len(r.failures)} failed, {sum(played):,} data packets measured"
        + (f", {cost.value:.1f} CPU-s a cell" if cost else ""),
        (
            "policy"
            f" {settings.policy.name if settings.policy else 'defaults'}"
            f"{''.join(f' {k}={v}' for k, v in settings.overrides)};"
            f" tree {settings.tree.name}; window model {settings.window.name if settings.window else 'none'}; fixed"
            f" window {settings.clamp_bytes} B; oracle's target {settings.oracle_target_us / 1000:.0f} ms; kernel"
            f" {pathlib.Path(kernel).parent.name}; {parts(r)}"
        ),
        (
            "3 access points on one channel, 9 stations, a server behind a delay, User-Mode-Linux with mac80211 and a"
            " simulated medium, virtual time; a cell is 12 s after 2 s of warm-up"
        ),
        INTERVALS,
        (
            "congestion loss: packets sent again less what the air lost, over packets sent (the labels' definition);"
            " kernel's: drops that the queues counted"
        ),
    ]
