"""A dashboard: variables, links to the others, panels in order; and its JSON."""
import json

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as m

from oal_grafana import panels
from oal_grafana.events import EVENTS
from oal_grafana.sql import APS, WORST_FIRST, may_be_empty
from oal_grafana.target import source, target_json

SCHEMA_VERSION = 37  # of Grafana 9.3; newer ones take it over by themselves
TAG = "oal"
HOME = "oal-home"
BOARDS = {
    HOME: "Is it well?", "oal-arriving": "Is data arriving?", "oal-congested": "Where is it congested, and why?",
    "oal-model": "Is the model right?", "oal-control": "Is control helping or hurting?",
    "oal-hosts": "How do hosts serve their clients?", "oal-platform": "Is the platform well?",
    "oal-runbooks": "What to do when an alert fires"
}

SITES = "SELECT DISTINCT site FROM oal.batch_1m WHERE $__timeFilter(t) ORDER BY site"
_SENT = "FROM oal.batch_1m WHERE $__timeFilter(t) AND site IN (${site:singlequote})"
AP_IDS = f"SELECT DISTINCT ap_id {_SENT} ORDER BY ap_id"
#: The drill-down begins with the access point that has the largest share of Poor and Bad windows.
DETAIL = f"""SELECT ap_id FROM oal.label_1m WHERE $__timeFilter(t) AND {APS}
GROUP BY ap_id {WORST_FIRST} LIMIT 2000"""

#: Band and channel of each access point of the chosen sites; one that has told of no radio is of band `none`.
_RADIOS = f"""(
  SELECT s.ap_id AS ap_id, multiIf(mhz = 0, 'none', mhz < 3000, '2.4 GHz', mhz < 5950, '5 GHz', '6 GHz') AS band,
    multiIf(mhz = 0, 0, mhz = 2484, 14, mhz < 3000, intDiv(mhz - 2407, 5), mhz < 5950, intDiv(mhz - 5000, 5),
      intDiv(mhz - 5950, 5)) AS number,
    if(mhz = 0, 'none', concat(toString(number), ' (', band, ')')) AS channel
  FROM (SELECT DISTINCT ap_id {_SENT}) AS s
  LEFT JOIN (SELECT DISTINCT ap_id, toInt32(frequency_mhz) AS mhz FROM oal.channel_1m WHERE $__timeFilter(t)) AS c
    ON s.ap_id = c.ap_id
)"""
BANDS = f"SELECT DISTINCT band FROM {_RADIOS} ORDER BY band"
CHANNELS = f"""SELECT channel FROM {_RADIOS} WHERE band IN (${{band:singlequote}})
GROUP BY band, number, channel ORDER BY band, number"""
AP_IDS_OF_CHANNELS = (
    f"SELECT DISTINCT ap_id FROM {_RADIOS} WHERE channel IN (${{channel:singlequote}}) ORDER BY ap_id"
)

NO_HOST = "no host has an agent"
#: What agents of hosts send, and nobody else.
HOST_IDS = may_be_empty(
    NO_HOST, """SELECT DISTINCT ap_id FROM (
  SELECT ap_id FROM oal.sender_tcp_1m WHERE $__timeFilter(t) UNION ALL
  SELECT ap_id FROM oal.sender_session_1m WHERE $__timeFilter(t)
) ORDER BY ap_id""")


