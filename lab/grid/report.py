"""Aims of policy cc-select, and the tables of what was measured, as Markdown."""
from __future__ import annotations

import numpy as np

from .table import Table

LOSS_BASED = ("illinois", "reno", "westwood", "cubic", "vegas")  # vegas goes by delay; the paper lists it with them
#: What the paper reports of each start: mean gain of speed, real / possible, in percent.
PAPER = {"illinois": (3.15, 4.91), "vegas": (10.27, 12.69), "reno": (10.11, 12.00), "westwood": (12.89, 15.58),
         "cubic": (7.92, 10.08), "bbr": (-0.85, 3.62)}
NAMES = {"bbr": "BBR"}


def named(cc: str) -> str:
    return NAMES.get(cc, cc.capitalize())


def signed(f: list[float]) -> str:
    """A figure in percent with its interval."""
    value, low, high = (round(v, 1) + 0.0 for v in f)  # no minus before a zero
    return f"{value:+.1f} % [{low:+.1f}, {high:+.1f}]".replace("-", "−")


def plain(f: list[float]) -> str:
    return f"{f[0]:.0f} % [{f[1]:.0f}, {f[2]:.0f}]".replace("-", "−")


def verdict(f: list[float], least: float) -> str:
    """Of a figure that should be at least so much; surely where the whole interval is."""
    if f[0] < least:
        return "missed, surely" if f[2] < least else "missed"
    return "met, surely" if f[1] >= least else "met"


def markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *body]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n"


def aims(j: dict) -> list[list[str]]:
    """Aim, asked, measured, verdict."""
    speed, out = j["speed"], [["aim", "asked", "measured", "verdict"]]
    for cc in LOSS_BASED:
        f = speed["starts"][cc]["gains"]["share"]
        out.append([f"start {named(cc)}", "≥ 70 % of the possible gain", plain(f), verdict(f, 70)])
    f = speed["starts"]["bbr"]["gains"]["real"]
    out.append(["start BBR", "≥ 0 %", signed(f), verdict(f, 0)])
    over = speed["rivals"]["all"]
    out.append(["over CUBIC", "mean ≥ +5 %", signed(over["cubic"]), verdict(over["cubic"], 5)])
    harmed = sum(row["harmed"] for row in j["harm"]["paths"])
    out.append(["over CUBIC", "no path below −2 % beyond chance",
                f"{harmed} of {j['paths']}; {j['harm']['doubtful']} looked so", "missed" if harmed else "met"])
    f = over["best fixed"]
    out.append(["over the best fixed one", "≥ 0 %", signed(f), verdict(f, 0)])
    f = speed["starts"]["cubic"]["anchored"]["against_fixed"]
    out.append(["over the best fixed one, anchored", "≥ 0 %", signed(f), verdict(f, 0)])
    for name in ("rate_mbps", "delay_ms"):
        f = j["splits"][name]["over best fixed"]
        out.append([f"the same, a {name.split('_')[0]} that no lesson had", "≥ 0 %", signed(f), verdict(f, 0)])
    f = speed["lives"]["20"]["model over best fixed"]
    out.append(["the same, first 20 sessions", "≥ 0 %", signed(f), verdict(f, 0)])
    f = speed["lives"]["20"]["model over bandit"]
    out.append(["over the bandit, 20 sessions", "≥ 0 %", signed(f), verdict(f, 0)])
    return out


def starts(of: dict) -> list[list[str]]:
    """Of each algorithm that the first session had; the paper's figures beside ours."""
    out = [["first session", "paper: real / possible %", "possible", "real", "share", "mean of ratios: real / possible",
            "always the best fixed one"]]
    for cc, (real, possible) in PAPER.items():
        s = of["starts"][cc]
        out.append([named(cc), f"{real:.2f} / {possible:.2f}".replace("-", "−"), signed(s["possible"]),
                    signed(s["gains"]["real"]), plain(s["gains"]["share"]) if cc != "bbr" else "–",
                    f"{s['gains']['ratio'][0]:+.1f} / {s['possible_ratio'][0]:+.1f} %".replace("-", "−"),
                    signed(s["fixed"])])
    return out


