"""A state folder made by the real command, and what verifies its certificates."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REPO = ROOT.parents[1]
sys.path[:0] = [
    str(ROOT / "src"),
    str(REPO / "schema" / "src"),
    str(REPO / "platform" / "local" / "src"),
    str(Path(__file__).parent)
]

COMMAND = ROOT / "oal-ca"


def ca(*arguments, rc: int = 0) -> str:
    """What the command printed, and on which stream matters to nobody."""
    done = subprocess.run([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300)
    assert done.returncode == rc, done.stdout
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    """One of its own, made within this process."""
    from oal_pki import platform
    from oal_pki.folder import Folder

    made = Folder(tmp_path / "state")
    platform.init(made)
    return made


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """One for all who only add to it."""
    from oal_pki import platform
    from oal_pki.folder import Folder

    made = Folder(tmp_path_factory.mktemp("pki") / "state")
    platform.init(made)
    return made
