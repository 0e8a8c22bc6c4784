"""The evaluation's tables, as Markdown."""
from . import spread, verdict
from .methods import ABLATIONS, CONTROLS, FORECASTS, NO_MODEL, ONLINE, PAST, QUEUES, Method
from .results import FAIR_FIGURES, FAIR_OF, Results

FIGURES = [("throughput_mbps", "Mbit/s", 2), ("delay_mean_ms", "delay ms", 1), ("delay_p95_ms", "p95", 1),
           ("delay_p99_ms", "p99", 1), ("queueing_p95_ms", "queueing p95", 1), ("rtt_mean_ms", "RTT ms", 1),
           ("rtt_p95_ms", "p95", 1), ("rtt_p99_ms", "p99", 1), ("jitter_ms", "jitter ms", 2),
           ("jitter_abs_ms", "mean ∣Δ∣", 2), ("congestion_loss_ratio", "congestion loss %", 2),
           ("kernel_loss_ratio", "kernel's %", 2), ("retransmission_ratio", "sent again %", 2),
           ("jain_goodput", "Jain", 3), ("jain_airtime", "of airtime", 3), ("fct_mean_ms", "transfers ms", 0),
           ("fct_p95_ms", "p95", 0), ("first_second_own_drops", "lost of a new flow's first second", 1),
           ("first_second_drops", "of all in it", 1), ("others_ratio", "the other senders' %", 1)]


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:+.{digits}f} %"


def figure(f: spread.Figure | None, digits: int, scale: float = 1) -> str:
    if f is None:
        return "–"
    half = "" if f.half != f.half else f" ± {f.half * scale:.{digits}f}"
    return f"{f.value * scale:.{digits}f}{half}"


def markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |"
                     for row in [head, ["---"] + ["---:"] * (len(head) - 1), *body]) + "\n"


def beside_paper(r: Results) -> str:
    """Mean change over the scenarios that OAL, its ablations and the bounds make, beside the paper's over BBR."""
    rows = [["against its baseline"] + [verdict.COMPARED[f][0] for f in verdict.COMPARED]]
    for control in CONTROLS:
        for queue in QUEUES:
            for act in (*ABLATIONS, *PAST, "oal", "oracle", *FORECASTS, "clamp"):
                which = Method(control, queue, act)
                found = [verdict.overall(r, which, which.baseline, f) for f in verdict.COMPARED]
                if any(found):
                    rows.append([which.name] + [interval(f) for f in found])
    rows.append(["the paper, over BBR"] + [percent(paper) for _, _, paper in verdict.COMPARED.values()])
    return markdown(rows)


PARTS = ("throughput_mbps", "delay_mean_ms", "delay_p95_ms", "jitter_ms", "congestion_loss_ratio", "fct_p95_ms",
         "first_second_drops")


def share(s: float | None) -> str:
    return "–" if s is None else f"{100 * s:.0f} %"


def ablation(r: Results) -> str:
    """What each part of the policy adds: the whole and the other ablations against `+queue`, which has no model,
    forecasts against it and against the rule without learning, trees learned online against the committed one;
    scenario by scenario, and the mean over scenarios, with the share of the oracle's gain in mean delay. Empty where
    no ablation was played.
    """
    rows = [["scenario", "method against"] + [verdict.COMPARED[f][0] for f in PARTS] + ["share of oracle", "without"]]
    for control in CONTROLS:
        for queue in QUEUES:
            base = Method(control, queue, NO_MODEL)
            committed, online = Method(control, queue, "oal"), Method(control, queue, ONLINE)
            pairs = [(Method(control, queue, act), base) for act in ("oal", *ABLATIONS, *PAST, *FORECASTS)
                     if act != NO_MODEL]
            rule, *better = (Method(control, queue, act) for act in FORECASTS)
            pairs += [(which, rule) for which in better]
            for which, base in [pair for pair in (*pairs, (online, committed)) if {*pair} <= {*r.methods}]:
                label = f"{which.name} against {base.name}"
                for name in r.scenarios:
                    found = [verdict.change(r, name, which, base, f) for f in PARTS]
                    if any(found):
                        shares = [share(verdict.share_of_oracle(r, name, m)) for m in (which, base)]
                        rows.append([name, label] + [marked(c) for c in found] + shares)
                found = [verdict.overall(r, which, base, f) for f in PARTS]
                rows.append(["**mean**", label] + [marked(c) for c in found] + ["–", "–"])
    return markdown(rows) if len(rows) > 1 else ""


