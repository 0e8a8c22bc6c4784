#!/usr/bin/env python3
"""Time of a packet in the marks' tc program. usage: mark.py BENCH_MARK BENCH_OBJECT RESULT.json"""
import subprocess
import sys

from result import write

NOTES = {
    "ect1": "ECT(1) to a marked station: state found, seal and deadline looked at, CE and IPv4's checksum written",
    "ect1_ipv6": "the same, IPv6",
    "ect0": "ECT(0) to a marked station: is it due? Most are not",
    "not_ect": "to a marked station, without ECT",
    "other_station": "to a station that is not marked",
}

binary, programs, result = sys.argv[1:4]
done = subprocess.run([binary, programs], capture_output=True, text=True)
if done.returncode:
    sys.exit(f"bench: {done.stderr.strip()}")
measured = dict(line.split() for line in done.stdout.splitlines())
write(
    result,
    [{
        "name": f"mark_bpf_{name}", "value": int(measured[name]), "unit": "ns",
        "command": "make -C ap-exporter bench-mark", "note": f"{note}; by BPF_PROG_TEST_RUN, less an empty program"
    } for name, note in NOTES.items()],
)
