"""Commands `fit`, `evaluate`, `compare` and `import-items`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from oal_training.arguments import instant, log
from oal_training.errors import TrainingError


def register(add) -> None:
    """Add the commands to `oal-train`."""
    fit = add(
        "fit",
        help="judge an experiment's model, fit it on all items but those held out, log it, register it",
        description=(
            "Judge the model of an experiment by time and by AP, fit it on all items but those held out, log both to"
            " MLflow and register the tree. Without MLflow the report is all there is. See training/README.md, chapter"
            " Batch."
        ),
    )
    _source(fit)
    _mlflow(fit)
    fit.add_argument(
        "--policy",
        metavar="NAME",
        help="folder of policies/: its experiment, its items; with MLflow the tree is registered under its name",
    )
    fit.add_argument(
        "--register",
        metavar="NAME",
        help="make the tree a version of this registered model; refused when the run cannot name its data and code",
    )
    again = fit.add_mutually_exclusive_group()
    again.add_argument(
        "--retrain", metavar="NAME/VERSION", help="repeat the experiment of a version on fresh items from ClickHouse"
    )
    again.add_argument("--from-version", metavar="NAME/VERSION", dest="retrain", help="the same")
    fit.add_argument("--result", metavar="FILE", type=Path, help='write {"version": n, "run_id": …} there at the end')
    fit.set_defaults(run=run_fit)

    evaluate = add(
        "evaluate",
        help="judge an experiment's model, or a registered version, on items",
        description=(
            "With an experiment: fit and judge fold by fold, keep nothing. With --version: judge that tree on items"
            " later than those it was trained on."
        ),
    )
    _source(evaluate)
    _mlflow(evaluate)
    evaluate.add_argument("--version", metavar="NAME/VERSION", help="a registered version instead of an experiment")
    evaluate.set_defaults(run=run_evaluate)

    again = add(
        "rebuild",
        help="make a version again from what its run kept, and compare the bytes",
        description=(
            "Fit again from the kept data, settings and seeds of a run, and compare the tree byte for byte with what"
            " was registered. Says which code and libraries differ. Exit status 1 when the bytes do."
        ),
    )
    again.add_argument("run_id", nargs="?", metavar="RUN_ID", help="of MLflow")
    again.add_argument("--version", metavar="NAME/VERSION", help="a registered version instead")
    again.add_argument("--config", metavar="FILE", type=Path, help="YAML with the section mlflow")
    _mlflow(again)
    again.set_defaults(run=run_rebuild)

    compare = add(
        "compare",
        help="every model, the online trees and persistence on the same items, in one table",
        description=(
            "Judge every model of the batch part, the online trainer's trees as they would have been deployed, and"
            " persistence, by time on the same items; beside the paper's figures."
        ),
    )
    compare.add_argument(
        "--items",
        metavar="FILE",
        type=Path,
        nargs="+",
        required=True,
        help="Parquet files of import-items, or folders of them: the corpus is `lab/corpus/run --where`",
    )
    compare.add_argument(
        "--split",
        choices=("time", "run", "validation", "test"),
        default="time",
        help=(
            "time (default): later items by models of earlier ones; run: each run by models of the others;"
            " validation, test: the parts of the corpus"
        ),
    )
    compare.add_argument("--models", metavar="NAME,…", help="only these (default: all)")
    compare.add_argument(
        "--other",
        metavar="FILE",
        type=Path,
        help="items of another network: a second table, of models that learned there alone",
    )
    compare.add_argument("--folds", type=int, default=4, help="test parts, or folds of runs (default 4)")
    compare.add_argument(
        "--test-share", type=float, default=0.6, help="latest share of the items that is judged (default 0.6)"
    )
    compare.add_argument("--online-settings", metavar="FILE", type=Path, help="default: training/online.yaml")
    compare.add_argument("--no-window", action="store_true", help="leave the window model's table out")
    compare.add_argument("--out", metavar="DIR", type=Path, help="write report.md, report.json and pictures there")
    compare.add_argument("--config", metavar="FILE", type=Path, help="YAML with the section mlflow: log a run there")
    _mlflow(compare)
    compare.set_defaults(run=run_compare)

    limits = add(
        "limits",
        help="what bounds a model on the corpus: looking ahead, and fewer runs to learn from",
        description=(
            "Fit a model on the corpus's part train and judge it on validation, with the features of some tenths of a"
            " second later, which no access point has in time, and with parts of the runs."
        ),
    )
    limits.add_argument("--items", metavar="DIR", type=Path, nargs="+", required=True, help="see compare")
    limits.add_argument("--model", metavar="NAME", default="lightgbm", help="one of experiments/ (default lightgbm)")
    limits.add_argument("--choosing", metavar="NAME,…", help="instead, of any items: these models, each by four rules")
    limits.add_argument("--out", metavar="DIR", type=Path, help="write limits.md and limits.json there")
    limits.set_defaults(run=run_limits)

    load = add(
        "import-items",
        help="items as JSON lines → Parquet",
        description=(
            "Turn what stream-jobs/items prints (or training.items.v1 holds) into a Parquet file, with where it came"
            " from in its metadata."
        ),
    )
    load.add_argument("items", metavar="ITEMS.jsonl", type=Path)
    load.add_argument("parquet", metavar="ITEMS.parquet", type=Path)
    load.add_argument(
        "--capture", metavar="FILE", type=Path, help="the capture that the items are of: its name and SHA-256 are noted"
    )
    load.set_defaults(run=run_import)


def _source(parser) -> None:
    parser.set_defaults(policy=None)
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT.yaml", type=Path, help="see training/experiments")
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="YAML with the sections mlflow and clickhouse (model-registry's configuration will do)",
    )
    source = parser.add_argument_group("items")
    source.add_argument(
        "--source",
        metavar="FILE",
        type=Path,
        action="append",
        help=(
            "Parquet file of items (may be given several times); its columns are named in the experiment unless it is"
            " one of import-items"
        ),
    )
    source.add_argument("--clickhouse", metavar="URL", help="HTTP address of ClickHouse instead of that in --config")
    source.add_argument("--clickhouse-user", default="analyst", metavar="NAME", help="default: analyst")
    source.add_argument("--clickhouse-password-file", metavar="FILE")
    source.add_argument("--database", default="oal", help="default: oal")
    source.add_argument("--ap", metavar="ID", help="only this access point")
    source.add_argument("--site", metavar="NAME", help="only this site")
    source.add_argument(
        "--from",
        dest="begin",
        metavar="TIME",
        type=instant,
        help="ISO 8601 (UTC unless it says otherwise), or an age such as 90m, 24h, 7d",
    )
    source.add_argument("--to", dest="end", metavar="TIME", type=instant, help="likewise; that instant is not included")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write report.md, report.json and pictures there")


def _mlflow(parser) -> None:
    group = parser.add_argument_group("MLflow")
    group.add_argument("--tracking-uri", metavar="URL", help="instead of that in --config")
    group.add_argument("--mlflow-user", metavar="NAME")
    group.add_argument("--mlflow-password-file", metavar="FILE")


def run_import(arguments) -> int:
    """Write a Parquet file of items in JSON lines."""
    from oal_training.stored import jsonl

    for path in (arguments.items, arguments.capture):
        if path and not path.is_file():
            raise TrainingError(f"{path}: no such file")
    rows, size = jsonl.convert(arguments.items, arguments.parquet, arguments.capture)
    print(f"{arguments.parquet}: {rows} items, {size} bytes")
    return 0


def run_fit(arguments) -> int:
    """Validate, fit, log, register; or repeat what a version was made by."""
    from oal_training import policies, tracking
    from oal_training.batch import config, report, run, versions
    from oal_training.lineage import Lineage
    from oal_training.places import Places
    from oal_training.stored import bins

    places = Places.of(arguments)
    retrained_from = None
    if arguments.retrain:
        if arguments.experiment or arguments.policy:
            raise TrainingError("--retrain repeats the experiment of a version; leave experiment file and policy out")
        if not places.tracking:
            raise TrainingError("--retrain needs MLflow: give --tracking-uri, or --config with a section mlflow")
        name, retrained_from = tracking.split_version(arguments.retrain)
        found = tracking.origin(places.tracking, name, retrained_from)
        if found.tags.get("oal.experiment") == "window":
            from oal_training.window import command as window

            return window.retrain(arguments, places, retrained_from)
        experiment, wanted = config.retrain(found)
        log(f"repeating {name}/{retrained_from}: {experiment.name}")
        policy = found.tags.get("policy")
    else:
        experiment, wanted, policy = config.experiment(arguments), None, arguments.policy
        if policy and places.tracking and not arguments.register:
            arguments.register = policies.learns(policy).role("class").registered
    if arguments.register and not places.tracking:
        raise TrainingError("--register needs MLflow: give --tracking-uri, or --config with a section mlflow")
    if places.tracking:
        places.tracking.check()
    items, source = config.items(arguments, places, experiment, wanted, log)
    log(items.describe())
    lineage = Lineage.of(items.source)
    if arguments.register:
        versions.check(lineage, experiment.model.kind in ("decision_tree", "distilled"), policy)
    parts, skipped = run.evaluate(items, experiment, log)
    fitted_on, held_out = run.hold_out(items, experiment, log)
    model = run.fit(fitted_on, experiment, log)
    tree = run.as_tree(model)
    if tree is not None and held_out is not None:
        parts = [*parts, run.judge_held_out(held_out, tree, experiment.model.kind, experiment)]
    with tempfile.TemporaryDirectory(prefix="oal-report-") as temporary:
        folder = arguments.out or Path(temporary)
        report.write(folder, experiment.name, items, parts, skipped)
        bins.write(folder, fitted_on)
        _print(parts, skipped, items)
        if places.tracking:
            made = versions.log_run(
                places.tracking,
                name=experiment.name,
                lineage=lineage,
                experiment_text=experiment.text,
                source=source,
                figures=run.mlflow_figures(parts, experiment.model.kind) | run.share(items),
                folder=folder,
                tree=tree,
                parts=parts,
                fitted_on=fitted_on,
                held_out=held_out,
                register=arguments.register,
                retrained_from=retrained_from,
                params=run.params(experiment),
                policy=policy,
            )
            print(
                f"MLflow run {made['run_id']}"
                + (f", registered as {arguments.register}/{made['version']}" if made["version"] else "")
            )
            if arguments.result:
                _write_whole(arguments.result, json.dumps(made) + "\n")
    if arguments.out:
        print(f"report in {arguments.out}")
    return 0


def run_evaluate(arguments) -> int:
    """Validate an experiment's model, or a registered tree on later items."""
    from oal_training import tracking
    from oal_training.batch import config, report, run, stored_tree
    from oal_training.places import Places

    places = Places.of(arguments)
    if bool(arguments.version) == bool(arguments.experiment):
        raise TrainingError("give either an experiment file or --version")
    if not arguments.version:
        experiment = config.experiment(arguments)
        items, _ = config.items(arguments, places, experiment, None, log)
        log(items.describe())
        parts, skipped = run.evaluate(items, experiment, log)
        title = experiment.name
    else:
        if not places.tracking:
            raise TrainingError("--version needs MLflow: give --tracking-uri, or --config with a section mlflow")
        found = tracking.origin(places.tracking, *tracking.split_version(arguments.version))
        experiment, wanted = config.retrain(found)
        items, _ = config.items(arguments, places, experiment, wanted, log)
        log(items.describe())
        tree = stored_tree.fetch(places.tracking, found)
        parts, skipped = [
            run.validate_tree(items, tree, arguments.version, int(found.tags["oal.to_us"]), experiment)
        ], []
        title = arguments.version
    if arguments.out:
        report.write(arguments.out, title, items, parts, skipped)
    _print(parts, skipped, items)
    return 0


