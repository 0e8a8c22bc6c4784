"""The learning half of a drill's platform: a trainer that decides soon, and what its services tell."""

from __future__ import annotations

import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from looped import EAGER, ROOT
from oal_local import loop, passwords


@contextmanager
def eager() -> Iterator[str]:
    """A file of the trainer's settings by which it ships sooner than a person would want."""
    settings = yaml.safe_load((ROOT / "training/online.yaml").read_text())
    for section, values in EAGER.items():
        settings[section].update(values)
    with _file(settings) as name:
        yield name


@contextmanager
def small_experiment() -> Iterator[str]:
    """A file of an experiment that is fitted within seconds."""
    with _file(yaml.safe_load((ROOT / loop.TREE).read_text()) | {
            "splits": [{"kind": "time", "test_share": 0.5, "folds": 1}]}) as name:
        yield name


@contextmanager
def _file(content: dict) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(content, file)
        file.flush()
        yield file.name


def metric(platform, url: str, name: str) -> float:
    """Of a service's /metrics, over all labels."""
    token = passwords.token_file(platform.state, "metrics.token").read_text().strip()
    request = urllib.request.Request(url + "/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)


def decisions(platform) -> int:
    """Of the trainer, as rows."""
    return int(platform.clickhouse.query("SELECT count() FROM oal.tree_decision"))
