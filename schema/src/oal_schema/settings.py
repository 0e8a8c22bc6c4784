"""Settings and tables of the contract at run time, from `generated/schema.json`: no protoc, no YAML."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

FILE = Path(__file__).resolve().parents[2] / "generated" / "schema.json"


@lru_cache(maxsize=1)
def policies() -> list[dict]:
    """Policies of `generated/policies.json`, rwnd-fair first: manifest, and the feature program with its hash and
    words.
    """
    return json.loads(FILE.with_name("policies.json").read_text())["policies"]


@lru_cache(maxsize=1)
def generated() -> dict:
    """The whole of `generated/schema.json`."""
    return json.loads(FILE.read_text())


def settings() -> dict:
    """`settings.yaml` as the generator saw it."""
    return generated()["settings"]


def tables() -> list[dict]:
    """Tables in order of id, each with its `columns`."""
    return generated()["tables"]


@lru_cache(maxsize=1)
def interpreted() -> SimpleNamespace:
    """Settings, and tables with their columns as objects: what the interpreter of feature programs needs of the
    contract.
    """
    made = [SimpleNamespace(**t | {"columns": [SimpleNamespace(**c) for c in t["columns"]]}) for t in tables()]
    return SimpleNamespace(settings=settings(), tables=made)
