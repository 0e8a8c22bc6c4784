"""Metrics that a rollout may name, with the limits that a canary has unless it says others: `rollout_metrics.yaml`."""

from __future__ import annotations

import json
from functools import lru_cache

from .settings import FILE

SOURCE = FILE.parents[1] / "rollout_metrics.yaml"
OF = ("answers", "model", "users")


def as_json() -> str:
    """What the generator writes. ValueError names the entry that is wrong."""
    import yaml

    metrics = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    for name, entry in metrics.items():
        if set(entry) - {"canary_limit"} != {"of", "meaning"} or entry["of"] not in OF:
            raise ValueError(f"{SOURCE.name}: {name} needs `meaning`, `of` ({', '.join(OF)}), perhaps `canary_limit`")
    return json.dumps(metrics, indent=1) + "\n"


@lru_cache(maxsize=1)
def known() -> dict[str, dict]:
    """By name: `of`, `meaning` and, if a canary has it by default, `canary_limit`."""
    return json.loads(FILE.with_name("rollout_metrics.json").read_text(encoding="utf-8"))
