"""The tree of the evaluation's bundle: fitted like any other on items of captures, kept as JSON with where it comes from beside it."""
import hashlib
import json
import pathlib
import subprocess
import sys

from oal_registry import compile as compiler
from oal_registry import json_tree, programs
from oal_training.batch import experiment, items, models, parquet, run

from . import bundle

EXPERIMENT = bundle.HERE.parent.parent / "training/experiments/tree.yaml"


def fit(files: list[pathlib.Path], output: pathlib.Path, notes: dict) -> None:
    """Judge and fit the experiment on items of files; write the tree and its provenance."""
    what = experiment.load(EXPERIMENT)
    found = items.concatenated([parquet.read(file) for file in files])
    parts, skipped = run.evaluate(found, what)
    tree = run.as_tree(run.fit(found, what))
    program = next(p for p in programs.known().values() if p.feature_hash == found.feature_hash)
    output.write_text(json_tree.dumps(compiler.tree(tree, found.feature_hash), program))
    known = {"items": len(found), "classes": {name: int((found.y == k).sum()) for k, name in enumerate(found.classes)}, "experiment": EXPERIMENT.name,
             "feature_program": program.hash.hex(), "figures": run.metrics(parts, what.model.kind), "skipped": skipped,
             "items_sha256": hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest(),
             "git": subprocess.run(["git", "describe", "--always", "--dirty"], cwd=bundle.HERE, capture_output=True, text=True).stdout.strip(), **notes}
    output.with_suffix(".provenance.json").write_text(json.dumps(known, indent=1) + "\n")
    print(json.dumps(known["figures"], indent=1))
