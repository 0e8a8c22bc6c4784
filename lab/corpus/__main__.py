"""lab/corpus/run: record the corpus and make its training items. What was recorded before is not recorded again; what
was stopped goes on."""
import argparse
import os
import pathlib
import sys
import time

from evaluate import play, pool
from host import scenario

from . import counts, items, plans, record


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="lab/corpus/run", description=__doc__)
    p.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or 2), help="guests at a time (JOBS, or 2)")
    p.add_argument("--part", action="append", choices=list(plans.settings()["parts"]),
                   help="only this part (several times: these; default: all)")
    p.add_argument("--evenings", type=int, help="only the first so many evenings of each site (default: all)")
    p.add_argument("--list", action="store_true", help="the runs, and which are there; play nothing")
    p.add_argument("--where", action="store_true",
                   help="print the folder of the items (NAME.items.parquet, corpus.json), of as many runs as they were"
                   " made of; exit status 1 where there are none by these tools")
    p.add_argument("--items-only", action="store_true", help="play nothing: items of the runs that are there")
    p.add_argument("--sample", type=pathlib.Path, metavar="FOLDER",
                   help="copy the items of the AP-runs that the repository keeps to FOLDER")
    p.add_argument("--fleet", type=pathlib.Path, metavar="FILE",
                   help="write the items that the first model of a fleet learns from: part of `train` and `validation`")
    p.add_argument("--exporter", type=pathlib.Path, default=record.EXPORTER)
    return p.parse_args()


def chosen(args: argparse.Namespace) -> list[plans.Run]:
    """The runs that the command line names."""
    return [run for run in plans.runs() if (not args.part or run.part in args.part)
            and (args.evenings is None or run.evening < args.evenings)]


def left(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"


def play_all(runs: list[plans.Run], exporter: pathlib.Path, jobs: int) -> dict[str, str]:
    """Play what is missing, a line each; a run that fails is tried once more. Those that failed twice, with why."""
    todo = record.missing(runs)
    print(f"corpus: {len(runs)} runs, {len(runs) - len(todo)} there, {len(todo)} to be played", flush=True)
    started, done, air = time.monotonic(), 0, sum(run.aps for run in todo)
    failures: dict[str, str] = {}
    for attempt in (1, 2):
        now, failures = (todo if attempt == 1 else [run for run in todo if run.name in failures]), {}
        for run, said, error in pool.each(lambda run: record.played(run, exporter, sys.executable), now, jobs):
            if error:
                failures[run.name] = error
                print(f"corpus: {run.name} failed{' and is tried again later' if attempt == 1 else ' again'}: {error}",
                      file=sys.stderr)
                continue
            done += run.aps
            passed = time.monotonic() - started
            print(f"{run.name:14s} {run.aps} AP-runs, {said['cpu_s']:.0f} CPU-s, {said['wall_s']:.0f} s;"
                  f" {done}/{air} AP-runs, {left(passed / done * (air - done))} left", flush=True)
    return failures


def summary(folder: pathlib.Path) -> None:
    """The counts of a folder of items."""
    found, constant, names = counts.of(folder)
    print(counts.table(found))
    print(f"columns without variance: {', '.join(constant) or 'none'} (of {len(names)})")


def main() -> int:
    args = arguments()
    try:
        runs = chosen(args)
        if args.list:
            for run in runs:
                there = (record.kept(run) / "run.json").exists()
                print(f"{run.name:14s} {run.aps} APs, {len(run.given['stations'])} stations,"
                      f" {run.given['ap']['queue'].get('kind', 'txq')}{'' if there else '  (not recorded)'}")
            return 0
        if args.where:
            folder = items.largest(runs)
            if folder is None:
                print("corpus: no items are made yet by these tools: lab/corpus/run --items-only", file=sys.stderr)
                return 1
            print(folder)
            return 0
        failures = {}
        if not args.items_only:
            exporter = play.snapshot(args.exporter.resolve(), record.folder())
            failures = play_all(runs, exporter, args.jobs)
    except (scenario.ScenarioError, ValueError, OSError) as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"corpus: interrupted; {len(runs) - len(record.missing(runs))} of {len(runs)} runs are kept, and the same"
              " command goes on from there", file=sys.stderr)
        return 130
    gone = {run.name for run in record.missing(runs)}
    there = [run for run in runs if run.name not in gone]
    if not there:
        print("corpus: nothing is recorded yet", file=sys.stderr)
        return 1
    folder = items.make(there)
    summary(folder)
    if args.sample:
        items.sample(folder, there, args.sample)
    if args.fleet:
        print(f"corpus: {items.fleet(folder, there, args.fleet)} items in {args.fleet}")
    print(f"corpus: items are in {folder}" + (f"; without {', '.join(sorted(gone))}" if gone else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
