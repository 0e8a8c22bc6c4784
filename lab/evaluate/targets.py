"""lab/evaluate/targets: is there one wait that fits everywhere? Plays `+queue` on the set `tune` with several waits (in
turns: `target_txop_permille`), `+tree` beside it, keeps what each station got, and says what the best wait of each
context could gain over one wait for all: the most that a learned target can add."""
import argparse
import json
import pathlib
import sys
from dataclasses import replace

import numpy as np

from . import bundle, methods, play, pool, spread

SET, CONTROL = "tune", "cubic-fq"
SCENARIOS = ("constant", "lossy", "churn", "swings", "fading")
TARGETS = (700, 1100, 1600)  # permille of a turn
SHIPPED = 1100
KEPT = play.HERE / "results/targets.json"
FIGURES = ("throughput_mbps", "delay_mean_ms", "delay_p95_ms", "congestion_loss_ratio")
TREE = "tree"
KINDS = {"scenario": "scenario", "ap": "access point of a scenario", "station": "station of a scenario"}


def stations(flows: list[dict]) -> dict[str, dict[str, float]]:
    """Access point, goodput and mean delay of each station's long flows."""
    of: dict[str, list[dict]] = {}
    for flow in flows:
        if flow["kind"] == "long" and flow["delay_mean_ms"] is not None:
            of.setdefault(flow["station"], []).append(flow)
    return {name: {"ap": mine[0]["ap"], "goodput_mbps": sum(f["goodput_mbps"] for f in mine),
                   "delay_mean_ms": float(np.mean([f["delay_mean_ms"] for f in mine]))} for name, mine in of.items()}


def variants(how: play.Settings) -> dict[str, tuple[methods.Method, play.Settings]]:
    """Method and settings by the name of what is played: a wait, or `tree`."""
    queue = methods.method(f"{CONTROL}+{methods.NO_MODEL}")
    found = {str(t): (queue, replace(how, overrides=(("target_txop_permille", t),))) for t in TARGETS}
    return found | {TREE: (methods.method(f"{CONTROL}+{TREE}"), how)}


def collect(how: play.Settings, seeds: list[int]) -> list[dict]:
    """What was played, a row each: scenario, seed, variant, figures of the cell, stations."""
    rows = []
    for seed in seeds:
        for name in SCENARIOS:
            for variant, (method, settings) in variants(how).items():
                if found := play.result(play.Cell(SET, name, method, seed), settings):
                    rows.append({"scenario": name, "seed": seed, "variant": variant,
                                 **{f: found["cell"][f] for f in FIGURES}, "stations": stations(found["flows"])})
    return rows


def draws(rows: list[dict], variants_: tuple[str, ...]) -> dict[tuple[str, int], dict[str, dict]]:
    """Rows by (scenario, seed) and variant, where all of these variants were played."""
    found: dict = {}
    for row in rows:
        found.setdefault((row["scenario"], row["seed"]), {})[row["variant"]] = row
    return {key: of for key, of in found.items() if set(variants_) <= set(of)}


def changes(rows: list[dict], variant: str, base: str = str(SHIPPED)) -> dict[str, spread.Figure]:
    """variant/base - 1 of each figure, a scenario with a seed is a draw."""
    of = draws(rows, (variant, base))
    return {f: spread.mean([one[variant][f] / one[base][f] - 1 for one in of.values() if one[base][f]])
            for f in FIGURES}


def contexts(row: dict, kind: str) -> dict[str, tuple[float, float]]:
    """(goodput, delay) of a cell by context: the scenario, its access points or its stations."""
    if kind == "scenario":
        return {"all": (row["throughput_mbps"], row["delay_mean_ms"])}
    of: dict[str, list[dict]] = {}
    for name, station in row["stations"].items():
        of.setdefault(name if kind == "station" else str(station["ap"]), []).append(station)
    return {name: (sum(s["goodput_mbps"] for s in mine), float(np.mean([s["delay_mean_ms"] for s in mine])))
            for name, mine in of.items()}


def _table(rows: list[dict], kind: str) -> dict[int, dict[str, dict[str, tuple[float, float]]]]:
    """seed -> context -> wait -> (goodput, delay), of what every seed has."""
    waits, out = tuple(str(t) for t in TARGETS), {}
    for (scenario, seed), of in draws(rows, waits).items():
        known = {w: contexts(of[w], kind) for w in waits}
        for name in set.intersection(*map(set, known.values())):
            out.setdefault(seed, {})[f"{scenario}/{name}"] = {w: known[w][name] for w in waits}
    common = set.intersection(*(set(of) for of in out.values())) if out else set()
    return {seed: {context: of[context] for context in sorted(common)} for seed, of in out.items()}


