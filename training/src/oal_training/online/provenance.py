"""Which code and which environment made a tree."""

from __future__ import annotations

import platform
from functools import cache

import numpy as np
from oal_schema.settings import settings as contract

from oal_training.lineage import git_revision


@cache
def tags() -> dict[str, str]:
    """MLflow tags: schema revision, git revision, environment."""
    return {
        "oal.schema_revision": str(contract()["schema_revision"]),
        "oal.git_revision": git_revision() or "unknown",
        "oal.environment": f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}",
    }
