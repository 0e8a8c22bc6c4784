#!/usr/bin/env python3
"""Time of a packet in the tc programs. usage: rwnd.py BENCH_RWND BENCH_OBJECT RESULT.json"""
import subprocess
import sys

from result import write

NOTES = {
    "clamped_ack": "IPv4, timestamps: parsed, flow found, deadline read, window and checksum rewritten",
    "clamped_ack_ipv6": "the same, IPv6",
    "clamped_ack_qinq": "the same, IPv4 behind two VLAN tags",
    "ack_below": "of a clamped flow, its window is low enough already",
    "ack_of_another_flow": "parsed, flow not found",
    "clamped_ack_down": "as clamped_ack, on its way to a client",
    "clamped_ack_down_ipv6": "the same, IPv6",
    "data_down": "a data packet on its way to a client: parsed, flow not found",
}

binary, programs, result = sys.argv[1:4]
done = subprocess.run([binary, programs], capture_output=True, text=True)
if done.returncode:
    sys.exit(f"bench: {done.stderr.strip()}")
measured = {name: int(ns) for name, ns in (line.split() for line in done.stdout.splitlines())}
write(
    result,
    [
        {
            "name": f"rwnd_bpf_{name}",
            "value": measured[name],
            "unit": "ns",
            "command": "make -C ap-exporter bench-rwnd",
            "note": f"{note}; by BPF_PROG_TEST_RUN, less an empty program",
        }
        for name, note in NOTES.items()
    ],
)
