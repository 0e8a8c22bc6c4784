"""Certificates and secrets, as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

from oal_backup import BackupError
from oal_backup.config import Files


def create(config: Files, folder: Path) -> dict:
    """Each folder under its own last name. BackupError when one is not there."""
    for source in config.folders:
        if not Path(source).is_dir():
            raise BackupError(f"[files] {source} is no folder")
        shutil.copytree(source, folder / Path(source).name)
    return {"folders": [Path(source).name for source in config.folders]}


def restore(config: Files, folder: Path) -> dict:
    """Into folders that are not there: BackupError if one is, for keys that are in use are never replaced."""
    if there := [source for source in config.folders if Path(source).exists()]:
        raise BackupError(f"[files] {', '.join(there)} is there, and a restore overwrites nothing; move it away first")
    try:
        for source in config.folders:
            shutil.copytree(folder / Path(source).name, source)
    except BaseException:
        for source in config.folders:  # none was there before
            shutil.rmtree(source, ignore_errors=True)
        raise
    return {"folders": list(config.folders)}
