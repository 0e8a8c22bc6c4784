"""The platform of platform/local/ on free ports, one for the session, with the real job."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "schema/src"), str(ROOT / "platform/local/src"), str(ROOT / "tests")]


@pytest.fixture(scope="session")
def servers():
    """Refuses a test that starts a platform under `make check`, which is quick because nothing does."""
    if os.environ.get("OAL_NO_SERVER"):
        pytest.fail("this test starts servers: name its file in DATA, LOOP or another list of tests/Makefile")


@pytest.fixture(scope="session")
def platform(servers):
    from oal_local.platform import Platform

    kept = os.environ.get("OAL_TEST_STATE")  # set it to look at the logs afterwards
    with tempfile.TemporaryDirectory(prefix="oal-test-", ignore_cleanup_errors=True) as folder:
        with Platform(kept or folder, ports="auto", only=["data"], partitions=4, checkpoint_interval="2s") as running:
            yield running


@pytest.fixture(scope="session")
def looped(servers, tmp_path_factory):
    """The whole learning loop on a platform of its own, one for the session: three replayed APs that predict, with a
    folder of in-force files of their own, `policies`, that tests may change. Its first test finds it just started.
    """
    from looped import running

    folder = tmp_path_factory.mktemp("policies")
    shutil.copy(ROOT / "policies" / "in-force" / "default.yaml", folder)
    with running(policies=str(folder)) as it:
        it.policies = folder
        yield it
