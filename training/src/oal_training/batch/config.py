"""From command line and configuration to connections and items."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from oal_training.batch import clickhouse, parquet
from oal_training.batch import experiment as experiments
from oal_training.batch.clickhouse import Connection
from oal_training.batch.experiment import Experiment
from oal_training.batch.items import Items, concatenated
from oal_training.batch.registry import Origin, Tracking
from oal_training.errors import TrainingError


@dataclass(frozen=True)
class Places:
    """Where things are; None where nothing was said."""

    tracking: Tracking | None
    connection: Connection | None


def _section(config: dict, name: str, kind: type):
    values = config.get(name)
    if values is None:
        return None
    try:
        return kind(**values)
    except TypeError as error:
        raise TrainingError(f"section {name} of the configuration: {error}") from None


def of(arguments) -> Places:
    """Connections from --config, with what the command line says instead."""
    config = {}
    if arguments.config:
        try:
            config = yaml.safe_load(arguments.config.read_text(encoding="utf-8")) or {}
        except (OSError, yaml.YAMLError) as error:
            raise TrainingError(f"{arguments.config}: {error}") from None
        if not isinstance(config, dict):
            raise TrainingError(f"{arguments.config} must hold sections, such as mlflow and clickhouse")
    tracking, connection = _section(config, "mlflow", Tracking), _section(config, "clickhouse", Connection)
    if arguments.tracking_uri or arguments.mlflow_user:
        tracking = Tracking(
            arguments.tracking_uri or (tracking.tracking_uri if tracking else ""),
            arguments.mlflow_user or (tracking.user if tracking else None),
            arguments.mlflow_password_file or (tracking.password_file if tracking else None),
        )
    if arguments.clickhouse:
        if not arguments.clickhouse_password_file:
            raise TrainingError("--clickhouse needs --clickhouse-password-file")
        connection = Connection(
            arguments.clickhouse, arguments.clickhouse_user, arguments.clickhouse_password_file, arguments.database
        )
    return Places(tracking, connection)


def experiment(arguments) -> Experiment:
    """The experiment named on the command line."""
    if not arguments.experiment:
        raise TrainingError(
            f"no experiment; there are {', '.join(str(p) for p in sorted(experiments.EXPERIMENTS.glob('*.yaml')))}"
        )
    return experiments.load(arguments.experiment)


def retrain(found: Origin, places: Places) -> tuple[Experiment, dict]:
    """Experiment of a version, and which items it asks for now: same AP and site, same length of time, ending now."""
    try:
        source = json.loads(found.tags["oal.source"])
    except (KeyError, ValueError):
        raise TrainingError(
            f"the run of {found.name}/{found.version} has no tag oal.source; it was not made by this program"
        ) from None
    return experiments.parse(found.experiment, f"experiment of {found.name}/{found.version}"), source


def items(arguments, places: Places, what: Experiment, wanted: dict | None, log) -> tuple[Items, dict]:
    """The items, and how to ask for such items again ({ap, site, last_s}).

    Command line before `wanted` before the experiment.
    """
    wanted = wanted or {}
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
    found = clickhouse.read(places.connection, ap, site, begin, end, log=log)
    return found, {"kind": "clickhouse", "ap": ap, "site": site, "last_s": round(last_s)}
