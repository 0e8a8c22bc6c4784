"""Learned marks: what they are worth offline, and models for senders with the congestion control oal_ecn.

    lab/evaluate/learned-ecn [--jobs N]        plays the set `ecn` with plain CUBIC at earlier seeds, judges who marks
        best, seed by seed, and writes results/learned-ecn/offline.parquet, and models/learned-ecn.json
    lab/evaluate/learned-ecn --variants        plays and judges what ecn_variants.py has instead: several flows, and
        TXQs with FQ-CoDel; writes results/learned-ecn/variants.parquet
    lab/evaluate/learned-ecn --print           the tables of what was judged; plays and fits nothing

By time: fitted on the first half of a channel's runs, judged on the last part. Unseen: fitted on the other channels.
What is judged in the loop is played at other seeds."""
from __future__ import annotations

import argparse
import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import ecn_fit, ecn_samples, ecn_variants, play, pool, scenarios, sender_models, spread, table

RESULTS = pathlib.Path(__file__).with_name("results") / "learned-ecn"
SEEDS = range(901, 911)  # neither those of `tune` nor those that are judged
LOADS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
WHO = {"logarithmic": "K-means, logarithms", "exponential": "K-means, as published", "rtt": "round-trip threshold",
       "linear": "linear, taught by the queue", "majority": "what is usual", "always": "always"}


def load_of(seed: int) -> float:
    return LOADS[(seed - SEEDS[0]) % len(LOADS)]


def runs_of(name: str, seed: int) -> list[np.ndarray]:
    found = ecn_samples.sample((name, seed, load_of(seed)))
    return [found["greedy"], found["offered"]]


def parts(runs: list[np.ndarray], part: str) -> list[np.ndarray]:
    return [ecn_fit.within(run, part) for run in runs]


def split(own: list[np.ndarray], others: list[np.ndarray], tests: dict[str, slice], seed: int) -> list[dict]:
    """Rows by time, of which tests are parts of the runs, and of a fit on the other channels."""
    last = parts(own, "test")
    found = {"time": ecn_fit.judged(parts(own, "train"), parts(own, "validation"),
                                    {test: last[some] for test, some in tests.items()}, seed),
             "channel": ecn_fit.judged(parts(others, "train"), parts(others, "validation"), {"all": own}, seed)}
    return [{"split": of} | row for of, rows in found.items() for row in rows]


def others_than(name: str) -> list[str]:
    return [other for other in scenarios.names(ecn_samples.SET) if other != name]


def judge(work: tuple[str, int]) -> list[dict]:
    """Rows of a channel and seed."""
    name, seed = work
    others = [run for other in others_than(name) for run in runs_of(other, seed)]
    tests = {"all": slice(None), "greedy": slice(1), "offered": slice(1, None)}
    return [{"channel": name, "seed": seed, "load": load_of(seed)} | row
            for row in split(runs_of(name, seed), others, tests, seed)]


def judge_variant(work: tuple[str, str, int]) -> list[dict]:
    """The same of a variant."""
    which, name, seed = work
    own = ecn_variants.sample(work)
    others = [run for other in others_than(name) for run in ecn_variants.sample((which, other, seed))]
    return [{"variant": which, "channel": name, "seed": seed} | row
            for row in split(own, others, {"all": slice(None)}, seed)]


def models(name: str) -> dict:
    """Of a channel, from all seeds; a kernel has the latest two acknowledgements."""
    own = [run for seed in SEEDS for run in runs_of(name, seed)]
    train, validation = parts(own, "train"), parts(own, "validation")
    marks, chosen = ecn_fit.choose(train, validation, "logarithmic", 0, latest=(1, 2))
    at_us = ecn_fit.threshold(train, validation)
    return {"kmeans": chosen, "rtt_us": round(at_us), "models": {
        "kmeans": sender_models.pack_marks(marks.integers()),
        "rtt": sender_models.pack_marks(sender_models.mark_from(at_us))}}


def figure(values: list[float]) -> str:
    found = spread.mean(values)
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]" if found.runs > 1 else f"{found.value:.3f}"


def rows_of(kept: list[dict], split: str, channel: str, test: str = "all") -> list[dict]:
    return [row for row in kept if (row["split"], row["channel"], row["test"]) == (split, channel, test)]


def mean_of(kept: list[dict], split: str, who: str) -> str:
    """Of the channels' mean, over seeds."""
    each = [rows_of(kept, split, channel) for channel in sorted({row["channel"] for row in kept})]
    return figure([float(np.mean([row[who] for row in rows])) for rows in zip(*each)])


