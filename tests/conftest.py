"""The platform of platform/local/ on free ports, one for the session, with the real job."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "schema/src"), str(ROOT / "platform/local/src"), str(ROOT / "tests")]


@pytest.fixture(scope="session")
def platform():
    from oal_local.platform import Platform

    kept = os.environ.get("OAL_TEST_STATE")  # set it to look at the logs afterwards
    with tempfile.TemporaryDirectory(prefix="oal-test-", ignore_cleanup_errors=True) as folder:
        with Platform(kept or folder, ports="auto", only=["data"], partitions=4) as running:
            yield running
