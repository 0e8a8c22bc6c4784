import pytest


@pytest.fixture(scope="session")
def nodes() -> int:
    return 2
