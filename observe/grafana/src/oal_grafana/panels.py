"""Panels of the kinds that the dashboards use, each with what every panel must have: a unit, a description that says
what to do, a query.
"""
import re

from grafana_foundation_sdk.builders import barchart, common, gauge, heatmap, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import barchart as _  # noqa: F401  registers the options' types
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as m
from grafana_foundation_sdk.models import heatmap as heat

from oal_grafana import columns
from oal_grafana.colours import ALARM, CLASS_NAMES, CLASSES, OK, PLAIN, WARN
from oal_grafana.select_list import columns as columns_of
from oal_grafana.sql import with_holes
from oal_grafana.target import Target, source

CLASS_MAPPING = [
    m.ValueMap(
        options={
            str(i): m.ValueMappingResult(text=name, color=colour, index=i)
            for i, (name, colour) in enumerate(zip(CLASS_NAMES, CLASSES))
        })
]
NO_DATA = "no data"
BY_THRESHOLD, BY_SERIES = (build.FieldColor().mode(mode)
                           for mode in (m.FieldColorModeId.THRESHOLDS, m.FieldColorModeId.PALETTE_CLASSIC))
LEGEND = common.VizLegendOptions().display_mode(c.LegendDisplayMode.LIST).placement(
    c.LegendPlacement.BOTTOM).show_legend(True).calcs([])
#: Of long names: beside the lines, where they take no height from them.
LEGEND_AT_RIGHT = common.VizLegendOptions().display_mode(c.LegendDisplayMode.LIST).placement(
    c.LegendPlacement.RIGHT).show_legend(True).calcs([])


def nothing_is_grey(text: str, match=m.SpecialValueMatch.NULL_AND_NAN) -> m.SpecialValueMap:
    """What is missing is no verdict, so it has no verdict's colour."""
    return m.SpecialValueMap(
        options=m.DashboardSpecialValueMapOptions(match=match, result=m.ValueMappingResult(
            text=text, color=PLAIN, index=99)))


def _grey_where_names_are(panel, text: str) -> None:
    """Grafana 9 takes every text that is no number for NaN: with one mapping for all, names would be "no data"."""
    panel.mappings([nothing_is_grey(text, m.SpecialValueMatch.NULL), nothing_is_grey(text, m.SpecialValueMatch.EMPTY)])
    panel.override_by_field_type("number", [m.DynamicConfigValue(id_val="mappings", value=[nothing_is_grey(text)])])


def steps(*bounds: tuple[float | None, str]) -> build.ThresholdsConfig:
    """Thresholds: (None, colour), (from, colour), …"""
    return build.ThresholdsConfig().mode(m.ThresholdsMode.ABSOLUTE).steps(
        [m.Threshold(value=value, color=colour) for value, colour in bounds])


def rising(warn: float, alarm: float) -> build.ThresholdsConfig:
    """More is worse."""
    return steps((None, OK), (warn, WARN), (alarm, ALARM))


def rising_from_0(warn: float, alarm: float) -> build.ThresholdsConfig:
    """The same of an age: one below 0 is a clock that is off."""
    return steps((None, WARN), (0, OK), (warn, WARN), (alarm, ALARM))


def falling(alarm: float, warn: float) -> build.ThresholdsConfig:
    """Less is worse: below `alarm` bad, below `warn` doubtful."""
    return steps((None, ALARM), (alarm, WARN), (warn, OK))


def plain() -> build.ThresholdsConfig:
    return steps((None, PLAIN))


def _common(panel, title: str, says: str, sql: str, as_table: bool, size: tuple[int, int]):
    return panel.title(title).description(says).datasource(source()).span(size[0]).height(size[1]).with_target(
        Target(sql, as_table))


def _tooltip(mode: c.TooltipDisplayMode, sort: c.SortOrder = c.SortOrder.NONE) -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(mode).sort(sort)


def number(title: str, says: str, sql: str, unit: str, thresholds=None, size=(4, 4), decimals: float | None = None,
           per_row: bool = False, if_null: str = NO_DATA):
    """One figure, or with `per_row` one for each row, named by its text column. `if_null` is shown for a NULL, and by
    Grafana also without an answer, as when ClickHouse is away: it must not claim more than that nothing is known.
    """
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"])
    reduce = reduce.values(True).limit(8) if per_row else reduce.values(False)
    panel = _common(stat.Panel(), title, says, sql, True, size)
    panel.unit(unit).thresholds(thresholds or plain()).color_scheme(BY_THRESHOLD).no_value(NO_DATA)
    if per_row:
        _grey_where_names_are(panel, if_null)
    else:
        panel.mappings([nothing_is_grey(if_null)])
    panel.reduce_options(reduce).graph_mode(c.BigValueGraphMode.NONE).color_mode(c.BigValueColorMode.VALUE)
    panel.text_mode(c.BigValueTextMode.VALUE_AND_NAME if per_row else c.BigValueTextMode.VALUE).justify_mode(
        c.BigValueJustifyMode.AUTO)
    return panel.decimals(decimals) if decimals is not None else panel


