"""What was asked of learning, line by line, what was measured, and the experiment that explains a miss:
lab/evaluate/reach prints it from committed results. Plays and fits nothing.

docs/learning.md holds what this prints; `--page` writes it there."""
import argparse
import json
import pathlib
import re
import sys
import textwrap
from dataclasses import dataclass

from . import harm, spread, table, verdict
from .methods import NO_MODEL, Method, method
from .results import Results

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS, TRAINED = ROOT / "lab/evaluate/results", ROOT / "training/results"
PAGE, BEGIN, END = ROOT / "docs/learning.md", "<!-- lab/evaluate/reach -->\n", "<!-- end -->\n"
OVER_FQ, BEHIND_FIFO = method("cubic-fq+oal"), method("cubic-fifo+oal")
TREE, TEACHER, RULE, PERSISTENCE = ("corpus", "corpus: its teacher", "best column, before the drop", "persistence")
#: What was asked.
TIMES, AP, LEAD_S, OF_THE_ORACLE, DROPS, BUDGET, SCENARIOS = 1.5, 0.40, 0.1, 0.8, 0.25, 30_000, 4
COLUMNS = 100
WHERE = {"learning.items.parquet": "minutes of `learning`",
         "fleet.items.parquet": "seconds of 70 AP-runs of the corpus"}


@dataclass(frozen=True)
class Line:
    asked: str
    measured: str
    met: bool
    why: str = ""


def _read(name: str):
    return json.loads((TRAINED / name).read_text())


def _short(value: float, digits: int = 3) -> str:
    text = f"{abs(value):.{digits}f}"
    return ("−" if value < 0 else "") + (text[1:] if text.startswith("0.") else text)


def _gain(of: list[float]) -> str:
    """A difference with its interval."""
    value, low, high = of
    return f"{'+' if value >= 0 else ''}{_short(value)} [{_short(low)}, {_short(high)}]"


def _of(values: list[str]) -> str:
    return ", ".join(values[:-1]) + (" and " if len(values) > 1 else "") + values[-1]


def predicting() -> list[Line]:
    """Foreseeing onsets, on sites that no model saw; and right and macro F1 on every capture."""
    unseen = next(iter(_read("corpus-models.json")["splits"].values()))["models"]
    tree, rule, teacher = (unseen[name] for name in (TREE, RULE, TEACHER))
    best = max(unseen[name]["before_ap"] for name in unseen
               if name.startswith(("persistence", "best column", "two thresholds")))
    assert best == rule["before_ap"], "another rule is the best one before the drop"
    ahead = {row["later_s"]: row["before_ap"] for row in _read("limits.json")["look_ahead"]}
    runs = [_short(row["onset_ap"]) for row in _read("limits.json")["runs"]]
    low, high = tree["interval_95"]["before_ap"]
    times = tree["before_ap"] / best
    said = f"{_short(tree['before_ap'])} [{_short(low)}, {_short(high)}]"
    late = (f"`oal-train limits`: before the first drop LightGBM has {_short(ahead[0.0])} with the features of the"
            f" instant, {_short(ahead[0.3])} with those 0.3 s later, {_short(ahead[0.5])} with 0.5 s,"
            f" {_short(ahead[1.0])} with 1 s. What tells of an onset is mostly not there yet.")
    lead = [f"{1000 * s:.0f}" for s in (tree["lead_s"], *tree["interval_95"]["lead_s"])]
    lines = [
        Line(f"onset average precision before the first drop, sites never seen: {TIMES} × the best cheap rule",
             f"{said}, the rule {_short(best)}: {times:.2f} ×, difference {_gain(tree['minus'][RULE]['before_ap'])}",
             times >= TIMES, f"{late} The tree's teacher, too large for an access point, has"
             f" {_short(teacher['before_ap'])}: {teacher['before_ap'] / best:.2f} ×."),
        Line(f"… and {_short(AP, 2)} absolute", said, tree["before_ap"] >= AP,
             f"As above. More runs to learn from help too: with 7, 14, 28 and 55 AP-runs it ranks all onsets of other"
             f" sites with {_of(runs)}."),
        Line("median lead ≥ 100 ms", f"{lead[0]} ms [{lead[1]}, {lead[2]}]", tree["lead_s"] >= LEAD_S,
             f"{_short(tree['foreseen'], 2)} of the first drops are foreseen at all, and those by"
             f" {1000 * tree['lead_foreseen_s']:.0f} ms (median): the median over all drops can be above 0 only where"
             f" more than half are. The teacher foresees {_short(teacher['foreseen'], 2)}, with a median of"
             f" {1000 * teacher['lead_s']:.0f} ms."),
    ]
    here = next(iter(_read("learning.json")["splits"].values()))["models"]["decision_tree"]["minus"][PERSISTENCE]
    gains = {"learning": here, "sites never seen": tree["minus"][PERSISTENCE]}
    for figure, name in (("accuracy", "right more often than"), ("macro_f1", "macro F1 above that of")):
        lines.append(Line(f"{name} persistence on every capture, beyond chance",
                          "; ".join(f"{where} {_gain(of[figure])}" for where, of in gains.items()),
                          all(of[figure][1] > 0 for of in gains.values()), _choosing(figure)))
    return lines


