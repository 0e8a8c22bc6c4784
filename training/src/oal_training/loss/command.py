"""`oal-train loss-cause`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from oal_training.arguments import instant, log
from oal_training.errors import TrainingError

EXPERIMENT = "loss-cause"
MODEL_FILE, REPORT_FILE = "centroids.json", "loss-cause.md"


def register(add) -> None:
    """Add the command to `oal-train`."""
    parser = add(
        "loss-cause",
        help="a sender's model of its losses: two clusters of congestion window and round trip, as integers",
        description=(
            "Fits two clusters of congestion window and round trip at the sender (policies/loss-cause/kmeans.yaml),"
            " says whether they are some and which is congestion, and compiles them to integers with golden vectors."
            " Nothing acts on it yet."
        ),
    )
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="of oal-sniffer; none: ClickHouse")
    parser.add_argument("--from", dest="begin", metavar="TIME", type=instant, default="24h", help="default 24h, an age")
    parser.add_argument("--to", dest="end", metavar="TIME", type=instant, default="0s", help="default now")
    parser.add_argument("--out", metavar="DIR", type=Path, help=f"write {MODEL_FILE} and {REPORT_FILE} there")
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML: sections mlflow, clickhouse")
    parser.add_argument("--tracking-uri", metavar="URL", help="log a run there, instead of that in --config")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    """Fit, print, write, log."""
    from oal_training.loss import clusters, points, report
    from oal_training.places import Places
    from oal_training.tracking import log_report

    places = Places.of(arguments)
    if not arguments.files and not places.connection:
        raise TrainingError("give files of oal-sniffer, or --config with a section clickhouse")
    if places.tracking:
        places.tracking.check()
    if arguments.files:
        found = points.of_files(arguments.files)
    else:
        found = points.of_clickhouse(places.connection, arguments.begin, arguments.end)
    log(f"{len(found.x)} points of {len(set(found.flow.tolist()))} connections")
    fitted = clusters.fit(found)
    text = report.markdown(fitted, len(set(found.flow.tolist())))
    print(text, end="")
    with tempfile.TemporaryDirectory(prefix="oal-loss-") as temporary:
        folder = arguments.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MODEL_FILE).write_text(fitted.integers().dumps(fitted.golden(found.x)), encoding="utf-8")
        (folder / REPORT_FILE).write_text(text, encoding="utf-8")
        if places.tracking:
            figures, params = report.figures(fitted), points.settings()
            run_id = log_report(places.tracking, EXPERIMENT, EXPERIMENT, found.lineage, figures, folder, params)
            print(f"\nMLflow run {run_id}")
    return 0
