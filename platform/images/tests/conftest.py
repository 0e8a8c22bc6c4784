import pytest
from docker_engine import OWN, Engine, build, tags


@pytest.fixture(scope="session")
def engine():
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def image(engine):
    """Short name → tag, each built."""
    build(*OWN)
    found = tags()
    return {name: found[f"OAL_{name.replace('-', '_').upper()}_IMAGE"] for name in OWN}
