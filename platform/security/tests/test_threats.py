"""The threat model names tests that are there."""
import re

import pytest
from conftest import REPO, ROOT

NAMED = re.findall(r"`([\w./-]+\.(?:py|go|c|java))(?:::(\w+))?`", (ROOT / "THREATS.md").read_text())


def test_every_threat_has_a_test():
    rows = [line for line in (ROOT / "THREATS.md").read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20 and all(
        re.search(r"`[\w./-]+\.(py|go|c|java)",
                  row.rpartition(" | ")[2] or row) for row in rows)


@pytest.mark.parametrize("file, name", NAMED, ids=lambda part: part or "file")
def test_the_named_test_is_there(file, name):
    text = (REPO / file).read_text()
    assert not name or re.search(rf"^(def|func) {name}\b", text, re.M), f"{file} has no {name}"
