#!/usr/bin/env python3
"""Instructions and time of a decision: features, tree, window model. x86-64 by callgrind and the clock, big-endian
MIPS by counting what qemu executes.
usage: decide.py BENCH_DECIDE BENCH_DECIDE_MIPS MIPS_RUN CAPTURE WORK_DIR RESULT.json"""

import os
import re
import statistics
import sys
from collections.abc import Callable

from counting import functions, marked, output, ranges
from result import write

binary, mips_binary, mips_run, capture, work, result = sys.argv[1:7]
COMMAND = "make -C ap-exporter bench-decide"
PARTS = ("features", "tree", "window")
MIPS_BATCHES = "40"  # counting one by one is slow
#: of what runs between mark_begin() and mark_end(): functions of the room feature/, and others
COUNTED = re.compile(
    r"(measured|mark)_\w+|feature_evaluate|tree_apply|sum_predict|__u?(div|mod|mul)\w*|mem(cpy|set)|"
    r"(?!feature_)\w+(\.\w+)*"
)
CALLED = re.compile(r"(measured|mark)_[a-z]+|tree_apply|sum_predict|__u?(div|mod|mul)\w*|mem(cpy|set)")


def x86_instructions() -> tuple[dict[str, float], int]:
    """(instructions of each part, a decision, and of a row; decisions). Features are evaluated in two passes, the
    models asked in the second."""
    log = f"{work}/callgrind.decide"
    text = output(
        [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={log}",
            *(f"--toggle-collect=measured_{p}" for p in (*PARTS, "rows")),
            binary,
            capture,
            "1000000",
        ]
    )
    decisions, rows = map(int, re.search(r"decisions (\d+) rows (\d+)", text).groups())
    inclusive = output(["callgrind_annotate", "--inclusive=yes", "--threshold=100", log])
    total = {
        p: int(re.search(rf"^ *([\d,]+) .*:measured_{p} ", inclusive, re.M)[1].replace(",", ""))
        for p in (*PARTS, "rows")
    }
    return {
        "features": total["features"] / decisions / 2,
        "tree": total["tree"] / decisions,
        "window": total["window"] / decisions,
        "rows": total["rows"] / rows / 2,
    }, decisions


def counted() -> Callable[[str], bool]:
    """Functions of the room feature/ and what they call, the models, and the marks."""
    own = functions(work, "feature/*")
    return lambda name: (name in own and COUNTED.fullmatch(name) or CALLED.fullmatch(name)) is not None


def mips_instructions() -> dict[str, list[int]]:
    """Instructions of each part, a number a decision."""
    counts, text = marked(mips_run, [mips_binary, capture, MIPS_BATCHES], ranges(mips_binary, counted()))
    decisions = int(re.search(r"decisions (\d+)", text)[1])
    if len(counts) != 4 * decisions:
        sys.exit(f"bench: {len(counts)} measured parts of {decisions} decisions under {mips_run}")
    measured = counts[decisions:]  # the first pass only collects vectors
    return {part: measured[i::3] for i, part in enumerate(PARTS)}


figures = []


def figure(name: str, value: float, unit: str, note: str) -> None:
    figures.append({"name": name, "value": value, "unit": unit, "command": COMMAND, "note": note})


times = [re.search(r"tree_ns ([\d.]+) window_ns ([\d.]+)", output([binary, capture])) for _ in range(5)]
figure(
    "tree_evaluation",
    min(float(t[1]) for t in times),
    "ns",
    "complete tree of 255 nodes, vectors of the capture, CPU time, best of 5; budget 100",
)
figure(
    "window_model_evaluation",
    round(min(float(t[2]) for t in times) / 1000, 2),
    "us",
    "100 complete trees of 127 nodes, CPU time, best of 5; budget 10",
)
x86, decisions = x86_instructions()
figure(
    "decision_instructions",
    round(x86["features"] + x86["tree"]),
    "instructions",
    f"all features evaluated and a 255-node tree walked, x86-64, average of {decisions} decisions of "
    f"{os.path.basename(capture)}; budget 30000",
)
for part in PARTS:
    figure(
        f"decision_instructions_{part}",
        round(x86[part]),
        "instructions",
        "x86-64, average; the window model is asked only where it acts on a flow",
    )
figure(
    "feature_row_instructions",
    round(x86["rows"]),
    "instructions",
    "x86-64, average; a changed row on its way into the features, part of the tick's budget",
)
mips = mips_instructions()
for part in PARTS:
    figure(f"decision_instructions_{part}_mips", round(statistics.mean(mips[part])), "instructions",
           f"big-endian MIPS32r2, -Os, counted by qemu, average of the first {len(mips[part])} decisions")
write(result, figures)
