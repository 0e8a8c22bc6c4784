"""An alert rule, in Grafana's provisioning format."""
from dataclasses import dataclass

from oal_grafana.sql import may_be_empty
from oal_grafana.target import ALERTS_UID, target_json

# Rules are evaluated now, so they say now(): Grafana replaces $NAME in provisioning files by its environment, and not
# every version spares the macros.
NOW_UTC = "now64(6, 'UTC')"


def views(minutes: int) -> str:
    return f"from = {NOW_UTC} - INTERVAL {minutes} MINUTE, to = {NOW_UTC}"


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
    do: str
    board: str
    no_data: str = "OK"
    always: bool = False  # the query has rows of what is well too

    def json(self) -> dict:
        sql = self.sql if self.always else may_be_empty("nothing is wrong", self.sql)
        query = {**target_json(sql, True, uid=ALERTS_UID), "intervalMs": 60000, "maxDataPoints": 1000}
        kind, bound = ("gt", self.above) if self.above is not None else ("lt", self.below)
        expression = {"type": "__expr__", "uid": "__expr__"}
        return {
            "uid": self.uid,
            "title": self.title,
            "condition": "C",
            "for": self.lasts,
            "noDataState": self.no_data,
            "execErrState": "Error",
            "isPaused": False,
            "labels": {"severity": self.severity, "platform": "oal"},
            "annotations": {
                "summary": self.summary, "description": f"{self.do} Dashboard: /d/{self.board}",
                "dashboard": f"/d/{self.board}"
            },
            "data": [
                {
                    "refId": "A", "relativeTimeRange": {"from": self.minutes * 60, "to": 0},
                    "datasourceUid": ALERTS_UID, "model": query
                },
                # No reduce step: the answer is a table, one number a row, its text columns the alert's labels.
                {
                    "refId": "C", "relativeTimeRange": {"from": self.minutes * 60, "to": 0},
                    "datasourceUid": "__expr__", "model": {
                        "refId": "C", "type": "threshold", "datasource": expression, "expression": "A", "conditions": [{
                            "type": "query", "evaluator": {"type": kind,
                                                           "params": [bound]}, "operator": {"type": "and"},
                            "query": {"params": ["C"]}, "reducer": {"type": "last", "params": []}
                        }]
                    }
                },
            ],
        }
