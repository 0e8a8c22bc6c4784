"""What a run of the tests is judged by beside its suites: the ten slowest tests, and what was skipped.

usage: summary.py FOLDER SINCE ROOT     FOLDER has *.tsv (oal_report.py), SINCE is the run's start in seconds since
                                        1970.
Java's times come from the XML that Surefire wrote after SINCE. Every skip is printed. With CI=true the exit status is 1
when one of them is not in expected_skips.txt, so that a test which silently stops running is noticed.
"""

from __future__ import annotations

import os
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).resolve().parent
SLOWEST = 10


def lines(folder: Path) -> list[list[str]]:
    """[suite, test, seconds, outcome, reason] of every line in FOLDER."""
    out = []
    for path in sorted(folder.glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            if len(fields) == 5:
                out.append(fields)
    return out


def surefire(root: Path, since: float) -> list[list[str]]:
    """The same of the Java tests that ran after `since`."""
    out = []
    for path in (root / "stream-jobs/target/surefire-reports").glob("TEST-*.xml"):
        if path.stat().st_mtime < since:
            continue
        for case in ET.parse(path).getroot().iter("testcase"):
            name = f"{case.get('classname', '').removeprefix('oal.stream.')}.{case.get('name')}"
            skipped = case.find("skipped")
            reason = "" if skipped is None else skipped.get("message") or ""
            out.append(["stream-jobs", name, case.get("time", "0"), "ran" if skipped is None else "skipped", reason])
    return out


def expected() -> list[re.Pattern]:
    """Patterns of `SUITE TEST: REASON` that may be skipped."""
    text = (HERE / "expected_skips.txt").read_text(encoding="utf-8")
    return [re.compile(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]


def main(folder: str, since: str, root: str) -> int:
    """Prints slowest tests and skips. 1: CI, and a skip that was not expected."""
    every = lines(Path(folder)) + surefire(Path(root), float(since))
    ran = sorted((e for e in every if e[3] == "ran"), key=lambda e: -float(e[2]))
    if ran:
        print(f"\n== the {min(SLOWEST, len(ran))} slowest of {len(ran)} tests")
        for suite, test, seconds, _, _ in ran[:SLOWEST]:
            print(f"{float(seconds):7.1f} s  {suite}  {test}")
    skipped = [e for e in every if e[3] == "skipped"]
    known, surprises = expected(), 0
    for suite, test, _, _, reason in skipped:
        text = f"{suite} {test}: {reason}"
        surprise = not any(p.search(text) for p in known)
        surprises += surprise
        print(f"skipped{' (not expected)' if surprise else ''}: {text}")
    if surprises and os.environ.get("CI") == "true":
        print(f"{surprises} skips are not in tests/report/expected_skips.txt: FAILED", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
