"""python3 -m conformance: play the suite and print its table. `make -C lab conformance` calls this."""
import argparse
import json
import sys
from pathlib import Path

from . import report, run
from .switch import NAMES


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="conformance", description=__doc__)
    p.add_argument("cases", nargs="*", help="names, or their beginnings (default: all)")
    p.add_argument("--on", default=",".join(NAMES), help=f"bridges and backends, of {', '.join(NAMES)}")
    p.add_argument("--quick", action="store_true", help="the short run of the tests")
    p.add_argument("--out", type=Path, default=run.OUT, help="folder for captures, events and the table")
    p.add_argument("--exporter", type=Path, default=run.EXPORTER)
    p.add_argument(
        "--real-time", action="store_true",
        help="the guests' clock is this machine's: what computing costs counts, and so does whatever else runs here")
    p.add_argument("--wired", action="store_true", help="only cases that need no Wi-Fi: the kernel may lack the medium")
    p.add_argument("--again", action="store_true", help="play nothing, judge the captures of an earlier run")
    p.add_argument("--bench", type=Path, help="also write the figures of speed to this file")
    p.add_argument("--jobs", type=int, default=2, help="guests at once")
    return p.parse_args()


def main() -> int:
    args = arguments()
    try:
        results = run.run(args.on.split(","), args.cases, args.quick, args.out.resolve(), args.exporter, args.jobs,
                          args.real_time, args.again, args.wired)
    except (ValueError, run.NoSources) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    table = report.table(results)
    (args.out / "table.md").write_text(table)
    (args.out / "results.json").write_text(json.dumps(report.rows(results), indent=1))
    if args.bench:
        args.bench.parent.mkdir(parents=True, exist_ok=True)
        args.bench.write_text(json.dumps(report.speed(results), indent=1) + "\n")
    print(table)
    print(report.summary(results, args.out))
    return 1 if any(result.complaints for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
