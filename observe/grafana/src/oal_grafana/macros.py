"""What Grafana and the ClickHouse plugin make of a query before it is sent.

Grafana itself (dashboards and variables, not alert rules) replaces `${name}` and `${name:format}`; then the plugin (3.3
and later) its macros. Both as documented; of each just what the dashboards use, and anything else is an error here:

    ${name:singlequote}   'a','b' with quotes escaped          $__timeFilter(c)    c >= toDateTime(FROM) AND c <=
                          toDateTime(TO)
    $__fromTime           toDateTime(FROM)                     $__timeInterval(c)  toStartOfInterval(toDateTime(c),
                          INTERVAL N second)
    $__toTime             toDateTime(TO)                       $__interval_s       N

FROM and TO are seconds since 1970. N is Grafana's interval: the range over the panel's width in points, rounded, at
least the panel's own minimum. The plugin finds a macro's argument with a pattern that does not nest, so an argument
must be a plain name.
"""
import re

#: The values that Grafana rounds an interval to, in seconds, with the upper bound of what is rounded to each.
_ROUNDED = ((1.5, 1), (3.5, 2), (7.5, 5), (12.5, 10), (17.5, 15), (25, 20), (45, 30), (90, 60), (210, 120), (450, 300),
            (750, 600), (1050, 900), (1500, 1200), (2700, 1800), (5400, 3600), (9000, 7200), (16200, 10800),
            (32400, 21600), (86400, 43200), (604800, 86400), (1814400, 604800))
POINTS = 600  # of a panel that is half a screen wide

_VARIABLE = re.compile(r"\$\{(\w+)(?::(\w+))?\}")
_MACRO = re.compile(r"\$__(\w+)(\()?(?(2)([^()]*)\))")
_NAME = re.compile(r"[A-Za-z_][\w.]*")


class MacroError(ValueError):
    """A query that Grafana or the plugin would not expand."""


def interval_s(span_s: float, finest_s: int = 60, points: int = POINTS) -> int:
    """Grafana's interval for a range."""
    wanted = span_s / points
    return max(next((value for bound, value in _ROUNDED if wanted < bound), 2592000), finest_s)


def seconds(text: str) -> int:
    """A panel's minimum interval, such as 10s or 1m."""
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[text[-1]]


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def variables(sql: str, values: dict[str, list[str]]) -> str:
    def replace(match: re.Match) -> str:
        name, form = match.groups()
        if name not in values:
            raise MacroError(f"there is no variable `{name}`")
        if form != "singlequote":
            raise MacroError(f"variable `{name}` without `:singlequote` would be put into the statement as it is")
        return ",".join(map(_quoted, values[name])) or "''"

    return _VARIABLE.sub(replace, sql)


def macros(sql: str, from_s: int, to_s: int, interval: int) -> str:
    def replace(match: re.Match) -> str:
        name, bracket, column = match.groups()
        if bracket and not _NAME.fullmatch(column):
            raise MacroError(f"the argument of $__{name} must be a plain name, not `{column}`")
        match name, bool(bracket):
            case "fromTime", False:
                return f"toDateTime({from_s})"
            case "toTime", False:
                return f"toDateTime({to_s})"
            case "interval_s", False:
                return str(interval)
            case "timeFilter", True:
                return f"{column} >= toDateTime({from_s}) AND {column} <= toDateTime({to_s})"
            case "timeInterval", True:
                return f"toStartOfInterval(toDateTime({column}), INTERVAL {interval} second)"
        raise MacroError(f"`{match.group(0)}` is no macro that the dashboards use")

    expanded = _MACRO.sub(replace, sql)
    if "$" in expanded:
        raise MacroError(f"something is left to expand: …{expanded[max(0, expanded.index('$') - 30):][:60]}…")
    return expanded


def expand(sql: str, values: dict[str, list[str]], from_s: int, to_s: int, interval: int) -> str:
    return macros(variables(sql, values), from_s, to_s, interval)
