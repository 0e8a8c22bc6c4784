"""Drills that take minutes each: outages, failovers, clocks, a day's stream. `make soak` runs all, ONLY=NAME one.

usage: python -m soak [--list] [NAME...]

Each runs in a process of its own on a platform of its own and writes build/soak/NAME.json. At the end stands a table of
all figures with their bounds. Exit status 1 if a bound is not met, a drill failed, or there was no time for it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "schema/src"), str(ROOT / "platform/local/src"), str(ROOT / "tests")]

from soak import figures  # noqa: E402
from soak.drills.list import DRILLS  # noqa: E402
from soak.stage import KEPT  # noqa: E402

LIMIT_S = 3600  # of all drills together
JOBS = 2  # at a time: most drills mostly wait
PATIENCE = "OAL_SOAK_PATIENCE"  # times as long as usual, on a machine that others use too
GRACE_S = 90  # to stop its platform


class Running:
    """A drill in a process group of its own; a platform folder that stays is its own too."""

    def __init__(self, name: str, limit_s: float):
        kept = os.environ.get(KEPT)
        self.name, self.limit_s, self.begun = name, limit_s, time.monotonic()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "soak", "--here", name], process_group=0, stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT / "tests")} | ({KEPT: f"{kept}/{name}"} if kept else {}))

    def failed(self) -> str | None:
        """None while it runs; then why it failed, or nothing."""
        status = self._child.poll()
        if status is not None:
            return "" if status == 0 else f"ended with {status}"
        if time.monotonic() - self.begun < self.limit_s:
            return None
        self.end()
        return f"not done within {self.limit_s:.0f} s"

    def end(self) -> None:
        """If it runs: its platform is stopped in order."""
        if self._child.poll() is not None:
            return
        self._child.send_signal(signal.SIGINT)
        try:
            self._child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


def run(names: list[str], jobs: int) -> dict[str, tuple[float, str]]:
    """Run these drills, so many at a time: of each its seconds, and why it failed, or nothing."""
    patience = float(os.environ.get(PATIENCE, "1"))
    end = time.monotonic() + LIMIT_S * patience
    rows, waiting, running = {}, list(names), []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, left = waiting.pop(0), end - time.monotonic()
                limit_s = DRILLS[name].limit_s * patience
                if left < limit_s / 3:
                    rows[name] = 0, f"not run: {LIMIT_S} s for all drills were used up"
                else:
                    running.append(Running(name, min(limit_s, left)))
            for one in list(running):
                if (failed := one.failed()) is not None:
                    running.remove(one)
                    rows[one.name] = time.monotonic() - one.begun, failed
            time.sleep(0.2)
    finally:
        for one in running:
            one.end()
    return {name: rows[name] for name in names}


def here(name: str) -> int:
    if DRILLS[name].long:
        os.environ.pop("OAL_SHORT_LIVED", None)
    figures.write(name, DRILLS[name].run())
    return 0


def table(rows: dict[str, tuple[float, str]]) -> bool:
    """Print what each drill found; whether all is well."""
    well = True
    for name, (seconds, failed) in rows.items():
        found = figures.read(name) if not failed else []
        short = [f for f in found if not f.met]
        result = failed or (f"{len(short)} bounds not met" if short else "passed")
        well = well and not failed and not short
        print(f"\n== {name}: {result}, {seconds:.0f} s")
        for figure in found:
            print("  " + figure.row())
        for note in dict.fromkeys(f.note for f in found if f.note):
            print(f"    {note}")
    return well


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names of the drills")
    parser.add_argument("--here", metavar="NAME", choices=DRILLS, help="run one in this process")
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help=f"drills at a time (default: {JOBS})")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{name:24} {(drill.run.__doc__ or '').splitlines()[0]}" for name, drill in DRILLS.items()))
        return 0
    if args.here:
        return here(args.here)
    if unknown := set(args.names) - set(DRILLS):
        parser.error(f"no such drill: {', '.join(sorted(unknown))}; there are {', '.join(DRILLS)}")
    begun, names = time.monotonic(), list(dict.fromkeys(args.names or DRILLS))
    for name in names:
        (figures.FOLDER / f"{name}.json").unlink(missing_ok=True)
    rows = run(names, args.jobs)
    well = table(rows)
    passed = sum(not failed for _, failed in rows.values())
    print(f"\nsoak: {passed} of {len(rows)} drills ran to their end, {time.monotonic() - begun:.0f} s in all;"
          f" {'every bound is met' if well else 'NOT all is well'}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
