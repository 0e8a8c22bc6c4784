"""Measure what was asked of the exporter on an access point, and print it line by line. usage: python -m reach
[--only calls,ticks,hundred,ten,memory] [--out RESULTS.json] [--cells COST.json]; --only nothing prints what
RESULTS.json has. --cells: what make -C lab bench-system measured, with its day, instead of playing it again."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from host import guest
from system import report

from . import lines

ROOT = guest.LAB.parent
RESULTS = pathlib.Path(__file__).with_name("results.json")
KERNEL = "6.12"


def calls(_cells: list) -> lines.Line:
    from sampler import run
    with tempfile.TemporaryDirectory() as folder:
        return lines.calls(run.play(run.built(KERNEL), pathlib.Path(folder)))


def ticks(_cells: list) -> lines.Line:
    from router import run
    with tempfile.TemporaryDirectory() as folder:
        return lines.ticks(run.play(pathlib.Path(folder)))


def measured(cells: list, way, stations: int, active: int, packets: tuple[int, ...]) -> list:
    """Those of `cells`, or measured now if there are none."""
    from system import cost, machine
    if not cells:
        return cost.measure(machine.MIPS, way, stations, active, packets)
    found = {c.kind: c for c in cells}
    return [found[machine.MIPS.name, way.name, stations, active, rate] for rate in packets]


def hundred(cells: list) -> lines.Line:
    from system import cost
    return lines.hundred([c for active in (10, 100)
                          for c in measured(cells, cost.MODULE_SHIPPED, 100, active, (0, 1500))])


def ten(cells: list) -> lines.Line:
    from system import cost
    return lines.ten(measured(cells, cost.SHIPPED, 10, 10, (1500,))[0])


def memory(_cells: list) -> lines.Line:
    subprocess.run(["make", "--no-print-directory", "-C", ROOT / "ap-exporter", "bench-rss"], check=True)
    return lines.memory(json.loads((ROOT / "build/bench/ap-exporter-rss.json").read_text()))


MEASURE = {one.__name__: one for one in (calls, ticks, hundred, ten, memory)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(MEASURE))
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--cells", type=pathlib.Path)
    chosen = parser.parse_args()
    cells = report.read(chosen.cells) if chosen.cells else []
    known = lines.read(chosen.out)
    for name in chosen.only.split(","):
        if name != "nothing":
            known[name] = MEASURE[name](cells)
            lines.save(chosen.out, known)
    for line in known.values():
        print(line.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
