"""Writes the table of options in README.md from what `build/ap-exporter options` prints: `make gen`.
--check: is README's table up to date?

The options are declared once, in src/base/config_options.c.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAD = "| section | option | default | range | meaning |\n|---|---|---|---|---|\n"
OPTION = re.compile(r"  (\w+) +('(?:[^']*)'|\(needed\)|\S+)(?:  \[([^\]]*)\])?(?:  (.*))?$")


def table(text: str) -> str:
    """Rows of Markdown for every option but `enabled`, which every section has."""
    rows, section = [], ""
    for line in text.splitlines():
        if found := re.match(r"config (\w+)", line):
            section = found[1]
        elif (found := OPTION.match(line)) and found[1] != "enabled":
            name, default, bounds, meaning = found.groups()
            rows.append(f"| `{section}` | `{name}` | {default} | {bounds or ''} | {meaning or ''} |\n")
    return "".join(rows)


def main(check: bool) -> int:
    """0, or 1 when `check` finds another table."""
    text = subprocess.run([HERE / "build/ap-exporter", "options"], capture_output=True, text=True, check=True).stdout
    readme = HERE / "README.md"
    old = readme.read_text(encoding="utf-8")
    start = old.index(HEAD) + len(HEAD)
    end = re.compile(r"^(?!\|)", re.M).search(old, start).start()
    new = old[:start] + table(text) + old[end:]
    if check and new != old:
        print("ap-exporter/README.md: the table of options is stale; `make -C ap-exporter gen` writes it",
              file=sys.stderr)
        return 1
    if new != old:
        readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
