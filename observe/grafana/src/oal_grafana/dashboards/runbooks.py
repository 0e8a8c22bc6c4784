"""What to do when an alert fires: docs/alerts.md, a panel a heading, so that an alert's link leads to it in every
installation.
"""
import re

from oal_grafana import panels as p
from oal_grafana.board import Board
from oal_grafana.queries import HOME

PAGE = HOME.parents[1] / "docs" / "alerts.md"


def pages() -> dict[str, str]:
    """Markdown by alert, of the headings that are an alert's uid."""
    parts = re.split(r"^## (oal-[\w-]+)\n", PAGE.read_text(), flags=re.M)[1:]
    return {
        uid: without_links(re.split(r"^# ", text, flags=re.M)[0].strip()) for uid, text in zip(parts[::2], parts[1::2])
    }


def without_links(markdown: str) -> str:
    """Links to other pages of docs/ lead nowhere in Grafana: where they lead is said instead."""
    return re.sub(r"\[([^\]]+)\]\((?![a-z]+:|/)([^)]+)\)", r"docs/\2", markdown)


def board():
    b = Board("oal-runbooks", "The page of each alert: what it means, what to look at first, what to do. The same text"
              " as docs/alerts.md.", annotations=())
    for uid, markdown in pages().items():
        b.add(p.prose(uid, markdown, size=(24, 6)))
    return b
