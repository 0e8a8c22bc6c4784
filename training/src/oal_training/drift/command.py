"""`oal-train drift`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from oal_training.arguments import instant, log
from oal_training.errors import TrainingError
from oal_training.policies import RWND_FAIR


def register(add) -> None:
    """Add the command to `oal-train`."""
    drift = add(
        "drift",
        help="how far the features of late are from those that a version was trained on",
        description=(
            "Population stability index (PSI) of each feature, of all items that the version is for together and of"
            " each access point, against the bins that were kept when it was trained. model-registry runs this on its"
            " schedule. What has too few items is left out."
        ),
    )
    drift.add_argument("version", metavar="NAME/VERSION", help="a version of `oal-train fit --register`")
    drift.add_argument("--from", dest="begin", metavar="TIME", type=instant, default="24h", help="default 24h, an age")
    drift.add_argument("--config", metavar="FILE", type=Path, required=True, help="YAML: mlflow and clickhouse")
    drift.add_argument("--tracking-uri", metavar="URL", help="MLflow, instead of the file's")
    drift.add_argument("--result", metavar="FILE", type=Path, help="write what was found there, as JSON")
    drift.set_defaults(run=run)


def run(arguments) -> int:
    """Print the features that moved most, and write the result."""
    from oal_training import tracking
    from oal_training.places import Places
    from oal_training.stored import bins, clickhouse

    places = Places.of(arguments)
    if not places.tracking or not places.connection:
        raise TrainingError("drift needs MLflow and ClickHouse: --config with sections mlflow and clickhouse")
    name, version = tracking.split_version(arguments.version)
    text, tags = _kept(places.tracking, name, version)
    reference = bins.parse(text)
    source = json.loads(tags.get("oal.source") or "{}")
    items = clickhouse.read(
        places.connection,
        source.get("ap"),
        source.get("site"),
        arguments.begin,
        log=log,
        policy=source.get("policy") or RWND_FAIR,
    )
    result = measure(reference, items)
    for feature, value in sorted((result["all"] or {}).items(), key=lambda one: -one[1])[:10]:
        print(f"{value:8.3f}  {feature}")
    if arguments.result:
        temporary = arguments.result.with_name(arguments.result.name + ".tmp")
        temporary.write_text(json.dumps(result) + "\n", encoding="utf-8")
        temporary.replace(arguments.result)
    return 0


def _kept(where, name: str, version: str) -> tuple[str, dict]:
    """The bins that were kept with a version, and the tags of its run."""
    from oal_training.stored import bins
    from oal_training.tracking import said

    mlflow = where.connect()
    with said(f"reading {name}/{version}"), tempfile.TemporaryDirectory() as folder:
        client = mlflow.MlflowClient()
        run = client.get_run(client.get_model_version(name, version).run_id)
        if f"report/{bins.FILE}" not in {one.path for one in client.list_artifacts(run.info.run_id, "report")}:
            raise TrainingError(f"{name}/{version} kept no {bins.FILE}; versions trained from now on do")
        file = client.download_artifacts(run.info.run_id, f"report/{bins.FILE}", folder)
        return Path(file).read_text(encoding="utf-8"), dict(run.data.tags)


def measure(reference: dict, items) -> dict:
    """{"items", "from_us", "to_us", "all": PSI by feature or None, "aps": {AP: {"items", "psi"}}}, APs with enough."""
    from oal_training.stored import bins

    aps = {}
    for ap in items.groups:
        own = items[items.group == ap]
        if (found := bins.psi(reference, own)) is not None:
            aps[ap] = {"items": len(own), "psi": found}
    return {
        "items": len(items),
        "from_us": int(items.ts_us.min()),
        "to_us": int(items.ts_us.max()),
        "all": bins.psi(reference, items),
        "aps": aps,
    }
