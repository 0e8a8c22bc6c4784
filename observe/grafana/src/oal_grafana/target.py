"""A query of the ClickHouse plugin. The SDK has no type for it, so this is one of its custom queries."""
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.dashboard import DataSourceRef

PLUGIN = "grafana-clickhouse-datasource"
SOURCE_UID = "oal-clickhouse"
#: Alert rules ask as a user of their own, whose quota no dashboard uses up.
ALERTS_UID = "oal-clickhouse-alerts"
TIME_SERIES, TABLE = 0, 1


def source(uid: str = SOURCE_UID) -> DataSourceRef:
    return DataSourceRef(type_val=PLUGIN, uid=uid)


def target_json(sql: str, table: bool, ref: str = "A", uid: str = SOURCE_UID) -> dict:
    """`queryType` is what plugin 3 reads; plugin 4 knows such a target as one of version 3 and takes it over;
    `editorType` is its own.
    """
    return {
        "datasource": source(uid).to_json(), "refId": ref, "queryType": "sql", "editorType": "sql",
        "format": TABLE if table else TIME_SERIES, "rawSql": sql.strip()
    }


class _Query(Dataquery):
    def __init__(self, content: dict):
        self.content = content

    def to_json(self) -> dict:
        return self.content


class Target(Builder[Dataquery]):
    """The one query of a panel."""

    def __init__(self, sql: str, table: bool):
        self._query = _Query(target_json(sql, table))

    def build(self) -> Dataquery:
        return self._query