def _choosing(figure: str) -> str:
    """What other ways to say a class make of one model's probabilities."""
    gain = {"accuracy": "right_gain", "macro_f1": "macro_f1_gain"}[figure]
    words = []
    for found in _read("choosing.json"):
        of = {row["what"]: row[gain] for row in found["rows"]}
        likeliest, stays, forest = (_gain(of[name]) for name in (
            "decision_tree, the likeliest", "decision_tree, the class now, unless",
            "random_forest, the class now, unless"))
        words.append(f"On later {WHERE[found['items']]} the likeliest class has {likeliest}, the class now unless"
                     f" another is clearly likelier {stays}; with a forest, too large for an access point, {forest}.")
    return ("`oal-train limits --choosing`: the policy's tree fitted to earlier items, its probabilities said by other"
            f" rules, less persistence. {' '.join(words)}")


def controlling() -> list[Line]:
    """What the model adds to control, and control to none."""
    over, behind, forecast, link = (Results.read(RESULTS / name) for name in ("ablation", "fifo", "forecast", "link"))
    lines = []
    for r, which, asked, least in ((over, OVER_FQ, f"in at least {SCENARIOS} scenarios over FQ-CoDel", SCENARIOS),
                                   (behind, BEHIND_FIFO, "in all scenarios behind a FIFO", len(behind.scenarios))):
        base, better = Method(which.control, which.queue, NO_MODEL), []
        for name in r.scenarios:
            found = [verdict.change(r, name, which, base, f) for f in ("delay_p95_ms", "fct_p95_ms")]
            better.append(any(c.high < 0 for c in found if c))
        mean = table.interval(verdict.overall(r, which, base, "delay_p95_ms"))
        lines.append(Line(f"with the model better than without in p95 delay or page completion, {asked}",
                          f"{sum(better)} of {len(better)}; p95 delay in the mean {mean}", sum(better) >= least,
                          _forecast(forecast) if which is OVER_FQ else _newcomers_of_a_model(behind)))
    shares = {name: verdict.share_of_oracle(over, name, OVER_FQ) for name in over.scenarios}
    good = [name for name, s in shares.items() if s is not None and s >= OF_THE_ORACLE]
    short = [f"{name} {100 * s:.0f} %" for name, s in shares.items() if name not in good and s is not None]
    lines.append(Line("80 % of the oracle's gain in mean delay in every scenario over FQ-CoDel",
                      f"{len(good)} of {len(shares)}; missed in {_of(short)}", len(good) == len(shares),
                      _knowing_late(forecast, over, [name for name in shares if name not in good])))
    lines.append(_following(link, over))
    drops = {name: c for name in behind.scenarios
             if (c := verdict.change(behind, name, BEHIND_FIFO, BEHIND_FIFO.baseline, "first_second_drops"))}
    good = [name for name, c in drops.items() if c.value <= DROPS - 1]
    lines.append(Line("a new flow behind a FIFO causes at most 25 % of the drops",
                      "; ".join(f"{name} {table.interval(c)}" for name, c in drops.items()), len(good) == len(drops),
                      _knowing_newcomers([name for name in drops if name not in good])))
    return lines


