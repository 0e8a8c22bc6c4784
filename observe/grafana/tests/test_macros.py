"""The expander against the plugin's documented behaviour."""
import pytest
from oal_grafana import macros
from oal_grafana.macros import MacroError, expand, interval_s

FROM, TO = 1_795_176_000, 1_795_176_600


@pytest.mark.parametrize("sql, expanded", [
    ("SELECT $__fromTime, $__toTime", f"SELECT toDateTime({FROM}), toDateTime({TO})"),
    ("WHERE $__timeFilter(t)", f"WHERE t >= toDateTime({FROM}) AND t <= toDateTime({TO})"),
    ("SELECT $__timeInterval(x.ts) AS time", "SELECT toStartOfInterval(toDateTime(x.ts), INTERVAL 60 second) AS time"),
    ("WITH FILL STEP $__interval_s", "WITH FILL STEP 60"),
    ("a IN (${ap:singlequote})", "a IN ('ap-1','it\\'s')"),
    ("a IN (${none:singlequote})", "a IN ('')"),
])
def test_a_macro_becomes_what_the_plugin_sends(sql, expanded):
    assert expand(sql, {"ap": ["ap-1", "it's"], "none": []}, FROM, TO, 60) == expanded


@pytest.mark.parametrize("sql", [
    "$__timeFilter(max(t))", "$__timeInterval(a + b)", "$__interval_ms", "${ap}", "${other:singlequote}", "$ap",
    "$__timeFilter", "$__dateFilter(d)"
])
def test_what_grafana_or_the_plugin_would_not_expand_is_an_error(sql):
    with pytest.raises(MacroError):
        expand(sql, {"ap": ["x"]}, FROM, TO, 60)


@pytest.mark.parametrize("span_s, finest_s, expected", [(600, 1, 1), (3600, 1, 5), (3600, 60, 60), (6 * 3600, 60, 60),
                                                        (86400, 60, 120), (30 * 86400, 60, 3600)])
def test_the_interval_is_rounded_as_grafana_does(span_s, finest_s, expected):
    assert interval_s(span_s, finest_s) == expected


@pytest.mark.parametrize("text, expected", [("10s", 10), ("1m", 60), ("2h", 7200), ("1d", 86400)])
def test_a_minimum_interval_is_read(text, expected):
    assert macros.seconds(text) == expected
