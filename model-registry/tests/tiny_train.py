"""A training command with the interface of `oal-train fit --retrain`, small but real: it fits a tree on new items and
registers it.

usage: tiny_train.py BEHAVIOUR_FILE fit --retrain MODEL/VERSION --tracking-uri URI --config FILE --register NAME
--result FILE BEHAVIOUR_FILE holds one word: fit; fail; wait (until it says something else); orphan (register, then wait
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
    sys.path.insert(0, str(Path(__file__).parent))
    from owner import Owner

    owner = Owner(options.tracking_uri, section["user"], Path(section["password_file"]).read_text().strip())
    made = owner.register(seed=int(version) + 100, name=options.register, tags={"retrained_from": version})
    while options.behaviour.read_text() == "orphan":
        time.sleep(0.05)
    Path(options.result).write_text(
        json.dumps({"version": made, "run_id": owner.client.get_model_version(model, str(made)).run_id})
    )


if __name__ == "__main__":
    main()
