"""The real cluster says what a machine lacks before it builds anything, and does not run on it by half."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

CLUSTER = Path(__file__).resolve().parents[1] / "cluster"
LESS = {
    "only root": ("setpriv", "--reuid=65534", "--clear-groups"),
    "cgroup controllers cpu, cpuset, memory, pids are not": (
        "unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"),
    "type bridge: RTNETLINK answers: Operation not permitted": ("setpriv", "--bounding-set=-net_admin"),
    "no overlay can be mounted": ("setpriv", "--bounding-set=-sys_admin"),
}


@pytest.mark.parametrize("sentence", LESS)
def test_what_a_machine_lacks_is_said(sentence, tmp_path):
    before = () if os.geteuid() else LESS[sentence]
    done = subprocess.run([*before, sys.executable, CLUSTER / "real" / "machine.py"], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(CLUSTER), "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 1, done
    assert (sentence if os.geteuid() == 0 else "only root") in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
