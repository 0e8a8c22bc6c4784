"""Draw the dashboards from their JSON and what their queries return, where no Grafana can run. A likeness, not
Grafana's drawing.
"""
import argparse
import sys
import textwrap
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import matplotlib
from matplotlib import dates
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oal_grafana import macros, shape
from oal_grafana.check import Asker, arguments, asker
from oal_grafana.clickhouse import Answer, QueryError
from oal_grafana.colours import CLASS_NAMES, CLASSES
from oal_grafana.queries import boards, of_panel
from oal_grafana.units import shown

LABEL = "preview drawn from the dashboard's JSON and its queries, not by Grafana"
WIDTH_PX, UNIT_PX, DPI = 1500, 30, 75  # UNIT_PX: Grafana's grid rows
PALETTE = ("#009988", "#EE7733", "#0077BB", "#EE3377", "#33BBEE", "#CC3311", "#AA9900", "#7744AA", "#888888", "#335500")
INK, FAINT, PAPER, CARD = "#24292e", "#8a8f94", "#f4f5f5", "#ffffff"
matplotlib.rcParams.update({
    "font.family": "DejaVu Sans", "font.size": 9, "axes.edgecolor": "#c7c9cc", "text.color": INK,
    "axes.labelcolor": FAINT, "xtick.color": FAINT, "ytick.color": FAINT
})


class Panel:
    """A panel's place on the page and its axes."""

    def __init__(self, figure: Figure, spec: dict, height_units: float):
        self.figure, self.spec, self.total = figure, spec, height_units
        place = spec["gridPos"]
        self.x, self.y, self.w, self.h = place["x"], place["y"], place["w"], place["h"]
        self.defaults = spec.get("fieldConfig", {}).get("defaults", {})
        self.unit = self.defaults.get("unit", "none")

    def box(self, left: float, top: float, right: float, bottom: float) -> list[float]:
        """Axes inside the card; margins in grid rows (top, bottom) and pixels (left, right)."""
        x0, x1 = self.x / 24 + left / WIDTH_PX, (self.x + self.w) / 24 - right / WIDTH_PX
        y0, y1 = 1 - (self.y + self.h - bottom) / self.total, 1 - (self.y + top) / self.total
        return [x0, y0, max(x1 - x0, 0.01), max(y1 - y0, 0.002)]

    def card(self) -> None:
        x0, y0, w, h = self.box(4, 0.12, 4, 0.12)
        self.figure.add_artist(
            Rectangle((x0, y0), w, h, transform=self.figure.transFigure, facecolor=CARD, edgecolor="#e0e1e3",
                      linewidth=0.8, zorder=-1))
        self.figure.text(x0 + 9 / WIDTH_PX, y0 + h - 0.62 / self.total, self.spec["title"], weight="bold", size=9.5,
                         va="center")

    def note(self, text: str) -> None:
        x0, y0, w, h = self.box(10, 1.2, 10, 0.3)
        self.figure.text(x0 + w / 2, y0 + h / 2, "\n".join(textwrap.wrap(text, max(12, int(self.w * 7)))), ha="center",
                         va="center", color=FAINT, size=9)

    def axes(self):
        ax = self.figure.add_axes(self.box(70, 1.25, 16, 1.75))
        ax.set_facecolor(CARD)
        ax.tick_params(length=2, labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return ax

    def figure_axis(self, ax) -> None:
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: shown(round(v, 9), self.unit)))
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.set_ylabel(self.defaults.get("custom", {}).get("axisLabel", ""), size=8)
        ax.grid(axis="y", color="#eceef0", linewidth=0.8)
        ax.set_axisbelow(True)
        if "min" in self.defaults:
            ax.set_ylim(bottom=self.defaults["min"])
        if "max" in self.defaults:
            ax.set_ylim(top=self.defaults["max"])
        elif ax.get_ylim()[1] < 0.1 and not any(abs(v) > 0 for line in ax.lines
                                                for v in line.get_ydata()) and self.unit != "percentunit":
            ax.set_ylim(top=1)  # nothing but zeros

    def colours(self) -> dict[str, str]:
        return {
            o["matcher"]["options"]: p["value"]["fixedColor"] for o in self.spec["fieldConfig"].get("overrides", [])
            for p in o["properties"] if p["id"] == "color"
        }

    def overrides(self, column: str) -> dict:
        return {
            p["id"]: p["value"] for o in self.spec["fieldConfig"].get("overrides", [])
            if o["matcher"]["options"] == column for p in o["properties"]
        }


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def by_threshold(thresholds: dict | None, value) -> str:
    colour = INK
    for step in (thresholds or {}).get("steps", []):
        if step.get("value") is None or (value is not None and value >= step["value"]):
            colour = step["color"]
    return colour


