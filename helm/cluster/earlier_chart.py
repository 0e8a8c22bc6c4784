"""The chart of version 0.2.0 as it was: what installations that are upgraded were made of."""
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import earlier  # noqa: E402

#: Where the chart's own files and links lead to at that commit, and what makes its keys.
FOLDERS = ("helm/oal", "clickhouse", "local", "observe", "deploy/policies", "security", "schema")


def unpack(folder: Path) -> Path:
    """The chart's folder, in its tree. Skips where the history is not there."""
    if not earlier.there():
        pytest.skip(earlier.MISSING)
    return earlier.unpack(folder, *FOLDERS) / "helm" / "oal"


def examples(chart: Path) -> dict[str, Path]:
    """Its own examples by name: what a person who installed it has as values."""
    return {file.stem: file for file in sorted((chart / "examples").glob("*.yaml"))}


def keys(values: Path) -> set[str]:
    """Every key of a values file, with dots."""
    found: set[str] = set()

    def walk(value, path: tuple[str, ...]) -> None:
        for key, inner in value.items() if isinstance(value, dict) else ():
            found.add(".".join((*path, key)))
            walk(inner, (*path, key))
    walk(yaml.safe_load(values.read_text()), ())
    return found
