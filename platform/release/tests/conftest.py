import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "images" / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))


@pytest.fixture(scope="session")
def key(tmp_path_factory) -> Path:
    """A folder with oal.key and oal.pub, made by the command that makes them."""
    from oal_release.cli import main
    folder = tmp_path_factory.mktemp("key")
    assert main(["key", str(folder)]) == 0
    return folder
