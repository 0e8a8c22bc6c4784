"""Parts of SQL that many panels share.

The plugin's macros give times as `toDateTime(seconds)`, which a view's parameter would take as text in the server's
time zone. So parameters get them as DateTime64 in UTC.
"""
import re

from oal_grafana.select_list import columns

FROM = "toDateTime64($__fromTime, 6, 'UTC')"
TO = "toDateTime64($__toTime, 6, 'UTC')"
RANGE = f"from = {FROM}, to = {TO}"

#: The access points that are chosen. The list holds those of the chosen sites, so that it says the site too.
APS = "ap_id IN (${ap:singlequote})"
#: The one access point of a drill-down.
ONE = "ap_id = ${detail:singlequote}"

#: Access points by their share of Poor and Bad windows (label_1m), the worst one first.
WORST_FIRST = "ORDER BY sum(poor + bad) / sum(windows) DESC, ap_id"
#: A loss ratio is Good below the first, Acceptable below the second, Poor below the third, Bad from there: settings
#: class_bounds_permille.
CLASS_BOUNDS = (0.01, 0.05, 0.12)
#: Why a record is refused because of who wrote it (dead_letter.reason).
FALSE_SENDER = "('unsigned', 'unknown_key', 'forged', 'revoked')"

_SPAN_S = "toUnixTimestamp($__toTime) - toUnixTimestamp($__fromTime)"
#: Whether the range is one of which rows per second are read.
SHORT = f"{_SPAN_S} <= 3600"
#: Begin and end of a range that reads nothing.
NEVER = "toDateTime64('2100-01-01 00:00:00', 6, 'UTC')"
RESOLUTION = (
    "-- Up to an hour from the rollup per second, beyond that from the one per minute. The branch that is not used has"
    " an empty range and reads nothing."
)


def known(count: str) -> str:
    """A count over rows that a healthy platform always has: without a row it is not 0 but unknown."""
    return f"if(count() = 0, NULL, {count})"


def may_be_empty(reason: str, sql: str) -> str:
    """A query that a healthy platform may have no rows for. `check` reads the reason out of the first line."""
    return f"-- may be empty: {reason}\n{sql.strip()}"


def with_holes(sql: str, labels: tuple[str, ...], to_the_end: bool = False) -> str:
    """A series in which an interval without rows is a row of NULL, of each set of labels: only where a NULL stands does
    a panel draw a hole. After the last row only with `to_the_end`; a query without rows stays without.
    """
    names = columns(sql)
    values = [name for name in names if name not in (*labels, "time")]
    notes = re.match(r"(--[^\n]*\n)*", sql).group(0)
    listed = ", ".join(("time", *labels, *(f"toNullable(q.`{name}`) AS `{name}`" for name in values)))
    fill = f"WITH FILL{' TO $__toTime' if to_the_end else ''} STEP $__interval_s"
    made = f"SELECT {listed} FROM (\n{sql[len(notes):].strip()}\n) AS q ORDER BY {', '.join((*labels, 'time'))} {fill}"
    if labels:
        made = f"SELECT * FROM (\n{made}\n) ORDER BY {', '.join(('time', *labels))}"
    return f"{notes}{made}"


def by_resolution(view: str, where: str, columns: str = "*") -> str:
    """Rows of v_{view}_1s up to an hour, of v_{view}_1m beyond."""
    def branch(suffix: str, condition: str) -> str:
        return (f"  SELECT {columns} FROM oal.v_{view}_{suffix}(from = if({condition}, {FROM}, {NEVER}),\n"
                f"    to = if({condition}, {TO}, {NEVER})) WHERE {where}")

    return f"(\n{branch('1s', SHORT)}\n  UNION ALL\n{branch('1m', f'{_SPAN_S} > 3600')}\n)"


def latest(minutes: int) -> str:
    """The last whole minutes of the range, of a rollup: what is so at its end, also when the range lies in the past."""
    return f"t > $__toTime - INTERVAL {minutes + 1} MINUTE AND t <= $__toTime"


def latest_raw(minutes: int) -> str:
    """The same of raw rows."""
    return f"ts > $__toTime - INTERVAL {minutes} MINUTE AND ts <= $__toTime"


def from_of_last(interval: str) -> str:
    """Where the last part of a range begins."""
    return f"greatest({FROM}, {TO} - INTERVAL {interval})"


def last_of_range(interval: str) -> str:
    """from and to of the last part of a range: a view of raw rows must not read a month of them."""
    return f"from = {from_of_last(interval)}, to = {TO}"


def rows_of_last(interval: str) -> str:
    """The same of a table of raw rows."""
    return f"ts >= {from_of_last(interval)} AND ts <= {TO}"
