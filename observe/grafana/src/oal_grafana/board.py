"""A dashboard: variables, links to the others, panels in order; and its JSON."""
import json

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as m

from oal_grafana.sql import APS, WORST_FIRST
from oal_grafana.target import source, target_json

SCHEMA_VERSION = 37  # of Grafana 9.3; newer ones take it over by themselves
TAG = "oal"
BOARDS = {
    "oal-arriving": "Is data arriving?", "oal-congested": "Where is it congested, and why?",
    "oal-model": "Is the model right?", "oal-control": "Is control helping or hurting?",
    "oal-platform": "Is the platform well?"
}

SITES = "SELECT DISTINCT site FROM oal.batch_1m WHERE $__timeFilter(t) ORDER BY site"
AP_IDS = (
    "SELECT DISTINCT ap_id FROM oal.batch_1m WHERE $__timeFilter(t) AND site IN (${site:singlequote}) ORDER BY ap_id"
)
#: The drill-down begins with the access point that has the largest share of Poor and Bad windows.
DETAIL = f"""SELECT ap_id FROM oal.label_1m WHERE $__timeFilter(t) AND {APS}
GROUP BY ap_id {WORST_FIRST} LIMIT 2000"""


def _variable(name: str, label: str, says: str, sql: str, many: bool) -> build.QueryVariable:
    made = build.QueryVariable(name).label(label).description(says).query(sql).datasource(
        source()).multi(many).include_all(many)
    made.refresh(m.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(m.VariableSort.DISABLED).regex("")
    return made.current(m.VariableOption(selected=True, text="All", value="$__all")) if many else made


def ap_variables(detail: bool) -> list[build.QueryVariable]:
    made = [_variable("site", "Site", "Sites that sent something in the time shown", SITES, True),
            _variable("ap", "Access point", "Access points of these sites", AP_IDS, True)]
    return [
        *made,
        _variable("detail", "In detail", "The access point of the lower half, the worst one first", DETAIL, False)
    ] if detail else made


def to_ap(uid: str, column: str = "ap_id") -> str:
    """URL of another dashboard about the access point of a table's row, with the same time."""
    value = f"${{__data.fields.{column}}}"
    return f"/d/{uid}?${{__url_time_range}}&${{site:queryparam}}&var-ap={value}&var-detail={value}"


class Board:
    def __init__(self, uid: str, says: str, time: str = "now-1h", refresh: str = "30s", variables=(), annotations=()):
        self.uid, self._annotations = uid, annotations
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

    def row(self, title: str) -> "Board":
        self._board.with_row(build.Row(title))
        return self

    def add(self, *panels) -> "Board":
        for panel in panels:
            self._board.with_panel(panel)
        return self

    def json(self) -> dict:
        made = json.loads(json.dumps(self._board.build(), cls=JSONEncoder))
        made["schemaVersion"] = SCHEMA_VERSION
        for variable in made["templating"]["list"]:
            for key in ("auto", "auto_min", "auto_count"):  # of interval variables; the SDK gives them to all
                variable.pop(key, None)
        for number, panel in enumerate(made["panels"], 1):
            panel["id"] = number
            if panel["type"] != "row":
                # The inspector shows the statement as it was sent, its answer and its time.
                panel["links"] = [{
                    "title": "SQL of this panel", "targetBlank": False,
                    "url": f"/d/{self.uid}?${{__url_time_range}}&${{__all_variables}}&inspect={number}&inspectTab=query"
                }]
        made["annotations"] = {
            "list": [{
                "name": name, "enable": on, "hide": False, "iconColor": colour, "datasource": source().to_json(),
                "target": target_json(sql, True, "Anno")
            } for name, on, colour, sql in self._annotations]
        }
        return made


def text(board: dict) -> str:
    """The file's content: sorted, so that a change shows as what it is."""
    return json.dumps(board, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