def _forecast(r: Results) -> str:
    """What a forecast adds to a law that uses it."""
    late, some, ahead = (method(f"cubic-fq+{act}") for act in ("late", "forecast", "ahead"))
    of = lambda which, figure: table.interval(verdict.overall(r, which, late, figure))
    told = json.loads((RESULTS / "peers.json").read_text())["models"]["tree of 8 leaves"]
    more = spread.mean([a - b for a, b in zip(told["told"]["onset_ap"], told["without"]["onset_ap"])])
    return (f"A law that gives windows by a forecast of what links carry, played in {_of(r.scenarios)} ({len(r.seeds)}"
            f" seeds), against the same law by the last 200 ms. With the learned forecast's share of the error taken"
            f" off: p95 delay {of(some, 'delay_p95_ms')}, throughput {of(some, 'throughput_mbps')}. With all of it, the"
            f" next 200 ms known: {of(ahead, 'delay_p95_ms')} and {of(ahead, 'throughput_mbps')}. Neighbours' figures"
            f" add {_gain([more.value, more.low, more.high])} to the tree's onset average precision"
            " (`lab/evaluate/peers`).")


def _newcomers_of_a_model(r: Results) -> str:
    base = Method("cubic", "fifo", NO_MODEL)
    change = verdict.overall(r, BEHIND_FIFO, base, "first_second_drops")
    return (f"As above. What the model does behind a FIFO is elsewhere: drops in a new flow's first second change by"
            f" {table.interval(change)} against the queue alone.")


def _of_the_room(r: Results, over: Results, name: str, which: Method) -> float | None:
    """What a method of a few seeds gains of the best oracle's gain, which has ten; None where there is no room."""
    best, base = (verdict.best_oracle(over, name, which.control, which.queue).value,
                  verdict.mean(over, name, which.baseline, "delay_mean_ms").value)
    gained = [verdict.mean(r, name, m, "delay_mean_ms").value for m in (which.baseline, which)]
    return (gained[0] - gained[1]) / (base - best) if base - best >= 0.02 * base else None


def _following(r: Results, over: Results) -> Line:
    """The same line where windows follow their links, and what that changes against the queue alone."""
    link, queue = method("cubic-fq+link"), method("cubic-fq+queue")
    share = {name: [_of_the_room(r, over, name, m) for m in (link, queue)] for name in r.scenarios}
    share = {name: of for name, of in share.items() if of[0] is not None}
    good = [name for name, of in share.items() if of[0] >= OF_THE_ORACLE]
    of = lambda figure: table.interval(verdict.overall(r, link, queue, figure))
    return Line(f"… in the {len(share)} in which feedback misses it, where windows follow their links (`+link`)",
                f"{len(good)} of {len(share)}; missed in "
                + _of([f"{name} {100 * of[0]:.0f} %" for name, of in share.items() if name not in good]),
                len(good) == len(share),
                f"{len(r.seeds)} seeds; the queue alone has "
                + _of([f"{100 * of[1]:.0f} % in {name}" for name, of in share.items() if name not in good])
                + f". Against it `+link` changes mean delay by {of('delay_mean_ms')}, p95 by {of('delay_p95_ms')} and"
                f" throughput by {of('throughput_mbps')}. It knows each link's PHY rate, and not what air there will"
                " be: that is still told by the queue.")


def _knowing_late(r: Results, over: Results, missed: list[str]) -> str:
    """Where the oracle's gain comes from: the future, or the links as they were."""
    others = [name for name in missed if name not in r.scenarios]
    late, queue = method("cubic-fq+late"), method("cubic-fq+queue")
    share = {name: [100 * _of_the_room(r, over, name, m) for m in (late, queue)] for name in r.scenarios}
    return (f"The law by the last 200 ms of the links ({len(r.seeds)} seeds), which needs no learning, gets "
            + _of([f"{of[0]:.0f} % in {name} (the queue alone {of[1]:.0f} %)" for name, of in share.items()])
            + ". So what feedback lacks there is not the links' future, but their rates and the air that the access"
            " point has, which the lab tells that law (the air smoothed over 0.3 s to both sides)."
            + (f" In {_of(others)} it was not played: what was missed there has no experiment." if others else ""))


def _knowing_newcomers(missed: list[str]) -> str:
    """Do windows that follow the truth reach it, behind a FIFO?"""
    r = Results.read(RESULTS / "newcomers")
    words = []
    for act in ("oracle", "oracle20"):
        which = method(f"cubic-fifo+{act}")
        changes = {name: verdict.change(r, name, which, which.baseline, "first_second_drops") for name in missed}
        words.append(_of([f"{name} {table.interval(c)}" for name, c in changes.items()]))
    return (f"`results/newcomers` ({len(r.seeds)} seeds): the oracle, behind a FIFO too, changes them by {words[0]};"
            f" with 20 ms of wait instead of 45 by {words[1]}. So windows can do it, if they are right from a flow's"
            " first packet on. Feedback learns of a flow by the queue that it makes.")


