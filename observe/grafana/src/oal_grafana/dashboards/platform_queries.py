"""What the rows of "Is the platform well?" share."""
from functools import partial

from oal_grafana import panels as p
from oal_grafana.sql import RANGE, last_of_range

LAST = last_of_range("10 MINUTE")  # the newest reading of each counts, also where Telegraf is late
TELEGRAF_AWAY = "no data: is Telegraf running?"

third = partial(p.series, size=(8, 7))  # of a screen


def series(view: str, select: str, group: str = "", where: str = "1") -> str:
    """A view's figures over the time shown: `select`, by `group`, of the rows that `where` leaves."""
    labels = f", {group}" if group else ""
    return (
        f"SELECT $__timeInterval(t) AS time{labels}, {select}\nFROM oal.v_platform_{view}({RANGE}) AS x WHERE {where}"
        f" GROUP BY time{labels} ORDER BY time{labels}"
    )
