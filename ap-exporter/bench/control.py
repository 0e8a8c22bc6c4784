#!/usr/bin/env python3
"""Time and instructions of a step of the control law: 20 flows, all clamped. x86-64 by the clock and callgrind, big-endian MIPS by counting what qemu executes.
usage: control.py BENCH_CONTROL BENCH_CONTROL_MIPS MIPS_RUN WORK_DIR RESULT.json"""
import os
import re
import subprocess
import sys
import tempfile

from result import write

binary, mips_binary, mips_run, work, result = sys.argv[1:6]
COMMAND = "make -C ap-exporter bench-control"
STEPS, COUNTED_STEPS = 20000, 1000
#: of what runs in a step: the log of the whole program would be many times as long
OWN = ("control", "fair")
CALLED = r"__u?(div|mod|mul)\w*|mem(cpy|set|move)|measured_step|mark_\w+"


def output(arguments: list[str]) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: {' '.join(arguments)} failed:\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def x86_instructions() -> float:
    log = f"{work}/callgrind.control"
    text = output(["valgrind", "--tool=callgrind", f"--callgrind-out-file={log}", "--toggle-collect=measured_step", binary, str(COUNTED_STEPS)])
    return int(re.search(r"Collected : (\d+)", text)[1]) / COUNTED_STEPS


def ranges() -> str:
    """Address ranges of the functions of OWN and of CALLED."""
    own = {line.split()[-1] for unit in OWN for line in output(["mips-linux-gnu-nm", "--defined-only", f"{work}/mips/{unit}.o"]).splitlines() if line.split()[-2] in "tT"}
    out = []
    for line in output(["mips-linux-gnu-nm", "-S", "--defined-only", mips_binary]).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT" and (words[3] in own or re.fullmatch(CALLED, words[3])):
            start, size = int(words[0], 16), int(words[1], 16)
            out.append(f"{start:#x}..{start + size - 1:#x}")
    return ",".join(out)


def mips_instructions() -> float:
    counts: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        fifo = f"{folder}/log"
        os.mkfifo(fifo)
        run = subprocess.Popen([*mips_run.split(), "-singlestep", "-d", "exec,nochain", "-dfilter", ranges(), "-D", fifo, mips_binary, "60"], stdout=subprocess.PIPE, text=True)
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
        run.communicate()
    if run.returncode or len(counts) != 60:
        sys.exit(f"bench: {len(counts)} steps counted of 60 under {mips_run}")
    late = counts[30:]  # all flows are clamped by then
    return sum(late) / len(late)


times = [int(re.search(r"step_ns (\d+)", output([binary, str(STEPS)]))[1]) for _ in range(5)]
sets = re.search(r"sets_per_step ([\d.]+)", output([binary, str(STEPS)]))[1]
write(result, [
    {"name": "control_step", "value": min(times) / 1000, "unit": "us", "command": COMMAND, "note": f"20 flows, all clamped, {sets} windows set a step; CPU time, best of 5; without the setting itself"},
    {"name": "control_step_instructions", "value": round(x86_instructions()), "unit": "instructions", "command": COMMAND, "note": "the same, x86-64, by callgrind"},
    {"name": "control_step_instructions_mips", "value": round(mips_instructions()), "unit": "instructions", "command": COMMAND,
     "note": "the same, big-endian MIPS32r2, -Os, counted by qemu; one step every 20 ms by default"},
])
