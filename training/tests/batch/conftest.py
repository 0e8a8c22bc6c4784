from __future__ import annotations

from pathlib import Path

import pytest
from oal_training.stored import parquet

CAPTURES = Path(__file__).resolve().parents[3] / "lab" / "captures"
LEARNING = CAPTURES / "learning.items.parquet"


def quiet(_line: str) -> None:
    pass


@pytest.fixture(scope="session")
def learning():
    """Items of the committed capture `learning`."""
    return parquet.read(LEARNING, log=quiet)
