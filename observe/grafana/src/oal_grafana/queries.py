"""Every query of the committed files: what Grafana will send, and what its answer must look like."""
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from oal_grafana import macros
from oal_grafana.target import TIME_SERIES

HOME = Path(__file__).resolve().parents[2]
DASHBOARDS = HOME / "dashboards"
RULES = HOME / "provisioning" / "alerting" / "rules.yaml"
_EMPTY = re.compile(r"\A-- may be empty: (.+)")


@dataclass(frozen=True)
class Query:
    board: str  # title of the dashboard or of the group of rules
    name: str  # of panel, variable, annotation or rule
    kind: str  # panel type, or variable, annotation, alert
    sql: str
    finest_s: int = 60  # shortest interval of a series
    span_s: int | None = None  # an alert rule has a range of its own
    is_series: bool = False

    @property
    def may_be_empty(self) -> str | None:
        """Why a healthy platform may have no rows for it."""
        found = _EMPTY.match(self.sql)
        return found.group(1) if found else None


def boards() -> dict[str, dict]:
    """Dashboards by uid."""
    return {
        board["uid"]: board for board in (json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json")))
    }


def panels_of(board: dict) -> Iterator[dict]:
    """Its panels but rows, those in collapsed rows too."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def of_panel(board: str, panel: dict) -> Query:
    """The one query of a panel that is no row; `board` is the dashboard's title."""
    (target,) = panel["targets"]
    return Query(board, panel["title"], panel["type"], target["rawSql"], macros.seconds(panel.get("interval") or "1m"),
                 None, target["format"] == TIME_SERIES)


def of_board(board: dict) -> Iterator[Query]:
    title = board["title"]
    for variable in board["templating"]["list"]:
        yield Query(title, variable["name"], "variable", variable["query"])
    for note in board["annotations"]["list"]:
        yield Query(title, note["name"], "annotation", note["target"]["rawSql"])
    for panel in panels_of(board):
        if panel.get("targets"):
            yield of_panel(title, panel)


def of_rules(document: dict) -> Iterator[Query]:
    for group in document["groups"]:
        for rule in group["rules"]:
            for part in rule["data"]:
                if "rawSql" in part["model"]:
                    yield Query(f"Alerts: {group['name']}", rule["title"], "alert", part["model"]["rawSql"], 60,
                                part["relativeTimeRange"]["from"], part["model"]["format"] == TIME_SERIES)


def everything() -> Iterator[Query]:
    for board in boards().values():
        yield from of_board(board)
    yield from of_rules(yaml.safe_load(RULES.read_text()))
