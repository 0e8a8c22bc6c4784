"""Panels of the kinds that the dashboards use, each with what every panel must have: a unit, a description that says
what to do, a query.
"""
from grafana_foundation_sdk.builders import barchart, common, gauge, heatmap, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import barchart as _  # noqa: F401  registers the options' types
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as m
from grafana_foundation_sdk.models import heatmap as heat

from oal_grafana.colours import ALARM, CLASS_NAMES, CLASSES, OK, PLAIN, WARN
from oal_grafana.target import Target, source

CLASS_MAPPING = [
    m.ValueMap(
        options={
            str(i): m.ValueMappingResult(text=name, color=colour, index=i)
            for i, (name, colour) in enumerate(zip(CLASS_NAMES, CLASSES))
        })
]
BY_THRESHOLD, BY_SERIES = (build.FieldColor().mode(mode)
                           for mode in (m.FieldColorModeId.THRESHOLDS, m.FieldColorModeId.PALETTE_CLASSIC))
LEGEND = common.VizLegendOptions().display_mode(c.LegendDisplayMode.LIST).placement(
    c.LegendPlacement.BOTTOM).show_legend(True).calcs([])


def steps(*bounds: tuple[float | None, str]) -> build.ThresholdsConfig:
    """Thresholds: (None, colour), (from, colour), …"""
    return build.ThresholdsConfig().mode(m.ThresholdsMode.ABSOLUTE).steps(
        [m.Threshold(value=value, color=colour) for value, colour in bounds])


def rising(warn: float, alarm: float) -> build.ThresholdsConfig:
    """More is worse."""
    return steps((None, OK), (warn, WARN), (alarm, ALARM))


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
           per_row: bool = False, no_value: str = "no data"):
    """One figure, or with `per_row` one for each row, named by its text column."""
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"])
    reduce = reduce.values(True).limit(8) if per_row else reduce.values(False)
    panel = _common(stat.Panel(), title, says, sql, True, size)
    panel.unit(unit).thresholds(thresholds or plain()).color_scheme(BY_THRESHOLD).no_value(no_value)
    panel.reduce_options(reduce).graph_mode(c.BigValueGraphMode.NONE).color_mode(c.BigValueColorMode.VALUE)
    panel.text_mode(c.BigValueTextMode.VALUE_AND_NAME if per_row else c.BigValueTextMode.VALUE).justify_mode(
        c.BigValueJustifyMode.AUTO)
    return panel.decimals(decimals) if decimals is not None else panel


def dial(title: str, says: str, sql: str, unit: str, thresholds, least: float, most: float, size=(4, 4)):
    """A figure between two known ends."""
    panel = _common(gauge.Panel(), title, says, sql, True, size)
    panel.unit(unit).min(least).max(most).thresholds(thresholds).color_scheme(BY_THRESHOLD)
    return panel.reduce_options(common.ReduceDataOptions().calcs(
        ["lastNotNull"]).values(False)).show_threshold_markers(True).show_threshold_labels(False)


def series(title: str, says: str, sql: str, unit: str, axis: str, size=(12, 8), colours: dict[str, str] | None = None,
           stack: bool = False, percent: bool = False, bars: bool = False, name: str | None = None,
           least: float | None = 0, most: float | None = None, finest: str = "1m"):
    """Lines over time. `name` is the legend's text, such as `${__field.labels.ap_id}`; `finest` the shortest interval
    that the data have.
    """
    panel = _common(timeseries.Panel(), title, says, sql, False, size)
    panel.unit(unit).axis_label(axis).interval(finest).color_scheme(BY_SERIES)
    panel.line_width(1).fill_opacity(80 if stack or bars else 8).show_points(
        c.VisibilityMode.AUTO).draw_style(c.GraphDrawStyle.BARS if bars else c.GraphDrawStyle.LINE)
    panel.span_nulls(180_000)  # a gap is a gap: bridged up to three minutes only
    panel.legend(LEGEND)
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
    return _coloured(panel, colours)


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
    """A row of coloured spans for each series of class numbers 0 to 3."""
    panel = _common(statetimeline.Panel(), title, says, sql, False, size)
    panel.unit("none").mappings(CLASS_MAPPING).thresholds(
        steps((None, CLASSES[0]), (1, CLASSES[1]), (2, CLASSES[2]), (3, CLASSES[3])))
    panel.color_scheme(BY_THRESHOLD).display_name(name).interval("1m")
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
    """A table. `units` by column; `links` give a column's cells a (title, URL); `coloured` colours a column's text by
    thresholds.
    """
    panel = _common(table.Panel(), title, says, sql, True, size).show_header(True).unit("none")
    panel.thresholds(plain())
    properties: dict[str, list] = {}
    for column, unit in units.items():
        properties.setdefault(column, []).append(m.DynamicConfigValue(id_val="unit", value=unit))
    for column, (text, url) in (links or {}).items():
        properties.setdefault(column,
                              []).append(m.DynamicConfigValue(id_val="links", value=[{"title": text, "url": url}]))
    for column, bounds in (coloured or {}).items():
        properties.setdefault(column, []).extend((
            # Grafana 10; 9 calls it displayMode
            m.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
            m.DynamicConfigValue(id_val="custom.displayMode", value="color-text"),
            m.DynamicConfigValue(id_val="thresholds", value=bounds.build().to_json())))
    for column, values in properties.items():
        panel.override_by_name(column, values)
    return panel.footer(common.TableFooterOptions().show(False).reducer(["sum"]).count_rows(False))
