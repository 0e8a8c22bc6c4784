"""Plays one policy of this tree through every stage, on a platform of its own, and prints what was seen as JSON.

    python tests/play_policy.py NAME FOLDER

Its manifest is in schema/generated/policies.json. Replayed access points send; Flink makes items of it; the model is
trained on them and registered; `champion` is set in MLflow; the registry signs a bundle and releases it; the push
service delivers it; the access points predict with it, its law decides in shadow, and rows of `action` say so. Then the
alias is taken away, and the access points give the policy up. test_policy_frame.py says what must have been seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "schema/src"), str(ROOT / "platform/local/src"), str(ROOT / "tests")]

from flow import until  # noqa: E402
from looped import Looped, now_us  # noqa: E402
from oal_local import loop, mlflow, registry  # noqa: E402
from oal_local.platform import Platform  # noqa: E402

BASE = "rwnd-fair"
ITEMS = 900  # of three access points, before a model is trained: half a minute


def train(platform: Platform, policy: str) -> str:
    """A registered version of the policy's model, fitted on its items in ClickHouse; what the command printed."""
    command = [ROOT / "training/oal-train", "fit", "--policy", policy, "--tracking-uri", mlflow.url(platform.settings),
               "--config", registry.config_file(platform.state)]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def alias(platform: Platform, model: str, version: int | None) -> None:
    """Set `champion` on a version, or take it away."""
    if version is None:
        platform.mlflow.api("registered-models/alias", {"name": model, "alias": "champion"}, "DELETE")
    else:
        platform.mlflow.api("registered-models/alias", {"name": model, "alias": "champion", "version": str(version)})


def play(policy: str, folder: Path) -> dict:
    manifests = {m["name"]: m for m in json.loads((ROOT / "schema/generated/policies.json").read_text())["policies"]}
    model = next(m["registered"] for m in manifests[policy]["models"] if m["role"] == "class")
    with Platform(folder / "state", ports="auto", checkpoint_interval="2s", approvals="none",
                  parallelism=1) as platform:
        loop.seed(platform, (loop.TREE,))
        seen = Looped(platform, folder)
        seen.source.start()
        try:
            until("items of the policy", lambda:
                  seen.count(f"SELECT count() FROM oal.item WHERE policy = '{policy}' AND complete") >= ITEMS)
            items = {row["policy"]: row["n"] for row in platform.clickhouse.rows(
                "SELECT policy, count() AS n FROM oal.item GROUP BY policy")}
            train(platform, policy)
            at = now_us()
            alias(platform, model, 1)
            applied = (f"state = 1 AND ts >= fromUnixTimestamp64Micro({at}) AND bundle IN"
                       f" (SELECT bundle FROM oal.release WHERE model = '{model}')")
            until("every AP applied the policy's bundle",
                  lambda: seen.aps("bundle_status", applied) == set(seen.ap_ids))
            rows = f"policy = '{policy}' AND value > 0"
            until("the law decided", lambda: seen.count(f"SELECT count() FROM oal.action WHERE {rows}") > 0)
            actions = platform.clickhouse.rows(
                f"SELECT DISTINCT kind, backend, reason, value FROM oal.action WHERE {rows}")
            until("the base policy decides too", lambda: seen.count(
                f"SELECT count() FROM oal.action WHERE policy = '{BASE}' AND value > 0") > 0)
            alias(platform, model, None)
            released = f"policy = '{policy}' AND value = 0"
            until("its effects are given up",
                  lambda: seen.count(f"SELECT count() FROM oal.action WHERE {released}") > 0)
            at = now_us()
            until("the base policy goes on", lambda: seen.aps(
                "decision", f"ts >= fromUnixTimestamp64Micro({at})") == set(seen.ap_ids))
            rejected = seen.count("SELECT count() FROM oal.bundle_status WHERE state = 2")
        finally:
            seen.source.exporter.stop()
    return {"items": items, "actions": actions, "aps": len(seen.ap_ids), "rejected": rejected}


if __name__ == "__main__":
    print(json.dumps(play(sys.argv[1], Path(sys.argv[2])), default=str))
