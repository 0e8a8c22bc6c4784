"""A dashboard's query on a real cluster, as Grafana and its plugin would ask it."""
import json
import sys
import time

from installation import ROOT, Installation

sys.path.insert(0, str(ROOT / "observe" / "grafana" / "src"))

from oal_grafana.check import Asker  # noqa: E402
from oal_grafana.clickhouse import Answer  # noqa: E402
from oal_grafana.queries import boards, of_panel, panels_of  # noqa: E402


class AsGrafana:
    """ClickHouse, by Grafana's own user."""

    def __init__(self, oal: Installation):
        self.oal = oal

    def ask(self, sql: str) -> Answer:
        made = json.loads(self.oal.sql(f"{sql}\nFORMAT JSONCompact", "grafana"))
        return Answer([c["name"] for c in made["meta"]], [c["type"] for c in made["meta"]], made["data"], 0, 0)


def rows(oal: Installation, uid: str, title: str) -> list[dict]:
    """Of that panel, with everything chosen and Grafana's range of 15 minutes."""
    board, now = boards()[uid], int(time.time())
    (panel,) = [panel for panel in panels_of(board) if panel["title"] == title]
    asker = Asker(AsGrafana(oal), now - 900, now)
    answer = asker.answer(of_panel(board["title"], panel), asker.choose_all(board))
    return [dict(zip(answer.names, row, strict=True)) for row in answer.rows]