def variable(name: str, label: str, says: str, sql: str, many: bool = True, hidden: bool = False):
    made = build.QueryVariable(name).label(label).description(says).query(sql).datasource(
        source()).multi(many).include_all(many)
    made.refresh(m.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(m.VariableSort.DISABLED).regex("")
    if hidden:
        made.hide(m.VariableHide.HIDE_VARIABLE)
    return made.current(m.VariableOption(selected=True, text="All", value="$__all")) if many else made


def ap_variables(hidden: bool = False) -> list[build.QueryVariable]:
    """Site and access point. Hidden, they only hand the choice on to the dashboard that is opened next."""
    return [
        variable("site", "Site", "Sites that sent something in the time shown", SITES, hidden=hidden),
        variable("ap", "Access point", "Access points of these sites", AP_IDS, hidden=hidden)
    ]


def host_variable(hidden: bool = False) -> build.QueryVariable:
    return variable("host", "Host", "Hosts whose agents sent rows of connections in the time shown", HOST_IDS,
                    hidden=hidden)


def radio_variables() -> list[build.QueryVariable]:
    """Site, band, channel, and the access points that these leave."""
    return [
        variable("site", "Site", "Sites that sent something in the time shown", SITES),
        variable("band", "Band", "Bands that radios of these sites were on; none: no radio was told of", BANDS),
        variable("channel", "Channel", "Channels of these bands that radios were on", CHANNELS),
        variable("ap", "Access point", "Access points of these sites with a radio on these channels",
                 AP_IDS_OF_CHANNELS)
    ]


def open_board(uid: str) -> str:
    """URL of another dashboard with the same time and choice."""
    return f"/d/{uid}?${{__url_time_range}}&${{__all_variables}}"


class Board:
    def __init__(self, uid: str, says: str, time: str = "now-1h", refresh: str = "30s", variables=(),
                 annotations=EVENTS):
        self.uid, self._annotations = uid, annotations
        self._panels: list[dict] = []  # a row is {"type": "row", …}; those after it are its
        self._board = build.Dashboard(BOARDS[uid]).uid(uid).description(says).tags([TAG]).editable().time(
            time, "now").refresh(refresh).timezone("browser")
        self._board.tooltip(m.DashboardCursorSync.CROSSHAIR).variables(list(variables))
        self._board.timepicker(build.TimePicker().refresh_intervals(["10s", "30s", "1m", "5m", "15m"]))
        for other, title in BOARDS.items():
            if other != uid:
                self._board.link(
                    build.DashboardLink(title).type(m.DashboardLinkType.LINK).url(f"/d/{other}").icon(
                        "dashboard").tooltip("with the same time and choice").include_vars(True).keep_time(
                            True).target_blank(False).as_dropdown(False).tags([]))

    def row(self, title: str, collapsed: bool = False) -> "Board":
        """Begins a row. A collapsed one asks ClickHouse nothing until it is opened."""
        self._panels.append({"type": "row", "title": title, "collapsed": collapsed, "panels": []})
        return self

    def add(self, *builders) -> "Board":
        self._panels += [json.loads(json.dumps(builder.build(), cls=JSONEncoder)) for builder in builders]
        return self

    def add_firing(self) -> "Board":
        """The alerts of this dashboard's question."""
        return self.add(
            panels.firing("Alerts of this question that fire", "Alerts that fire or are about to, and rules that cannot"
                          " be evaluated. Open one for what to do, or see *What to do when an alert fires*.",
                          f'{{board="{self.uid}"}}'))

    def json(self) -> dict:
        made = json.loads(json.dumps(self._board.build(), cls=JSONEncoder))
        made["schemaVersion"] = SCHEMA_VERSION
        # Grafana 12 knows these no more, and a style would be every reader's theme.
        for key in ("collapse", "enable", "time_options"):
            made["timepicker"].pop(key, None)
        made.pop("style", None)
        for choice in made["templating"]["list"]:
            # The SDK gives every variable the same id, by which Grafana 9 tells them apart; and all of them the
            # settings of interval variables.
            for key in ("id", "auto", "auto_min", "auto_count"):
                choice.pop(key, None)
        for number, panel in enumerate(self._panels, 1):
            panel["id"] = number
            self._finish(panel)
        made["panels"] = _laid_out(self._panels)
        made["annotations"] = {
            "list": [{
                "name": name, "enable": on, "hide": False, "iconColor": colour, "datasource": source().to_json(),
                "target": target_json(sql, True, "Anno")
            } for name, on, colour, sql in self._annotations]
        }
        return made

    def _finish(self, panel: dict) -> None:
        """What the SDK's builders have no word for."""
        if panel.get("targets"):
            # The inspector shows the statement as it was sent, its answer and its time.
            panel["links"] = [
                *panel.get("links", []), {
                    "title": "SQL of this panel", "targetBlank": False, "url":
                    f"/d/{self.uid}?${{__url_time_range}}&${{__all_variables}}&inspect={panel['id']}&inspectTab=query"
                }
            ]


def _laid_out(flat: list[dict]) -> list[dict]:
    """Panels from left to right and downwards; those of a collapsed row inside it, at the place that they get when it
    is opened.
    """
    made, row, below = [], None, 0
    x = y = height = 0
    for panel in flat:
        if panel["type"] == "row":
            y, x, height = (below if row and row["collapsed"] else y + height), 0, 0
            panel["gridPos"] = {"x": 0, "y": y, "w": 24, "h": 1}
            made.append(panel)
            row, y, below = panel, y + 1, y + 1
            continue
        size = panel["gridPos"]
        panel["gridPos"] = {"x": x, "y": y, "w": size["w"], "h": size["h"]}
        x, height = x + size["w"], max(height, size["h"])
        if x >= 24:
            x, y, height = 0, y + height, 0
        (row["panels"] if row and row["collapsed"] else made).append(panel)
    return made


def text(board: dict) -> str:
    """The file's content: sorted, so that a change shows as what it is."""
    return json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
