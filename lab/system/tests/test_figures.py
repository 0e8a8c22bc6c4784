"""The table in README.md, and the figures of other documents, are those of the committed results."""
import pathlib
import re

from system import cost, report

SYSTEM = pathlib.Path(__file__).resolve().parent.parent
ROOT = SYSTEM.parent.parent
CELLS = report.read(SYSTEM / "results/cost.json")


def cell(machine: str, way: str, stations: int, packets: int) -> cost.Cell:
    found, = [c for c in CELLS if (c.machine, c.way, c.stations, c.packets) == (machine, way, stations, packets)]
    return found


def test_the_table_is_that_of_the_results():
    assert report.table(CELLS) in (SYSTEM / "README.md").read_text()


def test_every_combination_was_measured():
    for machine, ways in (("mips", ("budget", "unlimited")), ("x86_64", ("unlimited",))):
        for way in ways:
            assert {(c.stations, c.packets) for c in CELLS if (c.machine, c.way) == (machine, way)} == {
                (stations, packets) for stations in cost.STATIONS for packets in cost.PACKETS
            }, f"{machine}, {way}"


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
