"""The whole platform with model versions in its registry, and replayed access points whose agents follow them."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from flow import until
from oal_local import demo, loop
from oal_local.clickhouse import since
from oal_local.platform import Platform
from oal_local.services import SERVICES

ROOT = Path(__file__).resolve().parent.parent
SCREENSHOTS = ROOT / "build" / "screenshots"
APS = 3
#: Trees are shipped sooner than a person would want: what is tested is the way, not the judgement (training/tests does
#: that).
EAGER = {
    "judge": {"min_items": 150, "min_test_items": 50, "min_onsets": 5, "min_episodes": 1},
    "ship": {"false_ship_rate": 1, "drift_false_ship_rate": 1, "min_interval_s": 10, "champion_hold_s": 20}
}


def now_us() -> int:
    return int(time.time() * 1e6)


class Looped:
    """A platform with first model versions and the replaying exporter with its agents."""

    def __init__(self, platform: Platform, folder: Path):
        self.platform, self.folder = platform, folder
        self.since_us = now_us()
        self.source = demo.Replay(platform, folder, APS, learning=True)
        self.ap_ids: list[str] = self.source.ap_ids

    def applied(self, since_us: int, source: int, version: int) -> bool:
        """Did every AP apply this version since then? An online tree may have followed it in the meantime."""
        return self.aps("bundle_status",
                        f"state = 1 AND source = {source} AND version = {version} AND {since(since_us)}") == set(
                            self.ap_ids)

    def predicting(self, since_us: int) -> bool:
        """Has every AP predicted since then?"""
        return self.aps("decision", since(since_us)) == set(self.ap_ids)

    def aps(self, table: str, where: str) -> set[str]:
        """APs with rows that meet the condition."""
        return {
            row["ap_id"]
            for row in self.platform.clickhouse.rows(f"SELECT DISTINCT ap_id FROM oal.{table} WHERE {where}")
        }

    def ready(self, service: str) -> bool:
        return SERVICES[service].ready(self.platform.state, self.platform.settings)

    def count(self, sql: str) -> int:
        return int(self.platform.clickhouse.query(sql).strip() or 0)

    def predictions(self, where: str = "1") -> int:
        return self.count(f"SELECT count() FROM oal.prediction WHERE {where}")


@contextmanager
def running(**changes) -> Iterator[Looped]:
    """Start all of it, with two versions of the model, the last one champion. `changes` are fields of the platform's
    settings. OAL_TEST_LOOP_STATE=DIR keeps the folder with all logs.
    """
    eager = yaml.safe_load((ROOT / "training" / "online.yaml").read_text())
    for section, values in EAGER.items():
        eager[section].update(values)
    kept = os.environ.get("OAL_TEST_LOOP_STATE")
    with tempfile.TemporaryDirectory(prefix="oal-loop-", ignore_cleanup_errors=True) as folder:
        folder = Path(kept or folder)
        folder.mkdir(exist_ok=True)
        settings = folder / "online.yaml"
        settings.write_text(yaml.safe_dump(eager))
        # Nobody is there to approve: `make demo` (test_demo.py) and deploy/ show that. That several subtasks do the
        # same as one: test_exactly_once.py.
        changes = {"approvals": "none", "checkpoint_interval": "2s", "parallelism": 1, **changes}
        with Platform(folder / "state", ports="auto", trainer_settings=str(settings), **changes) as platform:
            loop.seed(platform)
            looped = Looped(platform, folder)
            looped.source.start()
            try:
                yield looped
            finally:
                looped.source.exporter.stop()
                looped.source.exporter.capture.unlink(missing_ok=True)


def promote(looped, version: int, alias: str = "champion") -> float:
    """Set the alias by MLflow's REST interface; seconds until every AP had applied it."""
    at = time.time()
    loop.set_alias(looped.platform, alias, version)
    until(f"every AP applied {loop.MODEL}/{version}", lambda: looped.applied(int(at * 1e6), 1, version))
    return last_applied(looped, int(at * 1e6), version) - at


def last_applied(looped, since_us: int, version: int) -> float:
    """When the last AP applied it, by the APs' own clocks (the same machine's here)."""
    return float(looped.platform.clickhouse.query(
        "SELECT max(first) FROM (SELECT ap_id, min(toUnixTimestamp64Micro(ts)) / 1e6 AS first FROM oal.bundle_status"
        f" WHERE state = 1 AND source = 1 AND version = {version} AND {since(since_us)} GROUP BY ap_id)"))


def windows(looped, when: str) -> dict[str, int]:
    """By AP: items in the trainer's window at the first decision of those that meet the condition."""
    return {
        row["ap_id"]: row["n"] for row in looped.platform.clickhouse.rows(
            f"SELECT ap_id, argMin(items, ts) AS n FROM oal.tree_decision WHERE {when} GROUP BY ap_id")
    }


def open_gates(looped) -> None:
    """Let every version be champion: of a minute's replay nobody can tell which is better, and the gate says so."""
    for version in loop.versions(looped.platform):
        loop.open_gate(looped.platform, version, "a test of the way, not of the judgement")


def other_version(looped) -> int:
    """A version that is not the champion."""
    return next(v for v in loop.versions(looped.platform) if v != loop.aliased(looped.platform, "champion"))


def nothing_rejected_or_lost(looped) -> None:
    """No bundle that an AP refused, no dead letter, no prediction twice, no bundle without a release."""
    assert looped.count(f"SELECT count() FROM oal.bundle_status WHERE state = 2 AND {since(looped.since_us)}") == 0
    assert looped.count("SELECT count() FROM oal.dead_letter") == 0
    doubled = looped.count("SELECT count() - uniqExact(ap_id, ts) FROM oal.prediction")
    assert doubled == 0, f"{doubled} predictions stand twice"
    # A release is in Kafka before its bundle leaves, but tables are inserts of their own: its row may come just after.
    unreleased = "SELECT uniqExact(bundle) FROM oal.bundle_status WHERE bundle NOT IN (SELECT bundle FROM oal.release)"
    until("a release recorded for every bundle that an AP has", lambda: looped.count(unreleased) == 0, 60)


class Page:
    """MLflow's page in a real browser."""

    def __init__(self, looped):
        python = subprocess.run(["bash", ROOT / "platform/setup/venv", ROOT / "training/requirements.txt"],
                                capture_output=True, text=True, check=True).stdout.strip() + "/bin/python"
        mlflow = looped.platform.mlflow
        self.browser = subprocess.Popen(
            [python, ROOT / "tests/mlflow_page.py", mlflow.url, "admin", mlflow.password_file(), SCREENSHOTS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=f"{ROOT / 'model-registry/src'}:{ROOT / 'schema/src'}"))

    def do(self, version: int, *action: str, model: str = loop.MODEL) -> float:
        """When it was clicked (seconds since 1970)."""
        self.browser.stdin.write(" ".join([f"{model}/{version}", *action]) + "\n")
        self.browser.stdin.flush()
        answer = self.browser.stdout.readline()
        assert answer, f"{action}: the page's driver ended with {self.browser.wait()}; stderr says why"
        return float(answer)

    def close(self) -> None:
        self.browser.stdin.close()
        self.browser.wait(60)
