#!/usr/bin/env python3
"""Instructions and time of a decision: features, tree, window model. x86-64 by callgrind and the clock, big-endian MIPS by counting what qemu executes.
usage: decide.py BENCH_DECIDE BENCH_DECIDE_MIPS MIPS_RUN CAPTURE WORK_DIR RESULT.json"""
import os
import re
import statistics
import subprocess
import sys
import tempfile

from result import write

binary, mips_binary, mips_run, capture, work, result = sys.argv[1:7]
COMMAND = "make -C ap-exporter bench-decide"
PARTS = ("features", "tree", "window")
MIPS_BATCHES = "40"  # counting one by one is slow
#: of what runs between mark_begin() and mark_end(): a smaller log than that of the whole program
COUNTED = re.compile(r"(measured|mark)_\w+|feature_evaluate|tree_apply|window_predict|__u?(div|mod|mul)\w*|mem(cpy|set)|(?!feature_)\w+(\.\w+)*")


def output(arguments: list[str]) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: {' '.join(arguments)} failed:\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def x86_instructions() -> tuple[dict[str, float], int]:
    """(instructions of each part, a decision, and of a row; decisions). Features are evaluated in two passes, the models asked in the second."""
    log = f"{work}/callgrind.decide"
    text = output(["valgrind", "--tool=callgrind", f"--callgrind-out-file={log}", *(f"--toggle-collect=measured_{p}" for p in (*PARTS, "rows")), binary, capture, "1000000"])
    decisions, rows = map(int, re.search(r"decisions (\d+) rows (\d+)", text).groups())
    inclusive = output(["callgrind_annotate", "--inclusive=yes", "--threshold=100", log])
    total = {p: int(re.search(rf"^ *([\d,]+) .*:measured_{p} ", inclusive, re.M)[1].replace(",", "")) for p in (*PARTS, "rows")}
    return {"features": total["features"] / decisions / 2, "tree": total["tree"] / decisions, "window": total["window"] / decisions, "rows": total["rows"] / rows / 2}, decisions


def ranges() -> str:
    """Address ranges of COUNTED functions of feature.c and of what it calls."""
    own = {line.split()[-1] for line in output(["mips-linux-gnu-nm", "--defined-only", f"{work}/mips/feature.o"]).splitlines() if line.split()[-2] in "tT"}
    out = []
    for line in output(["mips-linux-gnu-nm", "-S", "--defined-only", mips_binary]).splitlines():
        words = line.split()
        if len(words) != 4 or words[2] not in "tT":
            continue
        name = words[3]
        if name in own and COUNTED.fullmatch(name) or re.fullmatch(r"(measured|mark)_[a-z]+|tree_apply|window_predict|__u?(div|mod|mul)\w*|mem(cpy|set)", name):
            start, size = int(words[0], 16), int(words[1], 16)
            out.append(f"{start:#x}..{start + size - 1:#x}")
    return ",".join(out)


def mips_instructions() -> dict[str, list[int]]:
    """Instructions of each part, a number a decision."""
    counts: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        fifo = f"{folder}/log"
        os.mkfifo(fifo)
        run = subprocess.Popen([*mips_run.split(), "-singlestep", "-d", "exec,nochain", "-dfilter", ranges(), "-D", fifo, mips_binary, capture, MIPS_BATCHES],
                               stdout=subprocess.PIPE, text=True)
        inside = n = 0
        with open(fifo) as log:
            for line in log:
                if line.endswith("mark_begin\n"):
                    inside, n = 1, 0
                elif line.endswith("mark_end\n"):
                    if inside:
                        counts.append(n)
                    inside = 0
                elif inside:
                    n += 1
        text = run.communicate()[0]
    decisions = int(re.search(r"decisions (\d+)", text)[1])
    if run.returncode or len(counts) != 4 * decisions:
        sys.exit(f"bench: {len(counts)} measured parts of {decisions} decisions under {mips_run}")
    measured = counts[decisions:]  # the first pass only collects vectors
    return {part: measured[i::3] for i, part in enumerate(PARTS)}


figures = []


def figure(name: str, value: float, unit: str, note: str) -> None:
    figures.append({"name": name, "value": value, "unit": unit, "command": COMMAND, "note": note})


times = [re.search(r"tree_ns ([\d.]+) window_ns ([\d.]+)", output([binary, capture])) for _ in range(5)]
figure("tree_evaluation", min(float(t[1]) for t in times), "ns", "complete tree of 255 nodes, vectors of the capture, CPU time, best of 5; budget 100")
figure("window_model_evaluation", round(min(float(t[2]) for t in times) / 1000, 2), "us", "100 complete trees of 127 nodes, CPU time, best of 5; budget 10")
x86, decisions = x86_instructions()
figure("decision_instructions", round(x86["features"] + x86["tree"]), "instructions",
       f"45 features evaluated and a 255-node tree walked, x86-64, average of {decisions} decisions of {os.path.basename(capture)}; budget 20000")
for part in PARTS:
    figure(f"decision_instructions_{part}", round(x86[part]), "instructions", "x86-64, average; the window model is asked only where it acts on a flow")
figure("feature_row_instructions", round(x86["rows"]), "instructions", "x86-64, average; a changed row on its way into the features, part of the tick's budget")
mips = mips_instructions()
for part in PARTS:
    figure(f"decision_instructions_{part}_mips", round(statistics.mean(mips[part])), "instructions",
           f"big-endian MIPS32r2, -Os, counted by qemu, average of the first {len(mips[part])} decisions")
write(result, figures)