def models(of: dict) -> list[list[str]]:
    """Each kind of model: what it brings, the mean of all starts, and from a CUBIC and a BBR start."""
    names = {"gains": "gains, all statistics", "gains-more": "gains, the paper's and BBR's",
             "gains-paper": "gains, the paper's three", "anchored": "gains, over the best fixed one",
             "best": "class of the best", "quality": "four classes and a table"}
    out = [["trees", "from CUBIC", "from BBR", "from CUBIC, over the best fixed one", "stay with BBR"]]
    for name, text in names.items():
        cubic, bbr = (of["starts"][cc][name] for cc in ("cubic", "bbr"))
        out.append([text, signed(cubic["real"]), signed(bbr["real"]), signed(cubic["against_fixed"]),
                    f"{100 * bbr['stays']:.0f} %"])
    return out


def rivals(of: dict) -> list[list[str]]:
    """The choice after a CUBIC session against each rival, by queue and rate."""
    names = [n for n in of["rivals"]["all"] if n not in ("hindsight", "tried")]
    out = [["paths", *map(named, names), "each tried once"]]
    for group, row in of["rivals"].items():
        out.append([group.replace("_", " "), *(signed(row[n]) for n in (*names, "tried"))])
    return out


def lives(of: dict) -> list[list[str]]:
    out = [["sessions", "trees, over CUBIC", "bandit, over CUBIC", "best fixed, over CUBIC", "trees over bandit",
            "trees over best fixed"]]
    return out + [[number, *(signed(row[n]) for n in ("model", "bandit", "best fixed", "model over bandit",
                                                     "model over best fixed"))] for number, row in of["lives"].items()]


def harm(j: dict) -> list[list[str]]:
    """Of paths where the choice seemed to cost, those played again; the worst first."""
    rows = sorted(j["harm"]["paths"], key=lambda row: row["change"][0])
    return [["path", "chosen", "change of speed, 10 sessions each", "harmed"],
            *([r["path"], r["cc"], signed(r["change"]), "yes" if r["harmed"] else "no"] for r in rows)]


def page(j: dict) -> str:
    """All tables."""
    parts = ["## Aims", aims(j)]
    for key, title in (("speed", "speed alone"), ("queue", "queue and repetitions count as well")):
        parts += [f"## By start: {title}", starts(j[key]), f"## Kinds of trees: {title}", models(j[key]),
                  f"## Over rivals: {title}", rivals(j[key]), f"## Session after session: {title}", lives(j[key])]
    parts += ["## Other splits", splits(j), "## Paths that seemed to lose", harm(j)]
    return "\n".join(part + "\n" if isinstance(part, str) else markdown(part) for part in parts)


def splits(j: dict) -> list[list[str]]:
    """A whole rate, loss, delay … left out: paths unlike all that were learned from."""
    out = [["left out, value by value", "over CUBIC", "over the best fixed one", "share of the possible gain"]]
    return out + [[name.replace("_", " "), signed(row["over cubic"]), signed(row["over best fixed"]),
                   plain(row["share"])] for name, row in j["splits"].items()]


def near(of: Table, cc: str, within: float = 0.02) -> float:
    """Share of paths on which an algorithm is at most so much slower than the best one."""
    speed = of.worth.mean(axis=2)
    return float((speed[:, of.algorithms.index(cc)] >= speed.max(axis=1) + np.log(1 - within)).mean())


def short_queues(of: Table) -> tuple[float, float, float]:
    """At 100 Mbit/s and 1 ms behind drop-tail: BBR's least and largest speed, CUBIC's least; means of each jitter."""
    where = (of.paths.rate_mbps == 100) & (of.paths.delay_ms == 1) & (of.paths.queue == "fifo")
    of_jitter = [of.speed_mbps[where & (of.paths.jitter_ratio == jitter)].mean(axis=(0, 2))
                 for jitter in sorted(of.paths.jitter_ratio.unique())]
    bbr, cubic = (np.array(of_jitter)[:, of.algorithms.index(cc)] for cc in ("bbr", "cubic"))
    return bbr.min(), bbr.max(), cubic.min()
