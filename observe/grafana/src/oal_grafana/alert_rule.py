"""An alert rule, in Grafana's provisioning format."""
from dataclasses import dataclass

from oal_grafana.sql import may_be_empty
from oal_grafana.target import ALERTS_UID, target_json

# Rules are evaluated now, so they say now(): Grafana replaces $NAME in provisioning files by its environment, and not
# every version spares the macros.
NOW_UTC = "now64(6, 'UTC')"


def views(minutes: int) -> str:
    return f"from = {NOW_UTC} - INTERVAL {minutes} MINUTE, to = {NOW_UTC}"


#: Where a text of a message leads to: Grafana's address, which ends with a slash.
GRAFANA = "{{ externalURL }}"

#: A field of a map that has no such key is nil, and "for nil" is an error in Grafana's log at each evaluation of a rule
#: that has no row; what `index` gives then is 0.
VALUE, VALUE_OR_0 = ".Values.A.Value", '(index .Values "A").Value'


@dataclass(frozen=True)
class Rule:
    """Rules about access points ask for those that are wrong only: ten thousand healthy ones must not be ten thousand
    alert instances.
    """

    uid: str
    title: str
    sql: str
    above: float | None  # one of the two is the bound
    below: float | None
    minutes: int  # that the query looks back
    lasts: str  # how long before it fires
    severity: str
    summary: str
    board: str
    panel: str  # title of the panel that shows it
    no_data: str = "OK"
    fails: str = "OK"  # what a query that cannot be asked is
    always: bool = False  # the query has rows of what is well too

    def json(self, panels: dict[tuple[str, str], int], runbooks: dict[str, str]) -> dict:
        """`panels` are ids by dashboard and title, `runbooks` the page of each alert in markdown. ValueError when the
        rule's panel or page is not there.
        """
        if (self.board, self.panel) not in panels:
            raise ValueError(f"{self.uid}: {self.board} has no panel {self.panel!r}; name the one that shows it")
        if self.uid not in runbooks:
            raise ValueError(f"docs/alerts.md has no heading `## {self.uid}`; write what to do when it fires")
        sql = self.sql if self.always else may_be_empty("nothing is wrong", self.sql)
        query = {**target_json(sql, True, uid=ALERTS_UID), "intervalMs": 60000, "maxDataPoints": 1000}
        kind, bound = ("gt", self.above) if self.above is not None else ("lt", self.below)
        expression = {"type": "__expr__", "uid": "__expr__"}
        page = f"oal-runbooks?viewPanel={panels['oal-runbooks', self.uid]}"
        window = {"from": self.minutes * 60, "to": 0}
        return {
            "uid": self.uid,
            "title": self.title,
            "condition": "C",
            "for": self.lasts,
            "noDataState": self.no_data,
            "execErrState": self.fails,
            "isPaused": False,
            "dashboardUid": self.board,
            "panelId": panels[self.board, self.panel],
            "labels": {"severity": self.severity, "platform": "oal", "board": self.board},
            "annotations": {
                "summary": self.summary.replace(VALUE, VALUE_OR_0), "description": first_steps(runbooks[self.uid]),
                "dashboard": f"{GRAFANA}d/{self.board}?viewPanel={panels[self.board, self.panel]}",
                # By these Grafana has the buttons "Go to dashboard" and "Go to panel", and the panel its alert's state.
                "__dashboardUid__": self.board, "__panelId__": str(panels[self.board, self.panel]),
                "runbook": f"{GRAFANA}d/{page}",
                # Of the button "View runbook", where Grafana expands neither a template nor its environment.
                "runbook_url": f"/d/{page}"
            },
            "data": [
                {"refId": "A", "relativeTimeRange": window, "datasourceUid": ALERTS_UID, "model": query},
                # No reduce step: the answer is a table, one number a row, its text columns the alert's labels.
                {
                    "refId": "C", "relativeTimeRange": window, "datasourceUid": "__expr__", "model": {
                        "refId": "C", "type": "threshold", "datasource": expression, "expression": "A", "conditions": [{
                            "type": "query", "evaluator": {"type": kind,
                                                           "params": [bound]}, "operator": {"type": "and"},
                            "query": {"params": ["C"]}, "reducer": {"type": "last", "params": []}
                        }]
                    }
                },
            ],
        }


def first_steps(page: str) -> str:
    """The paragraph after the first of an alert's page, as plain text: what to look at and do first."""
    return " ".join(page.split("\n\n")[1].split()).replace("`", "")