def stations(r: Results) -> str:
    """Whom it costs: stations of scenarios that lose more than STATION_LIMIT of their goodput, and fairness."""
    rows = [["method", "stations × scenarios", "harmed", "by chance alone", "beyond chance",
             "surely harmed", "worst", "Jain's index"]]
    for which in [m for m in r.methods if m.act]:
        found = verdict.stations(r, which, which.baseline)
        if not found:
            continue
        worst = found[0]
        rows.append([
            which.name, str(len(found)), str(sum(s.harmed for s in found)),
            f"{sum(s.by_chance for s in found):.1f}", str(sum(s.sure for s in found)),
            str(sum(s.surely_harmed for s in found)),
            f"{worst.station} in {worst.scenario}: {interval(worst.change)}",
            interval(verdict.overall(r, which, which.baseline, "jain_goodput"))
        ])
    return markdown(rows)


def fairness(r: Results) -> str:
    """Mean over scenarios of the change of Jain's indices against the own baseline."""
    names = [f"jain_{figure}_{of}" for figure in FAIR_FIGURES for of in FAIR_OF]
    titles = [f"{figure}, {of}s" for figure in FAIR_FIGURES for of in FAIR_OF]
    rows = [["method", *titles]]
    for which in [m for m in r.methods if m.act]:
        found = [verdict.overall(r, which, which.baseline, name) for name in names]
        if any(found):
            rows.append([which.name] + [marked(c) for c in found])
    return markdown(rows)


def scenario(r: Results, name: str) -> str:
    """Every figure of every method in a scenario."""
    rows = [["method"] + [title for _, title, _ in FIGURES]]
    for which in sorted(r.methods, key=lambda m: (m.control, m.queue, m.act)):
        found = [verdict.mean(r, name, which, f) for f, _, _ in FIGURES]
        if any(found):
            rows.append([which.name] + [
                figure(f, digits, 100 if key.endswith("_ratio") else 1) for f, (key, _, digits) in zip(found, FIGURES)
            ])
    return markdown(rows)


def gains(r: Results) -> str:
    """Scenario by scenario: changes against the baseline, share of the oracle's gain, limits broken."""
    rows = [[
        "scenario", "method", "throughput", "mean delay", "p95 delay", "p95 queueing", "jitter", "congestion loss",
        "transfers p95", "first second's drops", "share of oracle", "against better baseline", "harm"
    ]]
    for name in r.scenarios:
        for which in [m for m in r.methods if m.act == "oal"]:
            found = [
                verdict.change(r, name, which, which.baseline, f)
                for f in ("throughput_mbps", "delay_mean_ms", "delay_p95_ms", "queueing_p95_ms", "jitter_ms",
                          "congestion_loss_ratio", "fct_p95_ms", "first_second_drops")
            ]
            if not any(found):
                continue
            shares = [
                verdict.share_of_oracle(r, name, which),
                verdict.share_of_oracle(r, name, which, baseline=verdict.better_baseline(r, name, which.control))
            ]
            broken = [
                f"**{verdict.COMPARED[h.figure][0]}{'' if h.sure else ' (within chance)'}**"
                for h in verdict.harms(r, name, which)
            ]
            rows.append([
                name, which.name, *(interval(c) for c in found),
                *map(share, shares), ", ".join(broken) or "none"
            ])
    return markdown(rows)


def marked(c: spread.Figure | None) -> str:
    """Bold where the interval excludes 0."""
    return f"**{interval(c)}**" if c and (c.low > 0 or c.high < 0) else interval(c)


def interval(c: spread.Figure | None) -> str:
    if c is None:
        return "–"
    return percent(c.value) + ("" if c.low != c.low else f" [{100 * c.low:+.0f}, {100 * c.high:+.0f}]")
