import os
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import figures  # noqa: E402
import images  # noqa: E402
from access_point import AccessPoint  # noqa: E402
from figures import measured  # noqa: E402
from installation import SMALL, Installation, write_values  # noqa: E402
from real_cluster import KEEP, RealCluster  # noqa: E402

#: When make began, so that what it installed and built counts.
BEGAN = float(os.environ.get("OAL_BEGAN") or time.time())
STARTED = time.time()


@pytest.fixture(scope="session")
def nodes() -> int:
    return 1


@pytest.fixture(scope="session")
def cluster(nodes):
    cluster = RealCluster(nodes)
    try:
        cluster.start()
        for what, seconds in cluster.times.items():
            measured(what, seconds)
        yield cluster
    finally:
        cluster.stop()
        images.release_engine()


@pytest.fixture(scope="session")
def oal(cluster):
    """The chart, installed as docs/install-cluster.md says, with examples/small.yaml and stand-ins."""
    oal = Installation(cluster, values=(SMALL, write_values(cluster.folder / "standins.json")))
    if oal.installed():  # on a cluster that was kept
        return oal
    oal.create()
    begin = time.monotonic()
    oal.helm("install")
    measured("helm install --wait, pods running", time.monotonic() - begin)
    return oal


@pytest.fixture(scope="session")
def access_points(oal):
    """Two, outside; their rows arrive."""
    begin = time.monotonic()
    made, ran = [], False
    for number, capture in ((1, "congested"), (2, "varying")):
        ap = AccessPoint(oal, f"ap-000{number}", capture=capture)
        made.append(ap)
        if ap.runs():
            ran = True
            continue
        ap.enrol()
        measured("enrolment from outside", time.monotonic() - begin)
        ap.start()
        begin = time.monotonic()
    oal.until("rows of both access points", lambda: oal.fresh(2))
    if ran:  # on a cluster that was kept
        return made
    measured("rows of two access points after their start", time.monotonic() - begin)
    return made


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Figures are written of a whole run that passed, and of no other."""
    part = terminalreporter.stats.get("deselected") or any("::" in argument for argument in config.args)
    whole = exitstatus == 0 and not part and not KEEP
    if whole:
        measured("set-up by make", STARTED - BEGAN)
        measured("all of it, from make's start", time.time() - BEGAN)
        measured("runnable processes at the end, mean of 15 minutes", os.getloadavg()[2], "")
    for name, (value, unit) in figures.MEASURED.items():
        terminalreporter.write_line(f"  {name}: {value} {unit}")
    terminalreporter.write_line(f"on the real cluster: {time.time() - BEGAN:.0f} s in all")
    if whole:
        drills = any("drills" in argument for argument in config.args)
        figures.write("make -C helm real-cluster-drills" if drills else "make test-cluster REAL=1")
