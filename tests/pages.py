"""The commands in docs/: fenced blocks, each of which says what proves it.

    ```sh run                 test_docs.py runs it against the local platform
    ```sh needs=docker        cluster, docker, ap: nobody runs it here
    ```sh tested=PATH         the test, file or folder, that runs this very text
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: str
    line: int
    language: str
    says: str  # what stands behind the language
    text: str


def blocks() -> list[Block]:
    """Of every page, in their order."""
    return [
        Block(page.name, source[:found.start()].count("\n") + 1,
              *(part.strip() if i < 2 else part for i, part in enumerate(found.groups()))) for page in PAGES
        for source in [page.read_text()] for found in FENCE.finditer(source)
    ]


def commands(page: str, proved_by: str) -> list[str]:
    """The texts of a page's blocks that name this test, top to bottom: run them as one shell, one after the other."""
    return [block.text for block in blocks() if block.page == page and block.says == f"tested={proved_by}"]
