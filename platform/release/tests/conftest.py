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


@pytest.fixture(scope="session")
def engine():
    """Debian's container engine, in a network of its own."""
    from docker_engine import Engine
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def registry(engine):
    """The address of a registry in the engine's network, with a slash."""
    from registry import serving
    with serving(engine) as address:
        yield address
