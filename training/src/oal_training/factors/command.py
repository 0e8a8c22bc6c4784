"""`oal-train factors`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from oal_training.arguments import instant, log
from oal_training.errors import TrainingError

CAPTURES = Path(__file__).resolve().parents[4] / "lab/captures"


def register(add) -> None:
    """Add the command to `oal-train`."""
    factors = add(
        "factors",
        help="what goes with congestion loss: Kendall's tau and information gain of every metric, beside the paper's",
        description=(
            "Kendall's tau-b and information gain of every feature with the congestion loss ratio, with intervals by"
            " bootstrap over blocks of time, beside the paper's Table 2; the loss ratio's distribution (Fig. 4) and"
            " nine metrics with the loss over them (Fig. 5) as pictures. See docs/paper.md."
        ),
    )
    factors.add_argument(
        "--source",
        metavar="FILE",
        type=Path,
        action="append",
        help=(
            "Parquet file of import-items, or a folder of them (the corpus: `lab/corpus/run --where`); may be given"
            " several times (default: the two captures of lab/captures)"
        ),
    )
    factors.add_argument("--config", metavar="FILE", type=Path, help="YAML with the sections mlflow and clickhouse")
    factors.add_argument("--clickhouse", metavar="URL", help="items of ClickHouse instead of files")
    factors.add_argument("--clickhouse-user", default="analyst", metavar="NAME", help="default: analyst")
    factors.add_argument("--clickhouse-password-file", metavar="FILE")
    factors.add_argument("--database", default="oal", help="default: oal")
    factors.add_argument("--ap", metavar="ID", help="only this access point")
    factors.add_argument("--site", metavar="NAME", help="only this site")
    factors.add_argument("--from", dest="begin", metavar="TIME", type=instant, help="ISO 8601, or an age such as 24h")
    factors.add_argument("--to", dest="end", metavar="TIME", type=instant, help="likewise")
    factors.add_argument("--rounds", type=_rounds, default=500, help="draws of the bootstrap (default 500)")
    factors.add_argument("--out", metavar="DIR", type=Path, help="write factors.md, factors.json and pictures there")
    tracking(factors)
    factors.set_defaults(run=run)


def _rounds(text: str) -> int:
    value = int(text)
    if not 20 <= value <= 100_000:
        raise argparse.ArgumentTypeError("20 to 100000 draws")
    return value


def tracking(parser) -> None:
    """Options that say where MLflow is."""
    group = parser.add_argument_group("MLflow")
    group.add_argument("--tracking-uri", metavar="URL", help="log a run there, instead of that in --config")
    group.add_argument("--mlflow-user", metavar="NAME")
    group.add_argument("--mlflow-password-file", metavar="FILE")


def read(arguments, places):
    """The items, of files or of ClickHouse."""
    from oal_training.factors import measures
    from oal_training.stored import clickhouse, parquet
    from oal_training.stored.items import concatenated

    if arguments.source and arguments.clickhouse:
        raise TrainingError("give either --source or --clickhouse")
    if places.connection and not arguments.source:
        return clickhouse.read(
            places.connection, arguments.ap, arguments.site, arguments.begin, arguments.end, log=log
        )
    given = arguments.source or [CAPTURES / "learning.items.parquet", CAPTURES / "learning2.items.parquet"]
    files = [file for path in given for file in (sorted(path.glob("*.parquet")) if path.is_dir() else [path])]
    if not files:
        raise TrainingError(f"no Parquet file in {', '.join(map(str, given))}")
    every = [
        (path.name.removesuffix(".parquet").removesuffix(".items"),
         parquet.read(path, None, arguments.ap, arguments.site, arguments.begin, arguments.end, log))
        for path in files
    ]  # fmt: skip
    return concatenated(measures.apart(every))


def run(arguments) -> int:
    """Measure, print, write, log."""
    from oal_training.factors import measures, report
    from oal_training.lineage import Lineage
    from oal_training.places import Places
    from oal_training.tracking import log_report

    places = Places.of(arguments)
    if places.tracking:
        places.tracking.check()
    items = measures.measured(read(arguments, places))
    if not len(items):
        raise TrainingError("of no item the loss ratio now is known; take a longer range")
    loss, found = measures.loss(items, arguments.rounds), measures.rows(items, arguments.rounds, log)
    print(report.markdown(items, found, loss), end="")
    with tempfile.TemporaryDirectory(prefix="oal-factors-") as temporary:
        folder = arguments.out or Path(temporary)
        if arguments.out or places.tracking:
            report.write(folder, items, found, loss)
        if places.tracking:
            figures, params = report.mlflow_figures(found, loss), {"rounds": arguments.rounds, "items": len(items)}
            lineage = Lineage.of(items.source)
            run_id = log_report(places.tracking, "factors", "factors", lineage, figures, folder, params)
            print(f"\nMLflow run {run_id}")
    return 0