def run_rebuild(arguments) -> int:
    """Make a version again; 1 when it is another."""
    from oal_training import tracking
    from oal_training.batch import rebuild
    from oal_training.places import Places

    places = Places.of(arguments)
    if not places.tracking:
        raise TrainingError("rebuild needs MLflow: give --tracking-uri, or --config with a section mlflow")
    if bool(arguments.run_id) == bool(arguments.version):
        raise TrainingError("give either a run's id or --version")
    if arguments.version:
        found = tracking.origin(places.tracking, *tracking.split_version(arguments.version))
    else:
        found = tracking.of_run(places.tracking, arguments.run_id)
    made = rebuild.rebuild(places.tracking, found, log)
    print(made.said())
    return 0 if made.same else 1


def run_compare(arguments) -> int:
    """Print the table of all models, and log it."""
    from oal_training.batch import compare
    from oal_training.places import Places

    tracking = Places.of(arguments).tracking
    if tracking:
        tracking.check()
    names = arguments.models.split(",") if arguments.models else None
    print(
        compare.run(
            arguments.items,
            arguments.other,
            names,
            arguments.folds,
            arguments.test_share,
            arguments.online_settings,
            arguments.out,
            log,
            arguments.split,
            tracking,
        ),
        flush=True,
    )
    if not arguments.no_window:
        print("\n" + compare.window_table(log))
    return 0


def run_limits(arguments) -> int:
    """Print both tables, and write them."""
    from oal_training.batch import choosing, compare, corpus, limits

    if arguments.choosing:
        name, result = "choosing", [choosing.run(p, arguments.choosing.split(","), log) for p in arguments.items]
        lines = choosing.text(result)
    else:
        spec = compare.specs([arguments.model])[arguments.model]
        name, result = "limits", limits.run(corpus.read(arguments.items, log)[2], spec, log)
        lines = limits.text(result, spec)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        _write_whole(arguments.out / f"{name}.json", json.dumps(result, indent=1) + "\n")
        _write_whole(arguments.out / f"{name}.md", lines + "\n")
    print(lines, flush=True)
    return 0


def _write_whole(path: Path, text: str) -> None:
    """Write a file that is either not there or whole."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _print(parts, skipped, items) -> None:
    from oal_training.batch import report

    for part in parts:
        print(f"\n{part.split}\n\n{report.summary(part, items.classes)}\n")
        print("\n".join(f"- {note}" for note in part.notes))
    for reason in skipped:
        print(f"- not done: {reason}")