def lines(panel: Panel, answer: Answer) -> dict[str, list[tuple[datetime, float]]]:
    """Series by the name in the legend."""
    kinds = [shape.kind(t) for t in answer.types]
    pattern = panel.defaults.get("displayName")
    made: dict[str, list] = defaultdict(list)
    for row in answer.rows:
        labels = {answer.names[i]: row[i] for i, k in enumerate(kinds) if k == "text"}
        for i, kind in enumerate(kinds):
            if kind == "number":
                name = pattern or answer.names[i]
                for key, value in ({f"${{__field.labels.{k}}}": v
                                    for k, v in labels.items()} | {"${__field.name}": answer.names[i]}).items():
                    name = name.replace(key, str(value))
                value = row[i]
                made[name].append(
                    (moment(row[0]), float(value) if value not in (None, "nan", "inf", "-inf") else float("nan")))
    return made


def time_axis(ax, who: Asker) -> None:
    ax.set_xlim(datetime.fromtimestamp(who.from_s, UTC), datetime.fromtimestamp(who.to_s, UTC))
    ax.xaxis.set_major_locator(dates.AutoDateLocator(minticks=3, maxticks=9))
    ax.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S" if who.to_s - who.from_s < 900 else "%H:%M"))


def legend(panel: Panel, ax, names: list[tuple[str, str]]) -> None:
    room, x = panel.w * WIDTH_PX / 24 - 40, 0.0
    x0, y0, _, _ = panel.box(16, 0, 16, 0.55)
    for name, colour in names:
        width = 18 + len(name) * 5.6
        if x + width > room:
            panel.figure.text(x0 + x / WIDTH_PX, y0, "…", size=7.5, va="center", color=FAINT)
            return
        panel.figure.text(x0 + x / WIDTH_PX, y0, "■", size=8, va="center", color=colour)
        panel.figure.text(x0 + (x + 12) / WIDTH_PX, y0, name, size=7.5, va="center", color=FAINT)
        x += width


def draw_timeseries(panel: Panel, answer: Answer, who: Asker) -> None:
    made, fixed, ax = lines(panel, answer), panel.colours(), panel.axes()
    custom = panel.defaults["custom"]
    stack, bars = custom.get("stacking", {}).get("mode", "none"), custom.get("drawStyle") == "bars"
    colour = {name: fixed.get(name, PALETTE[i % len(PALETTE)]) for i, name in enumerate(made)}
    if stack != "none" or bars:
        times = sorted({t for points in made.values() for t, _ in points})
        values = {name: dict(points) for name, points in made.items()}
        total = {t: sum(v.get(t, 0) or 0 for v in values.values()) or 1 for t in times}
        floor = dict.fromkeys(times, 0.0)
        step = (times[1] - times[0]) if len(times) > 1 else datetime.resolution * 60_000_000
        for name in made:
            share = [(values[name].get(t, 0) or 0) / (total[t] if stack == "percent" else 1) for t in times]
            share = [0 if v != v else v for v in share]
            if bars:
                ax.bar(times, share, width=step * 0.8, bottom=[floor[t] for t in times] if stack != "none" else None,
                       color=colour[name], align="edge")
            else:
                low, high = [floor[t] for t in times], [floor[t] + s for t, s in zip(times, share)]
                ax.fill_between([*times, times[-1] + step], [*low, low[-1]], [*high, high[-1]], color=colour[name],
                                alpha=0.85, linewidth=0, step="post")
            if stack != "none":
                for t, s in zip(times, share):
                    floor[t] += s
    else:
        for name, points in made.items():
            ax.plot(*zip(*points), color=colour[name], linewidth=1.3, marker="o" if len(points) < 12 else None,
                    markersize=3)
    panel.figure_axis(ax)
    time_axis(ax, who)
    legend(panel, ax, list(colour.items()))


