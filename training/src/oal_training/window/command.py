"""Commands `window dataset`, `window fit` and `window evaluate`."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from oal_training.arguments import instant, log
from oal_training.errors import TrainingError

CAPTURES = Path(__file__).resolve().parents[4] / "lab/captures"
DAY_US = 86_400_000_000
SAMPLES = CAPTURES / "window.parquet"


def register(add) -> None:
    """Add the commands to `oal-train`."""
    window = add(
        "window",
        help="the window model: samples, comparison of regressors, the model that APs run",
        description=(
            "The sender's congestion window, estimated from what the AP sees of a flow. See training/README.md, chapter"
            " Window model."
        ),
    )
    commands = window.add_subparsers(title="commands", metavar="COMMAND", required=True)

    make = commands.add_parser(
        "dataset",
        help="captures, or an AP's rows in ClickHouse, with what oal-sniffer saw → samples in Parquet",
        description=(
            "Join flows of captures with the state of their senders, at each decision instant. Beside NAME.oalcap must"
            " stand NAME.sender.jsonl.gz (lab/run, lab/oal-sniffer) and the capture's items: NAME.items.parquet"
            " (oal-train import-items) or NAME.items.jsonl (stream-jobs/items)."
        ),
    )
    make.add_argument("captures", metavar="NAME.oalcap", nargs="*", type=Path)
    make.add_argument(
        "--ap", metavar="ID", help="instead of captures: this AP's rows of flow, sender_tcp and item in ClickHouse"
    )
    make.add_argument(
        "--from",
        dest="begin",
        metavar="TIME",
        type=instant,
        help="ISO 8601 (UTC unless it says otherwise), or an age such as 90m, 24h, 7d; default 24h",
    )
    make.add_argument("--to", dest="end", metavar="TIME", type=instant, help="likewise; default now")
    make.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="YAML with the section clickhouse (model-registry's configuration will do)",
    )
    make.add_argument("--clickhouse", metavar="URL", help="HTTP address of ClickHouse instead of that in --config")
    make.add_argument("--clickhouse-user", default="analyst", metavar="NAME", help="default: analyst")
    make.add_argument("--clickhouse-password-file", metavar="FILE")
    make.add_argument("--database", default="oal", help="default: oal")
    make.add_argument("--out", metavar="FILE", type=Path, default=SAMPLES, help="default: lab/captures/window.parquet")
    make.set_defaults(run=run_dataset)

    evaluate = commands.add_parser(
        "evaluate",
        help="eight regressors, unacknowledged bytes alone against all inputs, in one table",
        description=(
            "Judge the regressors on the capture `learning` (settings were chosen on `learning2`), beside the paper's"
            " Table 6."
        ),
    )
    _samples(evaluate)
    evaluate.add_argument(
        "--split", action="append", choices=["time", "flow", "network"], help="may be repeated; default: all three"
    )
    evaluate.add_argument("--regressors", metavar="NAME,…", help="only these (default: all)")
    evaluate.add_argument("--out", metavar="DIR", type=Path, help="write report.md and report.json there")
    evaluate.set_defaults(run=run_evaluate)

    fit = commands.add_parser(
        "fit",
        help="judge XGBoost, fit it on all samples, log it, register it",
        description="Fit the regressor that runs on APs. Without MLflow it is only written to --out.",
    )
    _samples(fit)
    fit.add_argument(
        "--out", metavar="DIR", type=Path, help="write model.ubj, inputs.json, feature_program.oalf and report.md there"
    )
    fit.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="YAML with the section mlflow (model-registry's configuration will do)",
    )
    fit.add_argument("--tracking-uri", metavar="URL", help="instead of that in --config")
    fit.add_argument("--mlflow-user", metavar="NAME")
    fit.add_argument("--mlflow-password-file", metavar="FILE")
    fit.add_argument(
        "--register",
        metavar="NAME",
        help="make it a version of this registered model (window); refused when the run cannot name its data and code",
    )
    fit.add_argument("--result", metavar="FILE", type=Path, help='write {"version": n, "run_id": …} there at the end')
    fit.set_defaults(run=run_fit)

    paper = commands.add_parser(
        "paper",
        help="the paper's Tables 5 and 6 and Fig. 8 on our samples",
        description=(
            "What goes with the sender's window, R² of the paper's eight regressors by its split of rows and by time,"
            " and the window over time. See docs/paper.md."
        ),
    )
    _samples(paper)
    paper.add_argument("--out", metavar="DIR", type=Path, help="write window.md, window.json and window.png there")
    paper.add_argument("--config", metavar="FILE", type=Path, help="YAML with the section mlflow")
    paper.add_argument("--tracking-uri", metavar="URL", help="log a run of the experiment `factors` there")
    paper.add_argument("--mlflow-user", metavar="NAME")
    paper.add_argument("--mlflow-password-file", metavar="FILE")
    paper.set_defaults(run=run_paper)


def _samples(parser) -> None:
    parser.add_argument(
        "--samples",
        metavar="FILE",
        type=Path,
        default=SAMPLES,
        help="Parquet file of `window dataset` (default: lab/captures/window.parquet)",
    )


def beside(capture: Path) -> tuple[Path, Path]:
    """Sender file and items of a capture. TrainingError that says how to make what is missing."""
    stem = capture.with_suffix("")
    sender = Path(f"{stem}.sender.jsonl.gz")
    if not sender.is_file():
        raise TrainingError(f"{sender} is missing: record the capture with the sniffer (lab/run does)")
    for items in (Path(f"{stem}.items.parquet"), Path(f"{stem}.items.jsonl")):
        if items.is_file():
            return sender, items
    raise TrainingError(
        f"{stem}.items.parquet is missing: `stream-jobs/items {capture} > {stem.name}.items.jsonl`, then `oal-train"
        " import-items`"
    )


def run_dataset(arguments) -> int:
    """Build and write the samples."""
    from oal_training.places import Places
    from oal_training.window import clickhouse, dataset

    if bool(arguments.captures) == bool(arguments.ap):
        raise TrainingError("name captures (NAME.oalcap), or an AP in ClickHouse (--ap)")
    if arguments.ap:
        connection = Places.of(arguments).connection
        if not connection:
            raise TrainingError(
                "--ap needs ClickHouse: --clickhouse with --clickhouse-password-file, or --config with a section"
                " clickhouse"
            )
        end_us = arguments.end or time.time_ns() // 1000
        parts = [clickhouse.build(connection, arguments.ap, arguments.begin or end_us - DAY_US, end_us, log)]
    else:
        parts = [dataset.build(path, *beside(path), log=log) for path in arguments.captures]
    dataset.write(arguments.out, parts)
    print(f"{arguments.out}: {dataset.read(arguments.out).describe()}, {arguments.out.stat().st_size} bytes")
    return 0


def run_evaluate(arguments) -> int:
    """Print the comparison."""
    from oal_training.window import report
    from oal_training.window.regressors import REGRESSORS

    splits = arguments.split or list(report.SPLITS)
    names = arguments.regressors.split(",") if arguments.regressors else list(REGRESSORS)
    if unknown := sorted(set(names) - set(REGRESSORS)):
        raise TrainingError(f"no regressor {', '.join(unknown)}; there are {', '.join(REGRESSORS)}")
    lines = report.rows(arguments.samples, names, splits, log)
    text = (
        f"# Sender's congestion window from what the AP sees\n\n{report.markdown(lines)}\n\n{report.legend(splits)}\n"
    )
    print(text, end="")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "report.md").write_text(text, encoding="utf-8")
        (arguments.out / "report.json").write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    return 0


def run_paper(arguments) -> int:
    """Print, write and log the paper's tables."""
    from oal_training.places import Places
    from oal_training.tracking import log_report
    from oal_training.window import dataset, model, paper

    places = Places.of(arguments)
    if places.tracking:
        places.tracking.check()
    data = dataset.read(arguments.samples).of(paper.JUDGED)
    table_5, table_6 = paper.correlations(data), paper.regressions(data, log=log)
    curves = paper.over_time(data)
    print(paper.markdown(data, table_5, table_6, curves), end="")
    with tempfile.TemporaryDirectory(prefix="oal-window-") as temporary:
        folder = arguments.out or Path(temporary)
        paper.write(folder, data, table_5, table_6, curves)
        if places.tracking:
            figures, params = paper.mlflow_figures(table_5, table_6), {"samples": len(data), "capture": paper.JUDGED}
            lineage = model.lineage(data)
            run_id = log_report(places.tracking, "factors", "window paper", lineage, figures, folder, params)
            print(f"\nMLflow run {run_id}")
    return 0


