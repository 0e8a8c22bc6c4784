"""lab/evaluate/run: play cells of the evaluation, or all of it. A cell is a scenario, a method and a seed."""
import argparse
import pathlib
import sys
import time

from host import scenario

from . import bundle, diagnosis, methods, play, pool, report, results, scenarios, table, uplink

SHOWN = [("throughput_mbps", "Mbit/s", 2), ("delay_mean_ms", "delay ms", 1), ("delay_p95_ms", "p95", 1),
         ("queueing_mean_ms", "queueing", 1), ("rtt_mean_ms", "rtt", 1), ("jitter_ms", "jitter", 2),
         ("congestion_loss_ratio", "cong. loss", 4), ("kernel_loss_ratio", "kernel loss", 4),
         ("retransmission_ratio", "retrans", 4), ("jain_goodput", "jain", 3), ("jain_airtime", "jain air", 3),
         ("fct_mean_ms", "fct ms", 0), ("fct_p95_ms", "fct p95", 0), ("first_second_drops", "1st s", 1)]


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="lab/evaluate/run", description=__doc__)
    p.add_argument("--set", choices=scenarios.SETS, default="tune",
                   help="tune: scenarios on which settings are chosen (default); judge: those that tell; uplink:"
                        " stations that upload; mmwave: links that people block; mark: one access point;"
                        " loss: one whose queue, air or wire loses; choose: two servers at one")
    p.add_argument("--scenario", action="append", help="only this one (several times: these)")
    p.add_argument("--method", action="append",
                   help="CONTROL-QUEUE or CONTROL-QUEUE+ACT, like bbr-fq+oal (several times: these; default: all)")
    p.add_argument("--iterations", type=int, default=1, help="seeds, each another draw of the air's chance (1)")
    p.add_argument("--first-seed", type=int, default=None, help="the first of them (1 on tune, 1001 on judge)")
    p.add_argument("--jobs", type=int, default=2, help="guests at a time (2)")
    p.add_argument("--keep", type=pathlib.Path, help="folder to which captures, truths and logs of each cell go")
    p.add_argument("--build", type=pathlib.Path, default=play.BUILD,
                   help="folder in which results of cells are kept (build/evaluate)")
    p.add_argument("--report", type=pathlib.Path,
                   help="folder for table, pictures, Parquet and report.html of all these cells, once they are played")
    p.add_argument("--from", dest="kept", type=pathlib.Path, metavar="FOLDER",
                   help="play nothing: the report, to --report, of the results that an earlier report wrote to FOLDER")
    p.add_argument("--report-only", action="store_true", help="play nothing: report what was played before")
    group = p.add_argument_group("what the methods are made of")
    group.add_argument("--policy", type=pathlib.Path,
                       default=bundle.DEFAULT_POLICY if bundle.DEFAULT_POLICY.exists() else None,
                       help="policy file of OAL (policies/in-force/default.yaml)")
    group.add_argument("--override", "--with", dest="overrides", action="append", default=[], metavar="NAME=VALUE",
                       help="a number of the policy, instead of the file's")
    group.add_argument("--tree", type=pathlib.Path, default=bundle.TREE)
    group.add_argument("--window-model", type=pathlib.Path, metavar="BUNDLE",
                       help="a signed bundle whose window model goes along (default: none)")
    group.add_argument("--exporter", type=pathlib.Path, default=play.EXPORTER)
    group.add_argument("--clamp-bytes", type=int, default=play.Settings.clamp_bytes)
    group.add_argument("--oracle-target-us", type=int, default=play.Settings.oracle_target_us)
    return p.parse_args()


def settings(args: argparse.Namespace) -> play.Settings:
    overrides = tuple(sorted((name, int(value)) for name, _, value in (word.partition("=") for word in args.overrides)))
    if not args.exporter.exists():
        raise bundle.BundleMistake(f"there is no ap-exporter at {args.exporter}: make -C ap-exporter build")
    return play.Settings(exporter=play.snapshot(args.exporter.resolve(), args.build.resolve()), policy=args.policy,
                         overrides=overrides, tree=args.tree, window=args.window_model, clamp_bytes=args.clamp_bytes,
                         oracle_target_us=args.oracle_target_us, keep=args.keep, build=args.build.resolve())


