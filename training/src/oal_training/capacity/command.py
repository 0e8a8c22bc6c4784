"""`oal-train capacity`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from oal_training.arguments import log


def register(add) -> None:
    """Add the command to `oal-train`."""
    capacity = add(
        "capacity",
        help="what a station will carry in the next 100 to 500 ms: a model beside the cheapest rules",
        description=(
            "Fits a forecast of what each station carries in the next 100, 200 and 500 ms while data waits for it, on"
            " the corpus's sites of train, and judges it on those of test beside the cheapest rules (the last rates,"
            " PHY rate times share of the air), of which the best on validation is the rival. See"
            " policies/rwnd-fair/README.md."
        ),
    )
    capacity.add_argument("corpus", metavar="DIR", type=Path, help="the corpus's items: `lab/corpus/run --where`")
    capacity.add_argument("--out", metavar="FILE", type=Path, help="write the figures there, as JSON")
    capacity.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the table; the exit status."""
    from oal_training.capacity import judge, report, samples

    found = samples.of_corpus(arguments.corpus, log)
    judged = [judge.judge(found, horizon) for horizon in samples.HORIZONS_US]
    print(report.table(judged))
    if arguments.out:
        arguments.out.write_text(json.dumps(report.rounded(judged), indent=1) + "\n")
    return 0
