"""What several commands do alike with their arguments: read an instant, print a line of progress."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}  # of an age such as 90m


def instant(text: str) -> int:
    """Microseconds since 1970 of an ISO 8601 time or of an age."""
    if text[:-1].replace(".", "", 1).isdigit() and text[-1] in UNITS_S:
        return int((time.time() - float(text[:-1]) * UNITS_S[text[-1]]) * 1e6)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a time such as 2026-11-21T04:00:00 nor an age such as 90m"
        ) from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1e6)


def log(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)
