"""Measure and print what the agent costs. usage: python -m system [--machine mips,x86_64]
[--ways module,module-budget,budget,unlimited]
[--stations 1,10,20,50,100,100:10] [--packets 0,1500,10000] [--out RESULTS.json] [--bench BENCH.json]
100:10 is a hundred stations of which ten have traffic. What is in RESULTS.json already stays, unless it is measured
again."""
import argparse
import dataclasses
import json
import pathlib
import sys

from . import cost, machine, report

MACHINES = {m.name: m for m in (machine.MIPS, machine.X86_64)}


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def stations(text: str) -> tuple[tuple[int, int], ...]:
    """(how many there are, how many have traffic) of each word."""
    return tuple((int(all_), int(active or all_)) for all_, _, active in (w.partition(":") for w in text.split(",")))


def boots(on: machine.Machine, ways: list[str], packets: tuple[int, ...]):
    """Each way to sample, with the packet rates that are played in one boot of it."""
    quiet, busy = [tuple(p for p in packets if (p >= cost.BUSY) == is_busy) for is_busy in (False, True)]
    for name, is_quiet, is_busy in (("module-budget", cost.MODULE_SHIPPED, cost.MODULE_SHIPPED_BUSY),
                                    ("budget", cost.SHIPPED, cost.SHIPPED_BUSY)):
        if on is machine.MIPS and name in ways:  # a share of a processor's time: the other one is none that exists
            yield from ((way, rates) for way, rates in ((is_quiet, quiet), (is_busy, busy)) if rates)
    yield from ((way, packets) for way in (cost.MODULE, cost.UNLIMITED) if way.name in ways)


def save(path: pathlib.Path, proofs: dict, cells: list[cost.Cell]) -> None:
    """After each boot: what was measured is not lost when a later one fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"proof": proofs, "cells": [dataclasses.asdict(c) for c in cells]}, indent=1) + "\n")


def earlier(path: pathlib.Path) -> tuple[dict, list[cost.Cell]]:
    if not path.exists():
        return {}, []
    return json.loads(path.read_text())["proof"], report.read(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="mips,x86_64")
    parser.add_argument("--ways", default="module,module-budget,budget,unlimited")
    parser.add_argument("--stations", type=stations, default=(*((n, n) for n in cost.STATIONS), cost.MOSTLY_IDLE))
    parser.add_argument("--packets", type=numbers, default=cost.PACKETS)
    parser.add_argument("--out", type=pathlib.Path, default=machine.BUILD / "cost.json")
    parser.add_argument("--bench", type=pathlib.Path, default=machine.ROOT / "build/bench/system.json")
    parser.add_argument("--setup", action="store_true", help="only build what is cached")
    chosen = parser.parse_args()
    machines = [MACHINES[name] for name in chosen.machine.split(",")]
    ways = chosen.ways.split(",")
    for on in machines:
        on.setup()
    if chosen.setup:
        return
    proofs, cells = earlier(chosen.out)
    for on in machines:
        proofs[on.name] = cost.proof(on, cost.SHIPPED.shift)
        print(f"{on.name}: {proofs[on.name]}", file=sys.stderr)
        for way, packets in boots(on, ways, chosen.packets):
            for count, active in chosen.stations:
                if way in (cost.UNLIMITED, cost.MODULE) and active > cost.UNLIMITED_MOST:
                    continue
                print(f"{on.name}, {way.name}: {count} stations, {active} active", file=sys.stderr)
                new = cost.measure(on, way, count, active, packets)
                cells = [c for c in cells if c.kind not in {n.kind for n in new}] + new
                save(chosen.out, proofs, cells)
    print(report.table(cells))
    report.write_bench(cells, chosen.bench)


if __name__ == "__main__":
    main()
