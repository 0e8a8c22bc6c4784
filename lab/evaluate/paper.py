"""Lin and Jiang's evaluation in its own terms, beside ours: CUBIC with OAL against BBR, a figure an access point,
Jain's index over the three, and in how many iterations OAL is best.
"""
from dataclasses import dataclass

from . import metrics, spread
from .methods import Method
from .results import Results

CONSTANT = "constant"  # the scenario nearest to the paper's: long downloads, links as they are


@dataclass(frozen=True)
class Term:
    """A figure of the paper. name; of: the flow's figure, or None for the cell's congestion loss; add: an access point
    has the sum over its flows, not the mean; more: is more better; bbr, vivace: the paper's change against them; best:
    in how many of its ten iterations it was best, None where it does not say.
    """

    name: str
    of: str | None
    add: bool
    more: bool
    bbr: float
    vivace: float
    best: int | None = None


TERMS = (
    Term("throughput, mean of three APs", "goodput_mbps", True, True, 0.175, 0.165, 7),
    Term("delay", "delay_mean_ms", False, False, -0.30, -0.26),
    Term("jitter", "jitter_ms", False, False, -0.16, -0.02),
    Term("congestion loss ratio", None, False, False, -0.252, -0.126, 8),
)
OURS = "cubic"
AGAINST = "bbr"


def of_aps(flows: list[dict], term: Term) -> list[float]:
    """A figure of each access point that has long flows."""
    found: dict[str, list[float]] = {}
    for flow in flows:
        if flow["kind"] == "long" and flow[term.of] is not None:
            found.setdefault(flow["ap"], []).append(flow[term.of])
    return [sum(values) / (1 if term.add else len(values)) for _, values in sorted(found.items())]


def values(r: Results, scenario: str, which: Method, term: Term, jain: bool = False) -> dict[int, float]:
    """By seed: the mean over access points of a figure, or Jain's index over them."""
    out = {}
    for cell, one in r.found.items():
        if cell.scenario != scenario or cell.method != which:
            continue
        if term.of is None:
            value = one["cell"]["congestion_loss_ratio"]
        else:
            every = of_aps(one["flows"], term)
            value = metrics.jain(every) if jain else sum(every) / len(every) if every else None
        if value is not None:
            out[cell.seed] = value
    return out


def best(r: Results, scenarios: list[str], new: Method, old: Method, term: Term) -> tuple[int, int]:
    """Seeds (iterations) in which `new` is better than `old`, by the mean over the scenarios; of how many."""
    pairs = [(values(r, s, new, term), values(r, s, old, term)) for s in scenarios]
    seeds = sorted(set.intersection(*(set(a) & set(b) for a, b in pairs))) if pairs else []
    won = 0
    for seed in seeds:
        a, b = (sum(pair[i][seed] for pair in pairs) for i in (0, 1))
        won += a > b if term.more else a < b
    return won, len(seeds)


def columns(r: Results) -> list[tuple[str, list[str], Method, Method]]:
    """(title, scenarios, ours, the other) of each comparison that was played."""
    found = []
    for queue in ("fifo", "fq"):
        ours, other = Method(OURS, queue, "oal"), Method(AGAINST, queue)
        if ours not in r.methods or other not in r.methods:
            continue
        if CONSTANT in r.scenarios:
            found.append((f"{queue}, {CONSTANT}", [CONSTANT], ours, other))
        found.append((f"{queue}, all", r.scenarios, ours, other))
    return found


def percent(f: spread.Figure | None) -> str:
    """A change with its interval."""
    if f is None:
        return "–"
    return f"{100 * f.value:+.1f} %" + ("" if f.low != f.low else f" [{100 * f.low:+.1f}, {100 * f.high:+.1f}]")


def rows(r: Results) -> list[list[str]]:
    """The table: a line a figure of the paper, then Jain's index over access points, then iterations that OAL won."""
    sets = columns(r)
    out = [["CUBIC + OAL over BBR", "paper", "paper, over Vivace", *(title for title, _, _, _ in sets)]]
    for term in TERMS:
        line = [term.name, f"{100 * term.bbr:+.1f} %", f"{100 * term.vivace:+.1f} %"]
        for _, scenarios, ours, other in sets:
            line.append(percent(spread.mean_change(
                [(values(r, s, ours, term), values(r, s, other, term)) for s in scenarios])))
        out.append(line)
    for term in TERMS:
        if term.of is None:
            continue
        line = [f"Jain over APs of {term.name.split(',')[0]}", "fairer", "fairer"]
        for _, scenarios, ours, other in sets:
            pair = [_mean_over(r, scenarios, which, term) for which in (ours, other)]
            line.append("–" if None in pair else f"{pair[0].value:.3f}; BBR {pair[1].value:.3f}")
        out.append(line)
    for term in TERMS:
        line = [f"iterations better: {term.name.split(',')[0]}", f"{term.best} of 10" if term.best else "–", "–"]
        for _, scenarios, ours, other in sets:
            won, of = best(r, scenarios, ours, other, term)
            line.append(f"{won} of {of}" if of else "–")
        out.append(line)
    return out


def _mean_over(r: Results, scenarios: list[str], which: Method, term: Term) -> spread.Figure | None:
    """Mean over scenarios and seeds of Jain's index over access points."""
    by_seed: dict[int, list[float]] = {}
    for scenario in scenarios:
        for seed, value in values(r, scenario, which, term, jain=True).items():
            by_seed.setdefault(seed, []).append(value)
    return spread.mean([sum(v) / len(v) for v in by_seed.values()])
