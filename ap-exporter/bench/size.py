#!/usr/bin/env python3
"""Sizes of the stripped MIPS binaries, without and with Kafka and agent. usage: size.py MINI FULL RESULT.json; fails
if MINI is above the budget."""

import sys
from pathlib import Path

from result import write

BUDGET = 150 * 1024
HOW = "big-endian MIPS32r2, MIPS16 code, -Os, -flto, --gc-sections, stripped, dynamic against libc"

mini, full = (Path(p).stat().st_size for p in sys.argv[1:3])
write(
    sys.argv[3],
    [
        {
            "name": "exporter_mips_binary",
            "value": mini,
            "unit": "B",
            "command": "make -C ap-exporter size",
            "note": f"{HOW}, no librdkafka, no agent; budget {BUDGET}",
        },
        {
            "name": "exporter_mips_binary_full",
            "value": full,
            "unit": "B",
            "command": "make -C ap-exporter size",
            "note": (
                f"{HOW}, with Kafka sink, agent and both backends of the rewrite; librdkafka, libcurl, libcrypto, "
                f"libbpf not counted"
            ),
        },
    ],
)
sys.exit(mini > BUDGET)
