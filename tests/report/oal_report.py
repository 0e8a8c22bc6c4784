"""pytest plugin: each test's seconds and outcome as a line of $OAL_REPORT/PID.tsv, for tests/report/summary.py.

tests/run loads it into every suite by PYTEST_ADDOPTS. Without $OAL_REPORT it does nothing.
A line is SUITE, TEST, SECONDS, OUTCOME (passed, failed, skipped), REASON of a skip, separated by tabs.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = os.environ.get("OAL_REPORT")
_seconds: dict[str, float] = {}


def _line(*fields: object) -> str:
    return "\t".join(str(f).replace("\t", " ").replace("\n", " ") for f in fields) + "\n"


def _write(test: str, seconds: float, outcome: str, reason: str = "") -> None:
    suite = os.environ.get("OAL_SUITE", "?")
    with open(Path(FOLDER) / f"{os.getpid()}.tsv", "a", encoding="utf-8") as f:
        f.write(_line(suite, test, f"{seconds:.3f}", outcome, reason))


def _reason(report) -> str:
    text = report.longrepr
    return text[2] if isinstance(text, tuple) else str(text)


def pytest_runtest_logreport(report):
    """Adds up set-up, call and tear-down; writes the line when the last of them has ended."""
    if not FOLDER:
        return
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.skipped and not hasattr(report, "wasxfail"):
        _write(report.nodeid, 0.0, "skipped", _reason(report))
    if report.when == "teardown":
        _write(report.nodeid, _seconds.pop(report.nodeid), "ran")


def pytest_collectreport(report):
    """A module that skips itself while it is collected."""
    if FOLDER and report.skipped:
        _write(report.nodeid, 0.0, "skipped", _reason(report))
