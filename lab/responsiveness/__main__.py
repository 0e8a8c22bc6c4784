"""lab/responsiveness/run: RPM, rrul_be and rtt_fair with and without control. A cell is a test, a method and a seed;
what was played before is not played again.
"""
import argparse
import pathlib
import sys

from evaluate import bundle, methods, pool
from evaluate import play as evaluation

from . import catalogue, kept, play, report

METHODS = [f"cubic-{queue}{act}" for queue in ("fq", "fifo") for act in ("", "+queue", "+oal")]


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="lab/responsiveness/run", description=__doc__)
    p.add_argument("--test", action="append", choices=catalogue.NAMES, help="only this one (several times: these)")
    p.add_argument("--method", action="append", help=f"as of lab/evaluate (default: {', '.join(METHODS)})")
    p.add_argument("--seeds", type=int, default=10, help="how many draws of the air's chance (10)")
    p.add_argument("--first-seed", type=int, default=3001)
    p.add_argument("--jobs", type=int, default=2, help="guests at a time (2)")
    p.add_argument("--build", type=pathlib.Path, default=play.BUILD,
                   help="folder in which what was played is kept (build/responsiveness)")
    p.add_argument("--report", type=pathlib.Path, metavar="FOLDER",
                   help="table.md, cells.json, all probes as Parquet and flent's data files of the first seed go there")
    p.add_argument("--from", dest="kept", type=pathlib.Path, metavar="FOLDER",
                   help="play nothing: print the table of the results that --report wrote to FOLDER")
    p.add_argument("--policy", type=pathlib.Path, default=bundle.DEFAULT_POLICY, help="policy file of OAL")
    p.add_argument("--tree", type=pathlib.Path, default=bundle.TREE)
    p.add_argument("--exporter", type=pathlib.Path, default=evaluation.EXPORTER)
    return p.parse_args()


def line(cell: play.Cell, found: dict) -> str:
    shown = [f"{title} {found[name]:.{digits}f}" for name, title, digits in report.columns(cell.test)
             if found[name] is not None]
    return f"{cell.name:34s} " + ", ".join(shown)


def run(cells: list[play.Cell], how: evaluation.Settings, jobs: int) -> dict[play.Cell, dict]:
    """Figures of all that could be played; a cell that fails is tried once more."""
    found = {cell: figures for cell in cells if (figures := play.result(cell, how))}
    for _ in range(2):
        todo = [cell for cell in cells if cell not in found]
        for cell, figures, error in pool.each(lambda cell: play.play(cell, how), todo, jobs):
            if error:
                print(f"responsiveness: {cell.name} failed: {error}", file=sys.stderr)
            else:
                found[cell] = figures
                print(line(cell, figures) + f"   {len(found)}/{len(cells)}", flush=True)
    return found


def main() -> int:
    args = arguments()
    if args.kept:
        print(report.table(kept.read(args.kept)), end="")
        return 0
    try:
        chosen = [methods.method(name) for name in args.method or METHODS]
        if not args.exporter.exists():
            raise bundle.BundleMistake(f"there is no ap-exporter at {args.exporter}: make -C ap-exporter build")
        build = args.build.resolve()
        how = evaluation.Settings(exporter=evaluation.snapshot(args.exporter.resolve(), build), policy=args.policy,
                                  tree=args.tree, build=build)
    except (methods.MethodError, bundle.BundleMistake, ValueError) as error:
        print(f"responsiveness: {error}", file=sys.stderr)
        return 2
    cells = [play.Cell(test, method, seed) for seed in range(args.first_seed, args.first_seed + args.seeds)
             for test in args.test or catalogue.NAMES for method in chosen]
    evaluation.kernel()
    play.libraries()
    try:
        found = run(cells, how, args.jobs)
    except KeyboardInterrupt:
        print("responsiveness: interrupted; the same command goes on from there", file=sys.stderr)
        return 130
    if args.report and found:
        kept.write(found, how, args.report)
        (args.report / "table.md").write_text(report.table(found))
        print(f"{args.report}/table.md")
    return 0 if len(found) == len(cells) else 1


if __name__ == "__main__":
    sys.exit(main())
