"""The data that the tests and the samples of README.md are about: two minutes of three access points, on a fixed day.
"""

from __future__ import annotations

import generate

T0_US = 1_795_176_000_000_000  # 2026-11-20 12:00:00 UTC
BATCHES = 480  # of 252 ms: 121 seconds
APS = 3


def fill(query) -> None:
    """Insert it. `query` runs SQL in a migrated database."""
    for table, select in generate.selects(APS, T0_US, 0, BATCHES).items():
        query(f"INSERT INTO {table} {select}")
