"""The questions of README.md: number, title, query and the answer shown. The README is the one place where they are
written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
_BLOCK = re.compile(
    r"^### (?P<number>\d+)\. (?P<title>[^\n]+)\n.*?```sql\n(?P<sql>.*?)```\n(?:\n```text\n(?P<answer>.*?)```\n)?",
    re.S | re.M)


@dataclass(frozen=True)
class Question:
    number: int
    title: str
    sql: str
    answer: str | None
    span: tuple[int, int]

    def over(self, minutes: int) -> str:
        """The query for the last `minutes` instead of the range that the README shows."""
        return re.sub(r"from = '[^']*', to = '[^']*'", f"from = now() - {60 * minutes}, to = now()",
                      self.sql).rstrip().rstrip(";")


def load() -> list[Question]:
    text = README.read_text()
    return [Question(int(m["number"]), m["title"], m["sql"], m["answer"], m.span()) for m in _BLOCK.finditer(text)]
