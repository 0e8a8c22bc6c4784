"""The whole platform with model versions in its registry, and replayed access points whose agents follow them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from oal_local import demo, loop
from oal_local.clickhouse import since
from oal_local.platform import Platform
from oal_local.services import SERVICES

ROOT = Path(__file__).resolve().parent.parent
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
