"""Measure and print what the agent costs. usage: python -m system [--machine mips,x86_64] [--stations 1,10,20,50]
[--packets 0,1500,10000] [--out RESULTS.json] [--bench BENCH.json]"""
import argparse
import dataclasses
import json
import pathlib
import sys

from . import cost, machine, report

MACHINES = {m.name: m for m in (machine.MIPS, machine.X86_64)}


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def boots(on: machine.Machine, ways: list[str], packets: tuple[int, ...]):
    """Each way to sample, with the packet rates that are played in one boot of it."""
    quiet, busy = [tuple(p for p in packets if (p >= cost.BUSY) == is_busy) for is_busy in (False, True)]
    if on is machine.MIPS and "budget" in ways:  # a share of a processor's time: the other one is none that exists
        yield from ((way, rates) for way, rates in ((cost.SHIPPED, quiet), (cost.SHIPPED_BUSY, busy)) if rates)
    if "unlimited" in ways:
        yield cost.UNLIMITED, packets


def save(path: pathlib.Path, proofs: dict, cells: list[cost.Cell]) -> None:
    """After each boot: what was measured is not lost when a later one fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"proof": proofs, "cells": [dataclasses.asdict(c) for c in cells]}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="mips,x86_64")
    parser.add_argument("--ways", default="budget,unlimited")
    parser.add_argument("--stations", type=numbers, default=cost.STATIONS)
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
    proofs, cells = {}, []
    for on in machines:
        proofs[on.name] = cost.proof(on, cost.SHIPPED.shift)
        print(f"{on.name}: {proofs[on.name]}", file=sys.stderr)
        for way, packets in boots(on, ways, chosen.packets):
            for stations in chosen.stations:
                print(f"{on.name}, {way.name}: {stations} stations", file=sys.stderr)
                cells += cost.measure(on, way, stations, packets)
                save(chosen.out, proofs, cells)
    print(report.table(cells))
    report.write_bench(cells, chosen.bench)


if __name__ == "__main__":
    main()
