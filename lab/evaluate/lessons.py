"""What the online trainer would have shipped: lab/evaluate/lessons plays a scenario without control at earlier seeds,
makes items of each access point's capture as the platform does, gives them to the trainer's own code in their order,
and keeps the last tree that passed its gate (training/online.yaml), an access point each, in models/online.json. The
method `+oal-online` then acts with these trees.

The lab's time is virtual: push service and trainer cannot run beside its guests. So this is what they do at an access
point of whose past the trainer has SEEDS runs of 12 s, one after the other, and nothing in force that it could compare
with: a first tree must beat persistence. Left out: Kafka, push and its second of delay, trees that come within a run,
and items under control, which the trainer leaves out by itself."""
import argparse
import collections
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile

from oal_registry import json_tree, programs
from oal_schema import item
from oal_training.online import replay

from . import learned, methods, play, pool, scenarios, train

SEEDS = range(901, 907)  # neither those of `tune` nor those of `judge`
APART_US = 20_000_000  # a run begins so long after the one before: longer than it lasts


def in_order(found: list[item.Item], begun: dict[str, int]) -> list[item.Item]:
    """Items of runs as if the runs had followed each other, an access point each. Their AP is SCENARIO-METHOD-SEED, or
    that and its number; `begun`: first instant by seed.
    """
    out = []
    for one in found:
        run, ap = named(one.ap_id)
        at_us = (run - SEEDS[0] + 1) * APART_US + one.ts_us - begun[str(run)]
        out.append(dataclasses.replace(one, ap_id=ap, ts_us=at_us))
    return sorted(out, key=lambda one: (one.ap_id, one.ts_us))


def named(ap_id: str) -> tuple[int, str]:
    """(seed, number of the access point) of an AP's name."""
    parts = ap_id.split("-")
    return (int(parts[-1]), "0") if int(parts[-1]) in SEEDS else (int(parts[-2]), parts[-1])


def learn(found: list[item.Item]) -> dict:
    """The last tree that the trainer ships of these items, by access point, with what it decided on the way."""
    begun = {}
    for one in found:
        seed = str(named(one.ap_id)[0])
        begun[seed] = min(begun.get(seed, one.ts_us), one.ts_us)
    done = replay.run(in_order(found, begun))
    aps = sorted({named(one.ap_id)[1] for one in found})
    out: dict = {"items": len(found), "trees": dict.fromkeys(aps), "shipped": dict.fromkeys(aps, 0), "decisions": {}}
    for ap in aps:
        mine = [d for d in done.decisions if d.ap_id == ap]
        out["decisions"][ap] = dict(collections.Counter(d.reason for d in mine))
        for decision in (d for d in mine if d.shipped):
            program = next(p for p in programs.known().values() if p.feature_hash == decision.feature_hash)
            out["trees"][ap] = json.loads(json_tree.dumps(decision.tree, program))
            out["shipped"][ap] += 1
    return out


def items_of(captures: list[pathlib.Path], name: str) -> list[item.Item]:
    """Items of captures by the stream job's own code; kept for `peers`."""
    lines = kept_items(name)
    lines.parent.mkdir(exist_ok=True)
    with open(lines, "wb") as f:
        subprocess.run([play.ROOT / "stream-jobs/items", *captures], stdout=f, check=True)
    return list(item.lines(lines))


def kept_items(name: str) -> pathlib.Path:
    """Items of a context's lessons."""
    return play.BUILD / "lessons" / f"{name.replace('/', '-')}.jsonl"


def main() -> int:
    p = argparse.ArgumentParser(prog="lab/evaluate/lessons", description=__doc__)
    p.add_argument("--set", choices=scenarios.SETS, default="judge")
    p.add_argument("--scenario", action="append", help="only this one (several times: these)")
    p.add_argument("--method", action="append", help="baseline under which it learns (cubic-fq and cubic-fifo)")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--exporter", type=pathlib.Path, default=play.EXPORTER)
    p.add_argument("--output", type=pathlib.Path, default=learned.KEPT)
    args = p.parse_args()
    play.BUILD.mkdir(parents=True, exist_ok=True)
    play.kernel()
    exporter = play.snapshot(args.exporter.resolve())
    kept = learned.read(args.output)
    for scenario in args.scenario or scenarios.names(args.set):
        for name in args.method or ("cubic-fq", "cubic-fifo"):
            method = methods.to_play(name)
            with tempfile.TemporaryDirectory(prefix="lessons-", dir=play.BUILD) as work:
                folder = pathlib.Path(work)
                todo = [(args.set, scenario, method, seed, exporter, folder) for seed in SEEDS]
                captures = []
                for one, files, error in pool.each(train.capture, todo, args.jobs):
                    if error:
                        print(f"lessons: {scenario} with {name}, seed {one[3]}, failed: {error}", file=sys.stderr)
                        return 1
                    captures += files
                context = learned.context(args.set, scenario, method)
                known = learn(items_of(sorted(captures), context))
            kept["contexts"][context] = known
            kept |= {"seeds": [SEEDS[0], SEEDS[-1]], "exporter": play.digest(exporter)[:12]}
            args.output.write_text(json.dumps(kept, separators=(",", ":")) + "\n")
            print(f"{args.set}/{scenario}/{name}: {known['items']} items, trees shipped by access point"
                  f" {known['shipped']}, decisions {known['decisions']}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
