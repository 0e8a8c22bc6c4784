#!/usr/bin/env python3
"""Time and instructions of a step of the control law: 20 flows, all clamped. x86-64 by the clock and callgrind,
big-endian MIPS by counting what qemu executes.
usage: control.py BENCH_CONTROL BENCH_CONTROL_MIPS MIPS_RUN WORK_DIR RESULT.json"""

import re
import sys

from counting import functions, marked, output, ranges
from result import write

binary, mips_binary, mips_run, work, result = sys.argv[1:6]
COMMAND = "make -C ap-exporter bench-control"
STEPS, COUNTED_STEPS = 20000, 1000
LATE = 30  # steps counted on MIPS, after as many in which the last flows are clamped
#: of what runs in a step
OWN = tuple(
    f"control/{name}"
    for name in ("control", "control_measure", "control_windows", "guard", "law_fair_window", "fair")
)
CALLED = r"__u?(div|mod|mul)\w*|mem(cpy|set|move)|measured_step|mark_\w+"


def x86_instructions() -> float:
    log = f"{work}/callgrind.control"
    text = output(
        [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={log}",
            "--toggle-collect=measured_step",
            binary,
            str(COUNTED_STEPS),
        ]
    )
    return int(re.search(r"Collected : (\d+)", text)[1]) / COUNTED_STEPS


def mips_instructions(*arguments: str) -> float:
    own = functions(work, *OWN)
    counts, _ = marked(
        mips_run,
        [mips_binary, str(2 * LATE), *arguments],
        ranges(mips_binary, lambda name: name in own or re.fullmatch(CALLED, name) is not None),
    )
    if len(counts) != 2 * LATE:
        sys.exit(f"bench: {len(counts)} steps counted of {2 * LATE} under {mips_run}")
    return sum(counts[LATE:]) / LATE


times = [int(re.search(r"step_ns (\d+)", output([binary, str(STEPS)]))[1]) for _ in range(5)]
sets = re.search(r"sets_per_step ([\d.]+)", output([binary, str(STEPS)]))[1]
write(
    result,
    [
        {
            "name": "control_step",
            "value": min(times) / 1000,
            "unit": "us",
            "command": COMMAND,
            "note": (
                f"20 flows, all clamped, {sets} windows set a step; CPU time, best of 5; without the setting "
                f"itself"
            ),
        },
        {
            "name": "control_step_instructions",
            "value": round(x86_instructions()),
            "unit": "instructions",
            "command": COMMAND,
            "note": "the same, x86-64, by callgrind",
        },
        {
            "name": "control_step_instructions_mips",
            "value": round(mips_instructions()),
            "unit": "instructions",
            "command": COMMAND,
            "note": "the same, big-endian MIPS32r2, -Os, counted by qemu; one step every 20 ms by default",
        },
        {
            "name": "control_step_instructions_mips_following",
            "value": round(mips_instructions("20", "1000")),
            "unit": "instructions",
            "command": COMMAND,
            "note": "the same with link_follow_permille 1000, every PHY rate another one at each step",
        },
    ],
)
