"""The table in README.md, and the figures of other documents, are those of the committed results."""
import dataclasses
import pathlib
import re

from system import cost, report

SYSTEM = pathlib.Path(__file__).resolve().parent.parent
ROOT = SYSTEM.parent.parent
CELLS = report.read(SYSTEM / "results/cost.json")


def cell(machine: str, way: str, stations: int, packets: int) -> cost.Cell:
    found, = [c for c in CELLS if c.kind == (machine, way, stations, stations, packets)]
    return found


def test_the_table_is_that_of_the_results():
    assert report.table(CELLS) in (SYSTEM / "README.md").read_text()


def test_a_figure_of_an_earlier_day_has_its_mark():
    new, old = (dataclasses.replace(CELLS[0], packets=n, measured=f"2026-01-0{n}") for n in (2, 1))
    first, second, _, days = report.table([old, new]).splitlines()[2:]
    assert first.endswith(" † |") and "†" not in second
    assert days == "Measured on 2026-01-02; † on 2026-01-01"


def test_every_combination_was_measured():
    """On both machines, by nl80211 and by the module; with the budget on that whose processor is meant."""
    for way in (("mips", "budget"), ("mips", "unlimited"), ("mips", "module"), ("mips", "module-budget"),
                ("x86_64", "unlimited"), ("x86_64", "module")):
        assert {(c.stations, c.active, c.packets) for c in CELLS if (c.machine, c.way) == way} >= {
            (n, n, packets) for n in cost.STATIONS if n <= cost.UNLIMITED_MOST for packets in cost.PACKETS
        }, f"{way}"
    assert {("mips", "module-budget", *cost.MOSTLY_IDLE, packets) for packets in (0, 1500)} <= {c.kind for c in CELLS}


def test_a_cell_is_named_by_all_that_it_was_measured_of():
    assert len({c.kind for c in CELLS}) == len(CELLS)


def test_figures_of_other_documents():
    """A sentence that quotes this measurement says which, as `10 stations, 1,500 packets/s: N % (lab/system, budget)`.
    """
    quoted = re.compile(r"(\d+) stations?,\s+([\d,]+)\s+packets/s:\s+([\d.]+)\s+%\s+\(lab/system,\s+(\w+)\)")
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "ap-exporter/README.md", SYSTEM / "README.md"]
    found = [(page, *match) for page in pages for match in quoted.findall(page.read_text())]
    assert {page.name for page, *_ in found} >= {"README.md", "figures.md", "access-point.md"}
    for page, stations, packets, percent, way in found:
        is_ = cell("mips", way, int(stations), int(packets.replace(",", "")))
        assert percent == f"{is_.percent:.1f}", (page, stations, packets, way)


def test_the_sentence_about_the_other_machine():
    text = " ".join((SYSTEM / "README.md").read_text().split())
    said, = re.findall(r"On x86-64 ten cost ([\d,]+) instructions a tick by the module and ([\d,]+) by nl80211", text)
    for number, way in zip(said, ("module", "unlimited")):
        found = cell("x86_64", way, 10, 0)
        assert int(number.replace(",", "")) == round(found.user) + round(found.kernel)