def line(label: str, cell: dict) -> str:
    return f"{label:34s}" + "".join(
        f"{'-' if cell[name] is None else format(cell[name], f'.{digits}f'):>{max(9, len(title) + 1)}s}"
        for name, title, digits in SHOWN)


def left(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"


def run(cells: list[play.Cell], how: play.Settings, jobs: int) -> dict[play.Cell, str]:
    """Play what was not played before, a line each; a cell that fails is tried once more. Those that failed twice, with
    the reason.
    """
    todo, done = [], 0
    for cell in cells:
        if found := play.result(cell, how):
            print(line(f"{cell.scenario}/{cell.method.name}/{cell.seed}", found["cell"]), flush=True)
        else:
            todo.append(cell)
    if any(cell.method.looks_on for cell in todo):
        diagnosis.program()
    started, failures = time.monotonic(), {}
    for attempt in (1, 2):
        now, failures = (todo if attempt == 1 else list(failures)), {}
        for cell, found, error in pool.each(lambda cell: play.result(cell, how) or play.play(cell, how), now, jobs):
            done += 1
            passed = time.monotonic() - started
            if error:
                failures[cell] = error
                print(
                    f"evaluate: {cell.name} failed{' and is tried again later' if attempt == 1 else ' again'}: {error}",
                    file=sys.stderr)
            else:
                print(
                    line(f"{cell.scenario}/{cell.method.name}/{cell.seed}", found["cell"])
                    + f"   {done}/{len(todo)}, {left(passed / done * max(0, len(todo) - done))} left", flush=True)
    return failures


def again(folder: pathlib.Path, to: pathlib.Path | None) -> int:
    """The report of results that are kept as Parquet; prints what each part adds, and where the page is."""
    if not to or not (folder / "cells.parquet").exists():
        print("evaluate: --from needs --report, and a folder with cells.parquet and results.parquet", file=sys.stderr)
        return 2
    found = results.Results.read(folder)
    print(table.ablation(found), flush=True)
    print(report.write(found, to, f"Evaluation of OAL on the set {found.cells[0].set}",
                       [f"{len(found.found)} cells, made of {report.parts(found)}", report.INTERVALS]))
    return 0


def main() -> int:
    args = arguments()
    if args.kept:
        return again(args.kept, args.report)
    try:
        chosen = [methods.to_play(name) for name in args.method] if args.method else methods.ALL
        which = args.scenario or scenarios.names(args.set)
        for name in which:
            scenarios.plan(scenarios.load(args.set, name), name, chosen[0], 1)
        how = settings(args)
        for name in which:
            for method in chosen:
                play.own_trees(play.Cell(args.set, name, method, 1), how)
    except (scenario.ScenarioError, methods.MethodError, bundle.BundleMistake, ValueError) as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 2
    first = args.first_seed or (1 if args.set == "tune" else 1001)
    cells = [
        play.Cell(args.set, name, method, seed) for seed in range(first, first + args.iterations) for name in which
        for method in chosen
    ]
    print(f"{'':34s}" + "".join(f"{title:>{max(9, len(title) + 1)}s}" for _, title, _ in SHOWN))

    play.kernel()
    try:
        failures = {} if args.report_only else run(cells, how, args.jobs)
    except KeyboardInterrupt:
        print(
            f"evaluate: interrupted; {sum(play.result(c, how) is not None for c in cells)} of {len(cells)} cells are"
            " kept, and the same command goes on from there",
            file=sys.stderr,
        )
        return 130
    if args.report:
        found = results.Results.played(cells, how, failures)
        if not found.found:
            print("evaluate: none of these cells was played yet: no report", file=sys.stderr)
            return 1
        if args.set == "uplink":
            print(uplink.write(found, args.report))
        else:
            print(report.write(found, args.report, f"Evaluation of OAL on the set {args.set}",
                               report.about(found, args.set, how, play.kernel())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
