"""Which code and which environment made a tree."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
from oal_schema.settings import settings as contract


@cache
def tags() -> dict[str, str]:
    """MLflow tags: schema revision, git revision, environment. OAL_GIT_REVISION names the revision where there is no checkout."""
    revision = os.environ.get("OAL_GIT_REVISION", "")
    if not revision:
        done = subprocess.run(["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        revision = done.stdout.strip() or "unknown"
    return {"oal.schema_revision": str(contract()["schema_revision"]), "oal.git_revision": revision,
            "oal.environment": f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}"}
