"""A training command with the interface of `oal-train fit --retrain`, small but real: what it registers is a version of
MLflow with a run of its own.

usage: tiny_train.py BEHAVIOUR_FILE fit --retrain MODEL/VERSION --tracking-uri URI --config FILE --register NAME
--result FILE

BEHAVIOUR_FILE holds one word: fit (a tree on new items); again (the model of the version that was asked for, once more:
a tenth of the time of a fit); fail; wait (until it says something else, then as `again`); orphan (as `again`, then wait
without writing the result).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import yaml


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("behaviour", type=Path)
    parser.add_argument("command", choices=["fit"])
    for name in ("--retrain", "--tracking-uri", "--config", "--register", "--result"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    model, _, version = options.retrain.partition("/")
    print(f"training anew what {model}/{version} was trained with", file=sys.stderr)
    if options.behaviour.read_text() == "fail":
        sys.exit("tiny_train: too few items: 37, need 200")
    while options.behaviour.read_text() == "wait":
        time.sleep(0.05)
    section = yaml.safe_load(Path(options.config).read_text())["mlflow"]
    login = section["user"], Path(section["password_file"]).read_text().strip()
    register = fit if options.behaviour.read_text() == "fit" else again
    made, run_id = register(options.tracking_uri, login, model, version, options.register)
    while options.behaviour.read_text() == "orphan":
        time.sleep(0.05)
    Path(options.result).write_text(json.dumps({"version": made, "run_id": run_id}))


def fit(uri: str, login: tuple[str, str], model: str, version: str, name: str) -> tuple[int, str]:
    """Fit a tree and register it; version and run."""
    sys.path.insert(0, str(Path(__file__).parent))
    from owner import Owner

    owner = Owner(uri, *login)
    made = owner.register(seed=int(version) + 100, name=name, tags={"retrained_from": version})
    return made, owner.client.get_model_version(model, str(made)).run_id


def again(uri: str, login: tuple[str, str], model: str, version: str, name: str) -> tuple[int, str]:
    """Register the model of the old version under a new run, through MLflow's REST interface alone; version and run."""
    import requests

    def ask(method: str, path: str, **options) -> dict:
        answer = requests.request(method, f"{uri}/api/2.0/mlflow/{path}", auth=login, timeout=20, **options)
        answer.raise_for_status()
        return answer.json()

    old = ask("GET", "model-versions/get", params={"name": model, "version": version})["model_version"]
    now = time.time_ns() // 1_000_000
    run_id = ask("POST", "runs/create", json={"experiment_id": "0", "start_time": now})["run"]["info"]["run_id"]
    tags = [{"key": "retrained_from", "value": version}]
    model_id = old["source"].removeprefix("models:/")
    wanted = {"name": name, "source": old["source"], "model_id": model_id, "run_id": run_id, "tags": tags}
    made = ask("POST", "model-versions/create", json=wanted)["model_version"]["version"]
    ask("POST", "runs/update", json={"run_id": run_id, "status": "FINISHED", "end_time": now})
    return int(made), run_id


if __name__ == "__main__":
    main()
