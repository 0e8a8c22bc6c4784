"""One platform for most tests: Kafka, Flink with the real job, ClickHouse, the push service, and Telegraf, which reads
every two seconds.
"""
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent
LOCAL = FOLDER.parent.parent / "platform" / "local"
sys.path[:0] = [str(LOCAL / "src"), str(LOCAL / "tests")]

from oal_local.platform import Platform  # noqa: E402

WATCH = ["host", "kafka", "flink", "clickhouse", "push", "certificates"]


@pytest.fixture(scope="session")
def platform(tmp_path_factory):
    with Platform(
            tmp_path_factory.mktemp("platform") / "state", ports="auto",
            only=["kafka", "clickhouse", "flink", "push",
                  "telegraf"], telegraf_interval="2s", telegraf_watch=WATCH, taskmanager_heap_mib=512) as running:
        yield running