def harming() -> list[Line]:
    """Whom control costs, and how alike stations are."""
    lines = []
    for name, which in (("ablation", OVER_FQ), ("fifo", BEHIND_FIFO)):
        r = Results.read(RESULTS / name)
        found = verdict.stations(r, which, which.baseline)
        sure = sum(s.sure for s in found)
        queue = "over FQ-CoDel" if which is OVER_FQ else "behind a FIFO"
        jain = verdict.overall(r, which, which.baseline, "jain_throughput_station")
        lines.append(Line(f"no station loses more than 10 % of its goodput beyond chance, {queue}",
                          f"{sure} of {len(found)} do; worst {found[0].station} in {found[0].scenario}"
                          f" {table.interval(found[0].change)}", not sure, _equal_air(r, which)))
        lines.append(Line(f"Jain's index over stations not below the baseline's, {queue}", table.interval(jain),
                          jain.high >= 0, "As above: equal air is not equal bytes; slow links carry fewer of them."))
    return lines


def _equal_air(r: Results, which: Method) -> str:
    mine, words = harm.explained(harm.stations(r, which)), ""
    if (oracle := Method(which.control, which.queue, "oracle")) in r.methods:
        best = harm.explained(harm.stations(r, oracle))
        words = (f" Of the {best['harmed']} that the oracle harms, which divides the air equally by what really comes,"
                 f" {best['harmed_over_equal']} had more (correlation {best['correlation']:.2f}).")
    return (f"`evaluate/harm.py`: control divides the air of an access point equally. Without it"
            f" {mine['over_equal']} of {mine['stations']} stations had more than an equal part, among them"
            f" {mine['harmed_over_equal']} of the {mine['harmed']} that control harms. Where all flows last, what equal"
            f" air alone would take or give goes with what control did (correlation {mine['correlation']:.2f}).{words}")


def costing() -> list[Line]:
    """Instructions of a decision, as `make -C ap-exporter bench-decide` counted them."""
    of = {f["name"]: f["value"] for f in json.loads((RESULTS / "decide.json").read_text())}
    features, tree, window = (round(of[f"decision_instructions_{part}_mips"])
                              for part in ("features", "tree", "window"))
    return [Line(f"all models together ≤ {BUDGET:,} MIPS instructions a decision, no allocation, golden vectors",
                 f"{features + tree:,}; a window model {window:,} more for each flow that it is asked about (counted,"
                 " no interval)", features + tree + window <= BUDGET,
                 f"`make -C ap-exporter bench-decide`: of them the 98 features take {features:,} and the tree of 255"
                 f" nodes {tree}, so it is no model that fills the budget. A bundle without a window model, as the demo"
                 " has, meets it. No allocation and golden vectors: `ap-exporter/tests`.")]


def lines() -> list[Line]:
    return [*predicting(), *controlling(), *harming(), *costing()]


def text(found: list[Line]) -> str:
    """The table, and under it the experiment of each line."""
    rows = [["", "asked", "measured, 95 % in brackets", "met"]]
    rows += [[str(n), line.asked, line.measured, "yes" if line.met else "**no**"] for n, line in enumerate(found, 1)]
    head, *body = rows
    out = ["| " + " | ".join(row) + " |" for row in [head, ["--:", "---", "---", "---"], *body]]
    out.append("")
    for n, line in enumerate(found, 1):
        if line.why:
            out += textwrap.wrap(line.why, COLUMNS, initial_indent=f"{n}. ", subsequent_indent=" " * len(f"{n}. "),
                                 break_long_words=False, break_on_hyphens=False)
    return re.sub(r"(?<![\w.-])-(?=[\d.])", "−", "\n".join(out)) + "\n"


def main() -> int:
    p = argparse.ArgumentParser(prog="lab/evaluate/reach", description=__doc__)
    p.add_argument("--page", action="store_true", help="write it into docs/learning.md, too")
    args = p.parse_args()
    said = text(lines())
    print(said, end="")
    if args.page:
        before, rest = PAGE.read_text().split(BEGIN, 1)
        PAGE.write_text(before + BEGIN + "\n" + said + "\n" + END + rest.split(END, 1)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
