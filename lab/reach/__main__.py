"""Measure what was asked of the exporter on an access point, and print it line by line. usage: python -m reach
[--only calls,ticks,hundred,ten,memory] [--out RESULTS.json]; --only nothing prints what RESULTS.json has."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from host import guest

from . import lines

ROOT = guest.LAB.parent
RESULTS = pathlib.Path(__file__).with_name("results.json")
KERNEL = "6.12"


def calls() -> lines.Line:
    from sampler import run
    with tempfile.TemporaryDirectory() as folder:
        return lines.calls(run.play(run.built(KERNEL), pathlib.Path(folder)))


def ticks() -> lines.Line:
    from router import run
    with tempfile.TemporaryDirectory() as folder:
        return lines.ticks(run.play(pathlib.Path(folder)))


def hundred() -> lines.Line:
    from system import cost, machine
    of = [cell for active in (10, 100)
          for cell in cost.measure(machine.MIPS, cost.MODULE_SHIPPED, 100, active, (0, 1500))]
    return lines.hundred(of)


def ten() -> lines.Line:
    from system import cost, machine
    return lines.ten(cost.measure(machine.MIPS, cost.SHIPPED, 10, 10, (1500,))[0])


def memory() -> lines.Line:
    subprocess.run(["make", "--no-print-directory", "-C", ROOT / "ap-exporter", "bench-rss"], check=True)
    return lines.memory(json.loads((ROOT / "build/bench/ap-exporter-rss.json").read_text()))


MEASURE = {one.__name__: one for one in (calls, ticks, hundred, ten, memory)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(MEASURE))
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    chosen = parser.parse_args()
    known = lines.read(chosen.out)
    for name in chosen.only.split(","):
        if name != "nothing":
            known[name] = MEASURE[name]()
            lines.save(chosen.out, known)
    for line in known.values():
        print(line.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