def tables(kept: list[dict]) -> dict[str, list[list[str]]]:
    """By heading: means over seeds with 95 % intervals."""
    channels = sorted({row["channel"] for row in kept})
    out = {}
    for heading, split in (("By time", "time"), ("On an unseen channel", "channel")):
        head = [["macro F1", *channels, "mean of channels", "less the threshold's"]]
        for who, said in WHO.items():
            each = [rows_of(kept, split, channel) for channel in channels]
            of_seed = [[row[who] for row in rows] for rows in zip(*each)]
            less = [float(np.mean([row[who] - row["rtt"] for row in rows])) for rows in zip(*each)]
            head.append([said, *(figure([row[who] for row in rows]) for rows in each),
                         figure([float(np.mean(values)) for values in of_seed]), figure(less)])
        out[heading] = head
    loads = [["offered", "runs", "half full", *WHO.values()]]
    some = [row for row in kept if row["split"] == "time"]
    of_load = {"all that it can": [row for row in some if row["test"] == "greedy"]} | {
        f"{100 * load:.0f} %": [row for row in some if row["test"] == "offered" and row["load"] == load]
        for load in LOADS}
    for load, rows in of_load.items():
        loads.append([load, str(len(rows)), *(f"{np.mean([row[key] for row in rows]):.2f}" for key in ("half", *WHO))])
    out["By what the sender offers (by time)"] = loads
    return out


def variant_means(kept: list[dict], which: str, of: str, who: str, less: str = "") -> list[float]:
    """The channels' mean of each seed; `less`: minus that of another who."""
    rows = [row for row in kept if (row["variant"], row["split"]) == (which, of)]
    return [float(np.mean([row[who] - (row[less] if less else 0) for row in rows if row["seed"] == seed]))
            for seed in sorted({row["seed"] for row in rows})]


def variant_tables(kept: list[dict]) -> dict[str, list[list[str]]]:
    """By heading: mean of channels, over seeds with 95 % intervals."""
    out = {}
    for heading, of in (("Beyond one flow and a FIFO, by time", "time"), ("The same on an unseen channel", "channel")):
        out[heading] = [["macro F1, mean of channels", "truth holds of", *WHO.values(), "K-means less the threshold's"]]
        for which, variant in ecn_variants.VARIANTS.items():
            half = np.mean([row["half"] for row in kept if (row["variant"], row["split"]) == (which, of)])
            out[heading].append([variant.said, f"{100 * half:.0f} %",
                                 *(figure(variant_means(kept, which, of, who)) for who in WHO),
                                 figure(variant_means(kept, which, of, "logarithmic", "rtt"))])
    return out


def text(found: dict[str, list[list[str]]]) -> str:
    return "\n".join(f"## {heading}\n\n{table.markdown(rows)}" for heading, rows in found.items())


def read(folder: pathlib.Path = RESULTS, name: str = "offline") -> list[dict]:
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def write(name: str, rows: dict, tabled) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([row for work in sorted(rows) for row in rows[work]]),
                   RESULTS / f"{name}.parquet", compression="zstd")
    (RESULTS / f"{name}.md").write_text(text(tabled(read(name=name))))


def of_each(what, todo: list, jobs: int) -> dict:
    out = {}
    for work, found, error in pool.each(what, todo, jobs):
        if error:
            raise SystemExit(f"evaluate: {work} failed: {error}")
        out[work] = found
        print(f"{what.__name__}: {len(out)} of {len(todo)}", flush=True)
    return out


def main() -> None:
    p = argparse.ArgumentParser(prog="lab/evaluate/learned-ecn", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2, help="guests or fits at once (2)")
    p.add_argument("--variants", action="store_true", help="several flows, and TXQs, instead")
    p.add_argument("--print", action="store_true", help="the tables of what was judged")
    args = p.parse_args()
    names = scenarios.names(ecn_samples.SET)
    if args.variants and not args.print:
        play.kernel()
        todo = [(which, name, seed) for which in ecn_variants.VARIANTS for seed in SEEDS for name in names]
        of_each(ecn_variants.sample, todo, args.jobs)
        write("variants", of_each(judge_variant, todo, args.jobs), variant_tables)
    elif not args.print:
        play.kernel()
        of_each(ecn_samples.sample, [(name, seed, load_of(seed)) for seed in SEEDS for name in names], args.jobs)
        made = of_each(models, names, args.jobs)
        sender_models.KEPT_MARKS.write_text(json.dumps({name: made[name] for name in names}, indent=1) + "\n")
        write("offline", of_each(judge, [(name, seed) for seed in SEEDS for name in names], args.jobs), tables)
    print(text(tables(read())))
    print(text(variant_tables(read(name="variants"))))


if __name__ == "__main__":
    main()