def draw_figure(panel: Panel, answer: Answer, who: Asker) -> None:
    x0, y0, w, h = panel.box(10, 1.1, 10, 0.3)
    rows = answer.rows[:8] if panel.spec["options"]["reduceOptions"].get("values") else answer.rows[:1]
    rows = [[None if value in ("nan", "-nan", "inf", "-inf") else value for value in row] for row in rows]
    place = {shape.kind(t): i for i, t in enumerate(answer.types)}
    if not rows or rows[0][place["number"]] is None and len(rows) == 1:
        return panel.note(panel.defaults.get("noValue", "no data"))
    for i, row in enumerate(rows):
        value = row[place["number"]]
        text = panel.defaults.get("noValue", "") if value is None else shown(value, panel.unit,
                                                                             panel.defaults.get("decimals"))
        middle = y0 + h * (1 - (i + 0.5) / len(rows))
        size = 24 if len(rows) == 1 else max(11, 26 / len(rows))
        if "text" in place:
            panel.figure.text(x0 + w * 0.08, middle, str(row[place["text"]]), va="center", size=10, color=FAINT)
        panel.figure.text(x0 + w * (0.92 if "text" in place else 0.5), middle, text, va="center",
                          ha="right" if "text" in place else "center", size=10 if value is None else size,
                          weight="bold",
                          color=FAINT if value is None else by_threshold(panel.defaults.get("thresholds"), value))
    return None


def draw_bars(panel: Panel, answer: Answer, who: Asker) -> None:
    ax, fixed = panel.axes(), panel.colours()
    names = answer.names[1:]
    colour = {name: fixed.get(name, PALETTE[i % len(PALETTE)]) for i, name in enumerate(names)}
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        ax.bar([x - 0.4 + width * (i + 0.5) for x in range(len(answer.rows))],
               [float(row[i + 1] or 0) for row in answer.rows], width=width * 0.92, color=colour[name])
    ax.set_xticks(range(len(answer.rows)), [str(row[0]) for row in answer.rows])
    panel.figure_axis(ax)
    legend(panel, ax, list(colour.items()))


def draw_heatmap(panel: Panel, answer: Answer, who: Asker) -> None:
    ax = panel.axes()
    box = ax.get_position()
    ax.set_position([box.x0 + 45 / WIDTH_PX, box.y0, box.width - 45 / WIDTH_PX, box.height])
    names = answer.names[1:]
    edges = [dates.date2num(moment(row[0])) for row in answer.rows]
    edges.append(edges[-1] + (edges[1] - edges[0] if len(edges) > 1 else 60 / 86400))
    mesh = ax.pcolormesh(edges, range(len(names) + 1), [[row[i + 1] for row in answer.rows] for i in range(len(names))],
                         cmap=LinearSegmentedColormap.from_list("b",
                                                                ["#f0f4f8", "#08306b"]), edgecolors=CARD, linewidth=1)
    ax.set_yticks([i + 0.5 for i in range(len(names))], names)
    time_axis(ax, who)
    panel.figure.colorbar(mesh, ax=ax, pad=0.01, aspect=30, ticks=MaxNLocator(4,
                                                                              integer=True)).ax.tick_params(labelsize=7)


def draw_states(panel: Panel, answer: Answer, who: Asker) -> None:
    ax, made = panel.axes(), lines(panel, answer)
    step = macros.interval_s(who.to_s - who.from_s, 60) / 86400
    for y, points in enumerate(made.values()):
        for when, value in points:
            if value != value:
                continue  # no row: a hole
            ax.add_patch(Rectangle((dates.date2num(when), y + 0.06), step, 0.88, color=CLASSES[int(value)],
                                   linewidth=0))
    ax.set_ylim(len(made), 0)
    ax.set_yticks([y + 0.5 for y in range(len(made))], list(made))
    time_axis(ax, who)
    legend(panel, ax, list(zip(CLASS_NAMES, CLASSES)))


