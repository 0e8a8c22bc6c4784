#!/usr/bin/env python3
"""User-space instructions per tick at ten stations, by callgrind, from recorded kernel replies.
usage: tick.py BENCH_TICK WORK_DIR RESULT.json"""
import re
import subprocess
import sys

from result import write

binary, work, result = sys.argv[1:4]
figures = []
for packets_per_tick, note in (
    (6, "10 stations, 1 queue, 1500 packets/s: the operating point"),
    (1000, "10 stations, 1 queue, every packet of the recording"),
):
    out = f"{work}/callgrind.{packets_per_tick}"
    done = subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            "--toggle-collect=measured_tick",
            binary,
            str(packets_per_tick),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"bench: callgrind of {binary} failed:\n{done.stderr[-2000:]}")
    ticks, packets = map(int, re.search(r"ticks (\d+) packets (\d+)", done.stdout).groups())
    instructions = int(re.search(r"Collected : (\d+)", done.stderr)[1])
    figures.append(
        {
            "name": (
                f"exporter_instructions_per_tick_{packets_per_tick}_packets"
                if packets_per_tick < 1000
                else "exporter_instructions_per_tick_all_packets"
            ),
            "value": instructions // ticks,
            "unit": "instructions",
            "command": "make -C ap-exporter bench-tick",
            "note": f"{note}; {packets / ticks:.1f} packets/tick; budget 40000 with packets",
        }
    )
write(result, figures)
