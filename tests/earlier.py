"""The project as it was at version 0.2.0, out of the history: what an installation that is upgraded was made of."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Of the chart, the schema and the job as they were before upgrades were worked on.
COMMIT = "8d745fc9b2b59ce24a874f7d8cffd67d122784d3"
MISSING = f"this clone's history lacks {COMMIT[:8]}: git fetch --unshallow"


def there() -> bool:
    """Whether this clone has that commit; a shallow one has not."""
    return subprocess.run(["git", "-C", ROOT, "cat-file", "-e", COMMIT], capture_output=True).returncode == 0


def unpack(folder: Path, *paths: str) -> Path:
    """That commit's files (all, or those of `paths`) in `folder`."""
    assert there(), MISSING
    done = subprocess.run(["git", "-C", ROOT, "archive", COMMIT, *paths], check=True, stdout=subprocess.PIPE)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="tar")
    return folder


def tree() -> Path:
    """The whole tree with the Flink job built, in the cache; made once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oal" / "earlier"
    folder = cache / COMMIT[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            unpack(folder)
            subprocess.run(["make", "--no-print-directory", "-C", folder / "stream-jobs", "setup", "build"], check=True,
                           stdin=subprocess.DEVNULL)
            (folder / ".complete").touch()
    return folder
