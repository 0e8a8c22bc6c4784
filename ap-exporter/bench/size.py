#!/usr/bin/env python3
"""Size of the stripped MIPS binary without librdkafka. usage: size.py BINARY RESULT.json; fails above the budget."""
import sys
from pathlib import Path

from result import write

BUDGET = 150 * 1024

size = Path(sys.argv[1]).stat().st_size
write(sys.argv[2], [{"name": "exporter_mips_binary", "value": size, "unit": "B", "command": "make -C ap-exporter size",
                     "note": f"big-endian MIPS32r2, MIPS16 code, -Os, --gc-sections, stripped, dynamic against libc, no librdkafka; budget {BUDGET}"}])
sys.exit(size > BUDGET)