def dial(title: str, says: str, sql: str, unit: str, thresholds, least: float, most: float, size=(4, 4)):
    """A figure between two known ends."""
    panel = _common(gauge.Panel(), title, says, sql, True, size)
    panel.unit(unit).min(least).max(most).thresholds(thresholds).color_scheme(BY_THRESHOLD)
    panel.no_value(NO_DATA).mappings([nothing_is_grey(NO_DATA)])
    return panel.reduce_options(common.ReduceDataOptions().calcs(
        ["lastNotNull"]).values(False)).show_threshold_markers(True).show_threshold_labels(False)


def series(title: str, says: str, sql: str, unit: str, axis: str, size=(12, 8), colours: dict[str, str] | None = None,
           stack: bool = False, percent: bool = False, bars: bool = False, name: str | None = None,
           least: float | None = 0, most: float | None = None, finest: str = "1m",
           right: dict[str, tuple[str, str]] | None = None, long_names: bool = False,
           whole: bool = True):
    """Lines over time. `name` is the legend's text, such as `${__field.labels.ap_id}`; `finest` the shortest interval
    that the data have; `right` has unit and axis of figures of another kind, which get the axis at the right; not
    `whole`: the figures are of the order of hundredths.
    """
    panel = _common(timeseries.Panel(), title, says, with_holes(sql, _labels(name)), False, size)
    panel.unit(unit).axis_label(axis).interval(finest).color_scheme(BY_SERIES)
    panel.line_width(1).fill_opacity(80 if stack or bars else 8).show_points(
        c.VisibilityMode.AUTO).draw_style(c.GraphDrawStyle.BARS if bars else c.GraphDrawStyle.LINE)
    panel.span_nulls(180_000)  # a gap is a gap: bridged up to three minutes only
    panel.legend(LEGEND_AT_RIGHT if long_names else LEGEND)
    panel.tooltip(_tooltip(c.TooltipDisplayMode.MULTI, c.SortOrder.DESCENDING))
    if stack:
        panel.stacking(common.StackingConfig().mode(c.StackingMode.PERCENT if percent else c.StackingMode.NORMAL).group(
            "A")).line_width(0)
    if name:
        panel.display_name(name)
    if least is not None:
        panel.min(least)
    if most is not None:
        panel.max(most)
    if unit in ("none", "count:/s") and whole:
        panel.axis_soft_max(1)  # of nothing but zeros Grafana makes an axis to 100
    for field, (its_unit, its_axis) in (right or {}).items():
        panel.override_by_name(field, [
            m.DynamicConfigValue(id_val=key, value=value)
            for key, value in (("unit", its_unit), ("custom.axisPlacement", "right"), ("custom.axisLabel", its_axis),
                               ("custom.axisSoftMax", 1))
        ])
    return _coloured(panel, colours)


def _labels(name: str | None) -> tuple[str, ...]:
    """The labels that a legend's text names."""
    return tuple(re.findall(r"\$\{__field\.labels\.(\w+)\}", name or ""))


def _coloured(panel, colours: dict[str, str] | None):
    for field, colour in (colours or {}).items():
        panel.override_by_name(field,
                               [m.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})])
    return panel


def bars(title: str, says: str, sql: str, unit: str, axis: str, x: str, size=(12, 8),
         colours: dict[str, str] | None = None, stack: bool = False, most: float | None = None):
    """Bars over a text column `x`."""
    panel = _common(barchart.Panel(), title, says, sql, True, size)
    panel.unit(unit).axis_label(axis).x_field(x).min(0).orientation(
        c.VizOrientation.AUTO).fill_opacity(80).line_width(1).group_width(0.8).bar_width(0.9)
    panel.stacking(c.StackingMode.NORMAL if stack else c.StackingMode.NONE).show_value(
        c.VisibilityMode.NEVER).color_scheme(BY_SERIES)
    panel.legend(LEGEND)
    panel.tooltip(_tooltip(c.TooltipDisplayMode.MULTI)).x_tick_label_rotation(0).x_tick_label_spacing(0)
    if most is not None:
        panel.max(most)
    return _coloured(panel, colours)


