"""The tree of the evaluation's bundle, from nothing: lab/evaluate/train plays the baselines of the set `tune` with the
exporter's capture, makes training items of the captures as the platform does, fits the experiment of training/ and
writes models/tree.json with where it comes from."""
import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from host import guest
from oal_registry import compile as compiler
from oal_registry import json_tree, programs
from oal_training.batch import experiment, run
from oal_training.stored import items, jsonl, parquet

from . import bundle, methods, play, pool, scenarios

ROOT = play.ROOT
EXPERIMENT = ROOT / "policies/rwnd-fair/experiment.yaml"
SET = "tune"  # what is judged is never learned from


def capture(work: tuple[str, str, methods.Method, int, pathlib.Path, pathlib.Path]) -> list[pathlib.Path]:
    """Play a baseline with the exporter; the captures of its access points. Each run has AP names of its own."""
    which, name, method, seed, exporter, folder = work
    label = f"{name}-{method.name}-{seed}"
    plan = scenarios.plan(scenarios.load(which, name), label, method, seed)
    plan["exporter"] = str(exporter)
    with tempfile.TemporaryDirectory(dir=folder) as run_folder:
        guest.play(plan, pathlib.Path(run_folder), timeout_s=play.TIMEOUT_S)
        made = sorted(pathlib.Path(run_folder).glob("*.oalcap"))
        return [pathlib.Path(shutil.move(file, folder / file.name)) for file in made]


def record(seeds: int, exporter: pathlib.Path, folder: pathlib.Path, jobs: int) -> list[pathlib.Path]:
    todo = [(SET, name, method, seed, exporter, folder) for seed in range(1, seeds + 1) for name in scenarios.names(SET)
            for method in methods.ALL if not method.act]
    made = []
    for work, files, error in pool.each(capture, todo, jobs):
        if error:
            raise SystemExit(f"evaluate: {work[1]} with {work[2].name} failed: {error}")
        made += files
        print(f"captured {len(made)} of {3 * len(todo)}", flush=True)
    return sorted(made)


def items_of(captures: list[pathlib.Path], output: pathlib.Path) -> None:
    """Training items of captures, made by the stream job's own code."""
    lines = output.with_suffix(".jsonl")
    with open(lines, "wb") as f:
        subprocess.run([ROOT / "stream-jobs/items", *captures], stdout=f, check=True)
    count, _ = jsonl.convert(lines, output, None)
    print(f"{count} items of {len(captures)} captures")


def fit(file: pathlib.Path, output: pathlib.Path, notes: dict) -> None:
    """Judge and fit the experiment on the items; write the tree and its provenance."""
    what = experiment.load(EXPERIMENT)
    found = items.concatenated([parquet.read(file)])
    parts, skipped = run.evaluate(found, what)
    tree = run.as_tree(run.fit(found, what))
    program = next(p for p in programs.known().values() if p.feature_hash == found.feature_hash)
    output.write_text(json_tree.dumps(compiler.tree(tree, found.feature_hash), program))
    known = {
        **notes, "items": len(found),
        "classes": {name: int((found.y == k).sum())
                    for k, name in enumerate(found.classes)}, "experiment": str(EXPERIMENT.relative_to(ROOT)),
        "items_sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "feature_program": program.hash.hex(),
        "figures": {name: round(value, 4) for name, value in run.mlflow_figures(parts, what.model.kind).items()
                    }, "skipped": skipped, "git": subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT,
                                                                 capture_output=True, text=True).stdout.strip()
    }
    output.with_suffix(".provenance.json").write_text(json.dumps(known, indent=1) + "\n")
    print(json.dumps(known["figures"], indent=1))


def main() -> int:
    p = argparse.ArgumentParser(prog="lab/evaluate/train", description=__doc__)
    p.add_argument("--seeds", type=int, default=2, help="runs of each scenario with each baseline (2)")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--exporter", type=pathlib.Path, default=play.EXPORTER)
    p.add_argument("--output", type=pathlib.Path, default=bundle.TREE)
    args = p.parse_args()
    play.BUILD.mkdir(parents=True, exist_ok=True)
    play.kernel()
    with tempfile.TemporaryDirectory(prefix="train-", dir=play.BUILD) as name:
        folder = pathlib.Path(name)
        captures = record(args.seeds, play.snapshot(args.exporter.resolve()), folder, args.jobs)
        items_of(captures, folder / "items.parquet")
        shutil.copy(folder / "items.parquet", play.BUILD / "tune.items.parquet")
    fit(
        play.BUILD / "tune.items.parquet", args.output, {
            "command": f"lab/evaluate/train --seeds {args.seeds}",
            "data": f"baselines of the set {SET}: {', '.join(scenarios.names(SET))}; seeds 1 to {args.seeds}"
        })
    return 0


if __name__ == "__main__":
    sys.exit(main())
