"""Size of a signed bundle: a tree of 255 nodes fitted to recorded items, its feature program, and golden vectors from
the same items.

python bench/bundle_size.py        from model-registry/; writes ../build/bench/bundle-size.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
from sklearn.tree import DecisionTreeClassifier

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "model-registry" / "src"), str(ROOT / "schema" / "src")]

from oal_registry import compile as compiler  # noqa: E402
from oal_registry.programs import by_name  # noqa: E402
from oal_schema.bundle import Bundle, decode, encode, models_of, sign  # noqa: E402
from oal_schema.bundle_parts import program_columns, tree_columns  # noqa: E402
from oal_schema.bundle_wire import GOLDEN, PROGRAM, TREE, write  # noqa: E402
from oal_schema.golden_bundles import KEY  # noqa: E402
from oal_schema.tree import MISSING  # noqa: E402

ITEMS = ROOT / "lab" / "captures" / "learning.items.parquet"
RESULT = ROOT / "build" / "bench" / "bundle-size.json"
LIMIT_BYTES = 4096


def main() -> None:
    program = by_name()["congestion"]
    names = list(program.features)
    table = parquet.read_table(ITEMS, columns=[*names, "class"])
    x = np.stack(
        [table[n].combine_chunks().fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64) for n in names],
        axis=1,
    )
    model = DecisionTreeClassifier(max_leaf_nodes=128, random_state=0).fit(
        compiler.as_floats(x), table["class"].to_numpy()
    )
    tree = compiler.tree(model, program.feature_hash)
    payload = encode(
        Bundle(
            1_800_000_000_000_000,
            "ap/building-7-floor-3",
            "online",
            "congestion",
            12345,
            [bytes([7]) * 32],
            list(program.words),
            program.decision_interval_us,
            models_of(tree, golden=x),
        )
    )
    signed, made = sign(payload, KEY), decode(payload)
    golden = write(GOLDEN, {"features": made.golden.ravel(), "leaf": tree.apply(made.golden)})
    of_program = write(PROGRAM, program_columns(program.words, program.decision_interval_us))
    parts = (
        f"program {len(of_program)}, tree {len(write(TREE, tree_columns(tree)))},"
        f" {len(made.golden)} golden vectors {len(golden)}"
    )
    figure = {
        "name": "bundle_bytes",
        "value": len(signed),
        "unit": "B",
        "command": "make -C model-registry bench",
        "note": (
            f"signed, {tree.n_nodes} nodes fitted to {len(x)} recorded items, {len(program.words)} features; {parts} B;"
            f" budget {LIMIT_BYTES}"
        ),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps([figure], indent=1) + "\n")
    print(f"{figure['name']}: {figure['value']:,} {figure['unit']}  ({figure['note']})")


if __name__ == "__main__":
    main()
