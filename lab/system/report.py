"""The measured cost as a table of Markdown, and as the figures that `make bench` collects."""
import json
import pathlib

from .cost import Cell

COMMAND = "make -C lab bench-system"
#: Of figures by their day, the newest first.
MARKS = ("", " †", " ‡", " §")


def read(path: pathlib.Path) -> list[Cell]:
    """The cells of committed or fresh results."""
    return [Cell(**cell) for cell in json.loads(path.read_text())["cells"]]


def table(cells: list[Cell]) -> str:
    """A row for each packet rate and number of stations; instructions a tick, user + kernel; below it, the days."""
    kinds = sorted({(c.machine, c.way) for c in cells})
    lines = ["| stations | packets/s | " + " | ".join(f"{machine}, {way}" for machine, way in kinds) + " |",
             "|---:|---:|" + "---|" * len(kinds)]
    found, days = {c.kind: c for c in cells}, sorted({c.measured for c in cells}, reverse=True)
    for stations, active, packets in sorted({(c.stations, c.active, c.packets) for c in cells}):
        row = [found.get((*kind, stations, active, packets)) for kind in kinds]
        who = f"{stations}" if active == stations else f"{stations}, {active} active"
        lines.append(f"| {who} | {packets:,} | " + " | ".join(entry(cell, days) for cell in row) + " |")
    said = [f"{mark.strip() or 'Measured'} on {day}" for mark, day in zip(MARKS, days, strict=False)]
    return "\n".join([*lines, "", "; ".join(said)])


def entry(cell: Cell | None, days: list[str]) -> str:
    """`days`: of measuring, the newest first. What is of an earlier one has its mark."""
    if cell is None:
        return ""
    share = f": {cell.percent:.1f} %" if cell.machine == "mips" else ""
    missed = f"; {cell.missed} ticks missed" if cell.missed else ""
    return f"{cell.user:,.0f} + {cell.kernel:,.0f}{share}{missed}{MARKS[days.index(cell.measured)]}"


def write_bench(cells: list[Cell], path: pathlib.Path) -> None:
    figures = []
    for c in cells:
        name = f"system_{c.machine}_{c.way}_{c.stations}_stations_{c.active}_active_{c.packets}_packets"
        note = f"{c.user:,.0f} in user space, {c.kernel:,.0f} in the kernel; full-system emulation, less the same " \
               f"traffic without the agent"
        figures.append({
            "name": name, "value": round(c.total), "unit": "instructions", "command": COMMAND, "note": note
        })
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n")