def run_fit(arguments) -> int:
    """Judge, fit, log, register."""
    from oal_training.places import Places
    from oal_training.window import dataset

    places = Places.of(arguments)
    if arguments.register and not places.tracking:
        raise TrainingError("--register needs MLflow: --tracking-uri, or --config with a section mlflow")
    if not (places.tracking or arguments.out):
        raise TrainingError(
            "nothing to do with the model: say --out DIR, or where MLflow is (--tracking-uri, --config)"
        )
    return _fit(dataset.read(arguments.samples), places.tracking, arguments)


def retrain(arguments, places, version: str) -> int:
    """What `oal-train fit --retrain window/N` does: fit again on the last day of all APs whose senders told their side;
    `places`: see oal_training.places.
    """
    from oal_training.window import clickhouse, dataset

    if not places.connection:
        raise TrainingError(
            "--retrain needs ClickHouse: --clickhouse with --clickhouse-password-file, or --config with a section"
            " clickhouse"
        )
    end_us = arguments.end or time.time_ns() // 1000
    begin_us = arguments.begin or end_us - DAY_US
    aps = [arguments.ap] if arguments.ap else clickhouse.aps(places.connection, begin_us, end_us)
    with tempfile.TemporaryDirectory(prefix="oal-window-") as folder:
        samples = Path(folder) / "samples.parquet"
        dataset.write(samples, [clickhouse.build(places.connection, ap, begin_us, end_us, log) for ap in aps])
        return _fit(dataset.read(samples), places.tracking, arguments, samples, version)


def _fit(data, tracking, arguments, samples: Path | None = None, retrained_from: str | None = None) -> int:
    from oal_training.window import model, report, validation
    from oal_training.window.regressors import ON_AP, xgboost

    log(data.describe())
    scores = {split: validation.validate(xgboost, data, split) for split in ("time", "flow")}
    lines = [report.paper(), *(report.row(ON_AP, "all", f"by {split}", s) for split, s in scores.items())]
    table = report.markdown(lines)
    print(table)
    fitted = model.fit(data)
    if arguments.out:
        model.save(fitted, data, arguments.out)
        (arguments.out / "report.md").write_text(table + "\n", encoding="utf-8")
    result = {"version": None, "run_id": None}
    if tracking:
        figures = {f"{name}_by_{split}": value for split, s in scores.items() for name, value in s.figures().items()}
        result = model.log(tracking, fitted, data, figures, table, arguments.register, samples, retrained_from)
        print(f"run {result['run_id']}" + (f", {arguments.register}/{result['version']}" if result["version"] else ""))
    if arguments.result:
        arguments.result.write_text(json.dumps(result) + "\n", encoding="utf-8")
    return 0
