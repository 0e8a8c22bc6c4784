"""From the command line and a version's own record to an experiment and its items."""

from __future__ import annotations

import json
import time
from pathlib import Path

from oal_training import policies
from oal_training.batch import experiment as experiments
from oal_training.batch.experiment import Experiment
from oal_training.errors import TrainingError
from oal_training.places import Places
from oal_training.stored import clickhouse, parquet
from oal_training.stored.items import Items, concatenated
from oal_training.tracking import Origin


def experiment(arguments) -> Experiment:
    """The experiment named on the command line: a file, or that of a policy."""
    if not arguments.experiment and arguments.policy:
        return experiments.load(policies.file(policies.learns(arguments.policy).name, "experiment.yaml"))
    if not arguments.experiment:
        raise TrainingError(
            "no experiment; there are"
            f" {', '.join(str(p) for p in (experiments.OWN, *sorted(experiments.EXPERIMENTS.glob('*.yaml'))))}"
        )
    return experiments.load(arguments.experiment)


def retrain(found: Origin) -> tuple[Experiment, dict]:
    """Experiment of a version, and which items it asks for now: same AP and site, same length of time, ending now."""
    try:
        source = json.loads(found.tags["oal.source"])
    except (KeyError, ValueError):
        raise TrainingError(
            f"the run of {found.name}/{found.version} has no tag oal.source; it was not made by this program"
        ) from None
    if found.tags.get("policy"):
        policies.learns(found.tags["policy"])
    return experiments.parse(found.experiment, f"experiment of {found.name}/{found.version}"), source


def items(arguments, places: Places, what: Experiment, wanted: dict | None, log) -> tuple[Items, dict]:
    """The items, and how to ask for such items again ({ap, site, last_s, policy}).

    Command line before `wanted` before the experiment.
    """
    wanted = wanted or {}
    policy = arguments.policy or wanted.get("policy") or policies.RWND_FAIR
    ap = arguments.ap or wanted.get("ap") or what.source.ap
    site = arguments.site or wanted.get("site") or what.source.site
    last_s = wanted.get("last_s") or what.source.last_s
    if arguments.source:
        if arguments.clickhouse:
            raise TrainingError("give either --source or --clickhouse")
        found = [
            parquet.read(Path(path), what.columns, ap, site, arguments.begin, arguments.end, log)
            for path in arguments.source
        ]
        return concatenated(found), {
            "kind": "file",
            "ap": arguments.ap,
            "site": arguments.site,
            "last_s": what.source.last_s,
            "policy": policy,
        }
    if not places.connection:
        raise TrainingError(
            "where are the items? Give --source FILE, or --clickhouse URL, or --config with a section clickhouse"
        )
    end = arguments.end
    if arguments.begin is not None:
        begin = arguments.begin
        last_s = ((end if end is not None else time.time() * 1e6) - begin) / 1e6
    else:
        begin = int((end if end is not None else time.time() * 1e6) - last_s * 1e6)
    found = clickhouse.read(places.connection, ap, site, begin, end, log=log, policy=policy)
    return found, {"kind": "clickhouse", "ap": ap, "site": site, "last_s": round(last_s), "policy": policy}
