"""One platform for most tests, with the counting job; its own state folder and free ports."""
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "src")]

import count_job  # noqa: E402
from oal_local.platform import Platform  # noqa: E402


@pytest.fixture(scope="session")
def platform(tmp_path_factory):
    with Platform(
            tmp_path_factory.mktemp("platform") / "state", ports="auto", only=["data"], job_jar=str(count_job.jar()),
            job_class=count_job.MAIN_CLASS, checkpoint_interval="500ms", taskmanager_heap_mib=512) as running:
        yield running
