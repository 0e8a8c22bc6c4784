"""The committed captures are read once: no test changes the columns that reading gives."""

from __future__ import annotations

import functools

import pytest
from oal_training.window import capture, sender


@pytest.fixture(scope="session", autouse=True)
def read_once():
    patch = pytest.MonkeyPatch()
    patch.setattr(capture, "flow_rows", _by_path(capture.flow_rows))
    patch.setattr(sender, "rows", _by_path(sender.rows))
    yield
    patch.undo()


def _by_path(read):
    cached = functools.cache(read)
    return lambda path: cached(path) if path.parent.name == "captures" else read(path)
