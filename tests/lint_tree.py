"""Lengths of lines and files, of everything that git tracks: `make lint` runs it.

Code at most 120 columns (a tab is 8, in Go 4), production files at most 400 lines, a folder of ap-exporter/src at most
25 files. Prose in Markdown at most 100 columns, outside tables, code, headings and links that are longer themselves; a
cell of a table at most 300 characters.
Prints FILE:LINE of each that is longer; exit status 1 if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, PROSE, LINES, ROOM, CELL = 120, 100, 400, 25, 300
CODE = {".py", ".c", ".h", ".go", ".java", ".sh", ".mk", ".js", ".mjs", ".sql", ".proto", ".yaml", ".yml", ".toml",
        ".tpl"}
PRODUCTION = {".py", ".c", ".h", ".go", ".java", ".sh"}
#: Not lines that somebody writes and reads: what is generated, what has a checksum, what other programs lock or record.
NOT_OURS = re.compile(r"(^|/)generated/|(^|/)golden/|^clickhouse/migrations/|go\.sum$|package-lock\.json$|/captures/"
                      r"|/results/|/fuzz/corpus/|/tests/schema/|/tests/data/.*(?<!\.md)$|\.patch$"
                      r"|^observe/grafana/(dashboards|provisioning)/|values\.schema\.json$|^helm/oal/templates/"
                      r"|^helm/oal/README\.md$")
TEST = re.compile(r"(^|/)(tests?|fuzz|e2e|bench)/|_test\.go$|Test\.java$")


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [f for f in done.stdout.split("\0") if f and (ROOT / f).is_file() and not (ROOT / f).is_symlink()]


def is_code(path: Path, first: str) -> bool:
    return path.suffix in CODE or path.name in ("Makefile", "Dockerfile") or first.startswith("#!")


def long_prose(lines: list[str]) -> list[int]:
    """Numbers, from 1, of lines of Markdown that are too long."""
    out, fenced = [], False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith(("    ", "#", "![")):
            continue
        elif line.lstrip().startswith("|"):
            if any(len(re.sub(r"\]\([^)]*\)", "]", cell)) > CELL for cell in line.split("|")):
                out.append(number)
        elif len(line) > PROSE and len(line) - max(map(len, line.split())) > 20:
            out.append(number)
    return out


def faults(name: str) -> list[str]:
    """What is too long in one file."""
    path = ROOT / name
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    out = []
    if path.suffix == ".md":
        out += [f"{name}:{n}: prose above {PROSE} columns, or a cell above {CELL}" for n in long_prose(lines)]
    if not is_code(path, lines[0] if lines else ""):
        return out
    tab = 4 if path.suffix == ".go" else 8
    out += [f"{name}:{n}: above {COLUMNS} columns" for n, line in enumerate(lines, 1)
            if len(line.expandtabs(tab)) > COLUMNS]
    if path.suffix in PRODUCTION and len(lines) > LINES and not TEST.search(name):
        out.append(f"{name}: {len(lines)} lines, at most {LINES}")
    return out


def main() -> int:
    names = [f for f in tracked() if not NOT_OURS.search(f)]
    found = [fault for name in names for fault in faults(name)]
    rooms = Counter(str(Path(f).parent) for f in names if f.startswith("ap-exporter/src/") and f.endswith((".c", ".h")))
    found += [f"{room}: {n} files, at most {ROOM}" for room, n in sorted(rooms.items()) if n > ROOM]
    print("\n".join(found[:200]))
    if len(found) > 200:
        print(f"… and {len(found) - 200} more")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
