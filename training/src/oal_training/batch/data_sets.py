"""The items of a run in MLflow: kept as files by their hash, and shown as its data sets (page: *Datasets used*)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from oal_training.lineage import TAG
from oal_training.stored import kept
from oal_training.stored.items import Items

TRAINING, EVALUATION = "training", "evaluation"
UNTIL_TAG = TAG + "trained_until_us"  # instant of the last item that the model was fitted on
MAX_DIGEST = 36  # characters, MLflow's limit
# What `Items.source` says of where they came from.
SOURCE = (
    "query",
    "query_parameters",
    "data_sha256",
    "file",
    "file_sha256",
    "ap",
    "site",
    "begin_us",
    "end_us",
    "items_there",
    "share",
    "feature_hash",
    "schema_revision",
)


def hash_tag(role: str) -> str:
    """Tag of a run that says the SHA-256 of the kept items of a role."""
    return f"{TAG}{role}_sha256"


def keep(client, run_id: str, sets: dict[str, Items]) -> dict[str, str]:
    """Store the items of each role with the run; SHA-256 by role."""
    hashes = {}
    with tempfile.TemporaryDirectory(prefix="oal-kept-") as name:
        for role, items in sets.items():
            path = Path(name) / "items.parquet"
            hashes[role] = kept.write(path, items)
            path = path.rename(Path(name) / Path(kept.name(role, hashes[role])).name)
            client.log_artifact(run_id, str(path), kept.FOLDER)
            client.set_tag(run_id, hash_tag(role), hashes[role])
    client.set_tag(run_id, UNTIL_TAG, str(int(sets[TRAINING].ts_us[-1])))
    show(client, run_id, sets, hashes)
    return hashes


def show(client, run_id: str, sets: dict[str, Items], hashes: dict[str, str]) -> None:
    """Tell MLflow of the data sets: where they came from, when they are of, what is in them."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    inputs = []
    for role, items in sets.items():
        source = {key: items.source[key] for key in SOURCE if items.source.get(key) not in (None, "")}
        source |= {"kept_as": kept.name(role, hashes[role])}
        profile = {
            "items": len(items),
            "access_points": items.groups[:100],
            "from_us": int(items.ts_us[0]),
            "to_us": int(items.ts_us[-1]),
            "classes": {name: int((items.y == k).sum()) for k, name in enumerate(items.classes)},
            "onsets": int((items.candidates & items.congested).sum()),
        }
        columns = [{"name": name, "type": "double", "required": False} for name in items.names]
        columns.append({"name": "class", "type": "long", "required": True})
        inputs.append(
            DatasetInput(
                Dataset(
                    name=f"{items.source.get('file') or 'oal.item'} ({role})",
                    digest=hashes[role][:MAX_DIGEST],
                    source_type=items.source.get("kind", "file"),
                    source=json.dumps(source, sort_keys=True),
                    schema=json.dumps({"mlflow_colspec": columns}),
                    profile=json.dumps(profile, sort_keys=True),
                ),
                [InputTag("mlflow.data.context", role)],
            )
        )
    client.log_inputs(run_id, inputs)