def classes_over_time(title: str, says: str, sql: str, name: str, size=(24, 10)):
    """A row of coloured spans for each series of class numbers 0 to 3. Colours by thresholds would make a legend of
    "< 1, 1+, 2+".
    """
    panel = _common(statetimeline.Panel(), title, says, with_holes(sql, _labels(name), True), False, size)
    panel.unit("none").mappings(CLASS_MAPPING).thresholds(plain())
    panel.color_scheme(BY_SERIES).display_name(name).interval("1m")
    panel.merge_values(True).show_value(c.VisibilityMode.NEVER).row_height(0.9).align_value(
        c.TimelineValueAlignment.LEFT).fill_opacity(90).line_width(0)
    panel.legend(LEGEND)
    return panel.tooltip(_tooltip(c.TooltipDisplayMode.SINGLE))


def heat_map(title: str, says: str, sql: str, unit: str, axis: str, size=(12, 8)):
    """Rows are the value columns of the query, lowest first; colour is the value."""
    panel = _common(heatmap.Panel(), title, says, sql, False, size)
    panel.calculate(False).cell_gap(1).interval("1m").show_value(c.VisibilityMode.NEVER).show_legend().show_tooltip()
    panel.color(heatmap.HeatmapColorOptions().mode(heat.HeatmapColorMode.SCHEME).scheme("Blues").fill(ALARM).scale(
        heat.HeatmapColorScale.EXPONENTIAL).exponent(0.5).steps(64).reverse(False))
    panel.y_axis(heatmap.YAxisConfig().axis_placement(c.AxisPlacement.LEFT).axis_label(axis).reverse(False))
    panel.rows_frame(heatmap.RowsHeatmapOptions().layout(c.HeatmapCellLayout.AUTO).value(unit))
    return panel.cell_values(heatmap.CellValues().unit("short")).exemplars_color(WARN)


def rows(title: str, says: str, sql: str, units: dict[str, str], size=(24, 8),
         links: dict[str, tuple[str, str]] | None = None, coloured: dict[str, build.ThresholdsConfig] | None = None):
    """A table. `units` by column; `coloured` colours a column's text by thresholds. Headers, and the links of what a
    cell names, are those of oal_grafana.columns; `links` are further ones, (title, URL) by column.
    """
    panel = _common(table.Panel(), title, says, sql, True, size).show_header(True).unit("none")
    panel.thresholds(plain())
    _grey_where_names_are(panel, "–")
    have = tuple(columns_of(sql))
    for column in have:
        least = columns.least_px(column, units.get(column))
        properties = [("displayName", columns.header(column)), ("custom.minWidth", least)]
        if column in units:
            properties.append(("unit", units[column]))
        if leads := [*columns.links(column, have), *([links[column]] if column in (links or {}) else [])]:
            # To the left like the link itself, which Grafana 9 puts there also in a column of numbers.
            properties += [("links", [{"title": text, "url": url} for text, url in leads]), ("custom.align", "left")]
        if column in (coloured or {}):
            # Grafana 10; 9 calls it displayMode
            properties += [("custom.cellOptions", {"type": "color-text"}), ("custom.displayMode", "color-text"),
                           ("thresholds", coloured[column].build().to_json())]
        panel.override_by_name(column, [m.DynamicConfigValue(id_val=key, value=value) for key, value in properties])
    return panel.footer(common.TableFooterOptions().show(False).reducer(["sum"]).count_rows(False))


def firing(title: str, says: str, labels: str, size=(24, 5)):
    """The alerts that fire or are about to, of those with these labels, such as `{board="oal-model"}`. The SDK has no
    type for the list of alerts.
    """
    return _Ready(
        m.Panel(
            type_val="alertlist", title=title, description=says, grid_pos=m.GridPos(w=size[0], h=size[1]),
            options={
                "viewMode": "list", "groupMode": "default", "groupBy": [], "maxItems": 20, "sortOrder": 3,
                "dashboardAlerts": False, "alertName": "", "alertInstanceLabelFilter": labels,
                "datasource": "-- Grafana --", "showInstances": False,
                "stateFilter": {"firing": True, "pending": True, "error": True, "noData": False, "normal": False}
            }))


def prose(title: str, markdown: str, size=(24, 6)):
    """Text; what a reader is to do stands in it."""
    return _Ready(
        m.Panel(type_val="text", title=title, grid_pos=m.GridPos(w=size[0], h=size[1]),
                options={"mode": "markdown", "content": markdown}))


class _Ready:
    """A panel that needs no building."""

    def __init__(self, panel: m.Panel):
        self._panel = panel

    def build(self) -> m.Panel:
        return self._panel
