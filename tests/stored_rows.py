"""Rows of ClickHouse's tables, each as a number, so that what a version left can be looked for in the next."""

from __future__ import annotations


def tables(platform) -> list[str]:
    """Those whose rows stay as they were inserted: rollups are merged."""
    return platform.clickhouse.query(
        "SELECT name FROM system.tables WHERE database = 'oal' AND engine LIKE '%MergeTree' AND engine NOT LIKE"
        " '%Aggregating%' AND engine NOT LIKE '%Summing%' AND name NOT LIKE 'schema_%'").split()


def columns(platform, table: str) -> list[str]:
    kinds = "('ALIAS', 'EPHEMERAL', 'MATERIALIZED')"
    return platform.clickhouse.query(f"SELECT name FROM system.columns WHERE database = 'oal' AND table = '{table}'"
                                     f" AND default_kind NOT IN {kinds} ORDER BY position").split()


def rows(platform, table: str, of: list[str]) -> list[str]:
    """A number of each row of the table or view, by these columns."""
    values = ", ".join(f"ifNull(toString({column}), '')" for column in of)
    return platform.clickhouse.query(f"SELECT cityHash64({values}) FROM oal.{table}").split()
