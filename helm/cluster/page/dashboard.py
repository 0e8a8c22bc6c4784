"""A dashboard's query on a real cluster, as Grafana and its plugin would ask it."""
import json
import sys
import tarfile
import time
from pathlib import Path

from installation import ROOT, Installation

sys.path.insert(0, str(ROOT / "observe" / "grafana" / "src"))

from oal_grafana import macros  # noqa: E402

RANGE_S = 900  # Grafana's, where nobody chose another


def board(chart: Path, uid: str) -> dict:
    """Out of a packed chart."""
    with tarfile.open(chart) as packed:
        return json.load(packed.extractfile(f"oal/files/grafana/dashboards/{uid}.json"))


def rows(oal: Installation, board: dict, title: str) -> list[dict]:
    """Of that panel of the board, with everything chosen, as Grafana's own user of ClickHouse."""
    now, chosen = int(time.time()), {}

    def ask(sql: str) -> list[dict]:
        sql = macros.expand(sql, chosen, now - RANGE_S, now, macros.interval_s(RANGE_S))
        return [json.loads(line) for line in oal.sql(f"{sql}\nFORMAT JSONEachRow", "grafana").splitlines()]

    for variable in board["templating"]["list"]:
        chosen[variable["name"]] = [value for row in ask(variable["query"]) for value in row.values()]
    (panel,) = [panel for panel in board["panels"] if panel["title"] == title]
    return ask(panel["targets"][0]["rawSql"])
