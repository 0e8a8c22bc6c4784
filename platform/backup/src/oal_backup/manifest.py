"""What a backup holds: `manifest.json`, written last, so that a folder without it is no backup."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

from oal_backup import BackupError

FILE = "manifest.json"
FORMAT = 2  # 1: ClickHouse's part was of one server and lay flat


def checksums(folder: Path) -> dict[str, list]:
    """Path below `folder` → [bytes, SHA-256], of every file but the manifest."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != FILE:
            with open(path, "rb") as file:
                found[str(
                    path.relative_to(folder))] = [path.stat().st_size,
                                                  hashlib.file_digest(file, "sha256").hexdigest()]
    return found


def write(folder: Path, name: str, started: float, parts: dict) -> dict:
    """`parts`: what each part says of itself."""
    content = {
        "format": FORMAT, "name": name, "started": started, "seconds": round(time.time() - started, 3), "parts": parts,
        "files": checksums(folder)
    }
    temporary = folder / (FILE + ".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / FILE)
    return content


def read(folder: Path) -> dict:
    """As this format has it, also of an older one. BackupError when there is none, or when it was written by a later
    version.
    """
    try:
        content = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        raise BackupError(
            f"{folder} holds no complete backup (no {FILE}); `oal-backup list` names those that are") from None
    if content["format"] == 1:
        content["format"] = FORMAT
        if flat := content["parts"].get("clickhouse"):
            content["parts"]["clickhouse"] = {
                "database": "", "base": flat["base"],
                "shards": [{"server": "", **{key: flat[key] for key in ("location", "bytes", "rows_at_least")}}]
            }
    if content["format"] != FORMAT:
        raise BackupError(
            f"{folder} has format {content['format']}, this program knows {FORMAT}; use the release that wrote it")
    return content


def damaged(folder: Path, content: dict) -> list[str]:
    """What is missing, changed or was added since the manifest was written."""
    there = checksums(folder)
    return sorted({name for name in {*there, *content["files"]} if there.get(name) != content["files"].get(name)})