def draw_table(panel: Panel, answer: Answer, who: Asker) -> None:
    x0, y0, w, h = panel.box(12, 1.15, 12, 0.3)
    unit_h = 1 / panel.total
    fit = int(h / unit_h / 0.78) - 1
    overrides = [panel.overrides(name) for name in answer.names]
    cells = [[shown(v, o.get("unit", "none")) for v, o in zip(row, overrides)] for row in answer.rows[:fit]]
    heads = [o.get("displayName", name) for o, name in zip(overrides, answer.names)]
    widths = [max(len(name), *(len(row[i]) for row in cells), 3) + 2 for i, name in enumerate(heads)]
    size = min(8.5, 8.5 * w * WIDTH_PX / (sum(widths) * 6.1))
    left = 0.0
    for i, _name in enumerate(answer.names):
        x = x0 + w * left / sum(widths)
        panel.figure.text(x, y0 + h - 0.35 * unit_h, heads[i], size=size, weight="bold", color=FAINT, va="center")
        for j, row in enumerate(cells):
            value = answer.rows[j][i]
            colour = by_threshold(overrides[i]["thresholds"], value) if "thresholds" in overrides[i] and isinstance(
                value, int | float) else (CLASSES[0] if "links" in overrides[i] else INK)
            panel.figure.text(x, y0 + h - (1.15 + 0.78 * j) * unit_h, row[i], size=size, color=colour, va="center")
        left += widths[i]
    if len(answer.rows) > fit:
        panel.figure.text(x0 + w, y0 + 0.05 * unit_h, f"{len(answer.rows) - fit} more rows", size=7, ha="right",
                          color=FAINT)


DRAW = {
    "timeseries": draw_timeseries, "stat": draw_figure, "gauge": draw_figure, "barchart": draw_bars,
    "heatmap": draw_heatmap, "state-timeline": draw_states, "table": draw_table
}


def _opened(board: dict):
    """Rows and panels as they lie when every row is open."""
    lower = 0
    for item in board["panels"]:
        yield {**item, "gridPos": {**item["gridPos"], "y": item["gridPos"]["y"] + lower}}
        inner = item.get("panels") or []
        for panel in inner:
            yield {**panel, "gridPos": {**panel["gridPos"], "y": panel["gridPos"]["y"] + lower}}
        if inner:
            lower += max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in inner) - item["gridPos"]["y"] - 1


def draw(board: dict, who: Asker, path: Path) -> int:
    """One page; the number of panels whose query failed."""
    chosen = who.choose_all(board)
    head = 2.2
    specs = list(_opened(board))
    total = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in specs) + head + 0.3
    figure = Figure(figsize=(WIDTH_PX / DPI, total * UNIT_PX / DPI), dpi=DPI, facecolor=PAPER)
    span = " to ".join(datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%d %H:%M:%S") for s in (who.from_s, who.to_s))
    figure.text(10 / WIDTH_PX, 1 - 0.7 / total, board["title"], size=17, weight="bold", va="center")
    figure.text(
        10 / WIDTH_PX, 1 - 1.6 / total,
        f"{span} UTC   " + "   ".join(f"{name}: {', '.join(v) if len(v) < 4 else f'all {len(v)}'}"
                                      for name, v in chosen.items()), size=9, color=FAINT, va="center")
    figure.text(1 - 10 / WIDTH_PX, 1 - 0.7 / total, LABEL, size=9, style="italic", color="#CC3311", ha="right",
                va="center")
    failed = 0
    for spec in specs:
        spec = {**spec, "gridPos": {**spec["gridPos"], "y": spec["gridPos"]["y"] + head}}
        if spec["type"] == "row":
            title = spec["title"]
            for name, values in chosen.items():
                title = title.replace(f"${name}", ", ".join(values) or "-")
            figure.text(10 / WIDTH_PX, 1 - (spec["gridPos"]["y"] + 0.5) / total, f"▾ {title}", size=11, weight="bold",
                        va="center")
            continue
        panel = Panel(figure, spec, total)
        panel.card()
        if "targets" not in spec:
            panel.note(spec["options"].get("content") or "the alerts that fire: Grafana's own list")
            continue
        query = of_panel(board["title"], spec)
        try:
            answer = who.answer(query, chosen)
        except QueryError as error:
            failed += 1
            panel.note(str(error)[:150])
            continue
        if answer.rows:
            DRAW[spec["type"]](panel, answer, who)
        else:
            panel.note(query.may_be_empty or "no rows")
    figure.savefig(path, pil_kwargs={"optimize": True})
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="preview", description=__doc__)
    arguments(parser)
    parser.add_argument("--out", type=Path, default=Path("build/grafana"), metavar="DIR")
    parser.add_argument("--board", action="append", metavar="UID", help="only this one, such as oal-arriving")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for uid, board in boards().items():
        if uid in options.board if options.board else "oal-runbooks" != uid:
            failed += draw(board, asker(options), options.out / f"{uid}.png")
            print(options.out / f"{uid}.png")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