def _ratios(table: dict, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """context -> wait -> logarithms of (goodput, delay) over those at SHIPPED, of a seed."""
    return {context: {w: np.log(np.divide(pair, of[str(SHIPPED)])) for w, pair in of.items()}
            for context, of in table[seed].items()}


def price(seen: list[dict[str, dict[str, np.ndarray]]]) -> float:
    """Logarithm of goodput that one wait for all buys with a logarithm of delay: a line through SHIPPED."""
    g, d = np.array([np.mean([of[w] for one in seen for of in one.values()], axis=0)
                     for w in map(str, TARGETS)]).T
    return float(g @ d / (d @ d))


def bound(rows: list[dict], kind: str, held_out: bool) -> dict:
    """What a wait for each context changes against SHIPPED for all. A longer wait buys goodput with delay, at `price`;
    what is beyond that exchange is the gain: goodput at equal delay. The wait of a context is that with the most of it.
    `held_out`: price and waits are chosen on the other seeds, as who learns must; else on the same runs that judge
    them, which is more than anybody can have.

    {"gain", "delay", "goodput": spread.Figure, a scenario with a seed is a draw, of the mean of logarithms over its
    contexts; "contexts"; "moved": contexts with another wait than SHIPPED, mean over seeds; "price": mean over seeds}
    """
    table = _table(rows, kind)
    ratios = {seed: _ratios(table, seed) for seed in table}
    change: dict = {}
    moved, prices = [], []
    for seed, judged in ratios.items():
        seen = [of for s, of in ratios.items() if s != seed or not held_out]
        prices.append(price(seen))
        moved.append(0)
        for context, of in judged.items():
            means = {w: np.mean([one[context][w] for one in seen], axis=0) for w in of}
            own = max(means, key=lambda w, means=means: means[w][0] - prices[-1] * means[w][1])
            moved[-1] += own != str(SHIPPED)
            draw = context.split("/")[0], seed
            change.setdefault(draw, []).append((*of[own], of[own][0] - prices[-1] * of[own][1]))
    goodput, delay, gain = np.expm1([np.mean(v, axis=0) for v in change.values()]).T
    return {"gain": spread.mean(list(gain)), "goodput": spread.mean(list(goodput)), "delay": spread.mean(list(delay)),
            "contexts": len(next(iter(table.values()))), "moved": float(np.mean(moved)),
            "price": float(np.mean(prices))}


def said(figure: spread.Figure) -> str:
    return f"{100 * figure.value:+.1f} ± {100 * figure.half:.1f}"


def report(rows: list[dict]) -> str:
    """The tables in policies/rwnd-fair/README.md."""
    names = {str(t): f"{t / 1000:.1f} turns" for t in TARGETS if t != SHIPPED} | {TREE: "`+tree`"}
    lines = ["| against `+queue` at 1.1 turns | runs | throughput % | mean delay % | p95 % | congestion loss % |",
             "|---|--:|--:|--:|--:|--:|"]
    for variant, name in names.items():
        of = changes(rows, variant)
        if of["delay_mean_ms"]:
            lines.append(f"| {name} | {of['delay_mean_ms'].runs} | " + " | ".join(said(of[f]) for f in FIGURES) + " |")
    lines += ["", "| a wait for each | contexts | chosen on | other than 1.1 | mean delay % | goodput % |"
              " goodput % at equal delay |",
              "|---|--:|---|--:|--:|--:|--:|"]
    for kind, name in KINDS.items():
        for held_out, where in ((True, "other seeds"), (False, "the same runs")):
            of = bound(rows, kind, held_out)
            lines.append(f"| {name} | {of['contexts']} | {where} | {of['moved']:.1f} | {said(of['delay'])} |"
                         f" {said(of['goodput'])} | {said(of['gain'])} |")
    return "\n".join(lines)


def main() -> int:
    p = argparse.ArgumentParser(prog="lab/evaluate/targets", description=__doc__)
    p.add_argument("--iterations", type=int, default=3, help="seeds (3)")
    p.add_argument("--jobs", type=int, default=2, help="guests at a time (2)")
    p.add_argument("--from", dest="kept", type=pathlib.Path, metavar="FILE", help="play nothing: the tables of a file")
    p.add_argument("--out", type=pathlib.Path, help="write what was played there (results/targets.json holds ours)")
    p.add_argument("--report-only", action="store_true", help="play nothing: what was played before")
    p.add_argument("--build", type=pathlib.Path, default=play.BUILD)
    p.add_argument("--exporter", type=pathlib.Path, default=play.EXPORTER)
    args = p.parse_args()
    if args.kept:
        print(report(json.loads(args.kept.read_text())["cells"]))
        return 0
    build = args.build.resolve()
    how = play.Settings(exporter=play.snapshot(args.exporter.resolve(), build), policy=bundle.DEFAULT_POLICY,
                        build=build)
    play.kernel()
    seeds, failed = list(range(1, args.iterations + 1)), 0
    todo = [(play.Cell(SET, name, method, seed), settings) for seed in seeds
            for method, settings in variants(how).values() for name in SCENARIOS]
    todo = [] if args.report_only else [one for one in todo if not play.result(*one)]
    for (cell, _), _, error in pool.each(lambda one: play.play(*one), todo, args.jobs):
        print(f"{cell.name}: {error or 'played'}", file=sys.stderr, flush=True)
        failed += bool(error)
    rows = collect(how, seeds)
    if args.out:
        head = {"exporter": play.digest(how.exporter)[:12], "set": SET}
        args.out.write_text(json.dumps(head | {"cells": _rounded(rows)}, indent=None) + "\n")
    print(report(rows))
    return 1 if failed else 0


def _rounded(value):
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return round(value, 5) if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
