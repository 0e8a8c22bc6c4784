#!/usr/bin/env python3
"""Time of a packet in the tap. usage: tap.py BENCH_TAP BENCH_OBJECT RESULT.json"""
import subprocess
import sys

from result import write

RUN = "by BPF_PROG_TEST_RUN, less an empty program; without the call of tc itself, cache misses of a real packet and "\
      "two processors at one ring"
READ = "in user space, the ring still in the cache; without the tick around it"
NOTES = {
    "ack_up": f"IPv4, timestamps: parsed, 66 bytes copied into the ring; {RUN}",
    "ack_up_of_a_counted_station": f"the same, and its station's bytes counted; {RUN}",
    "data_down": f"1400 bytes of payload, of which none is copied; {RUN}",
    "other_packet": f"UDP: counted, not copied; {RUN}",
    "read": f"out of the ring, handed over; {READ}",
    "read_and_parsed": f"the same, and parsed; {READ}",
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
            "name": f"tap_bpf_{name}",
            "value": measured[name],
            "unit": "ns",
            "command": "make -C ap-exporter bench-tap",
            "note": note,
        }
        for name, note in NOTES.items()
    ],
)
