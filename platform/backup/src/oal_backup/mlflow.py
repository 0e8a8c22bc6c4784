"""MLflow's state: its databases (SQLite copied by SQLite's own backup, or PostgreSQL dumped), artifacts and the webhook
key.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from oal_backup import BackupError, postgres
from oal_backup.config import MLflow

DATABASES = ("mlflow.db", "auth.db")  # runs and models; users
DUMP = "mlflow.pgdump"


def create(config: MLflow, folder: Path) -> dict:
    """Databases first: an artifact written later is then merely not yet named by any run. BackupError without a
    state_dir.
    """
    state = Path(config.state_dir)
    if not state.is_dir():
        raise BackupError(f"[mlflow] state_dir {state} is not there")
    said = {}
    if config.postgres_dsn_file:
        said |= postgres.dump(config.postgres_dsn_file, folder / DUMP)
    for name in DATABASES:
        if (state / name).exists():
            with closing(sqlite3.connect(f"file:{state / name}?mode=ro",
                                         uri=True)) as source, closing(sqlite3.connect(folder / name)) as copy:
                source.backup(copy)
    if (state / "webhook.key").exists():
        shutil.copy2(state / "webhook.key", folder)
    if (state / "artifacts").exists():
        shutil.copytree(state / "artifacts", folder / "artifacts")
    return said


def restore(config: MLflow, folder: Path) -> dict:
    """Into an empty state_dir, with the server stopped: BackupError if a state is there, or the backup is of the other
    kind of database.
    """
    state = Path(config.state_dir)
    if any((state / name).exists() for name in (*DATABASES, "artifacts")):
        raise BackupError(
            f"[mlflow] state_dir {state} is not empty, and a restore overwrites nothing: stop the server, move the"
            " folder away, and try again"
        )
    if config.postgres_dsn_file:
        if not (folder / DUMP).exists():
            raise BackupError(
                "this backup was made of SQLite files; leave postgres_dsn_file out, or move the data with `mlflow db`")
        postgres.restore(config.postgres_dsn_file, folder / DUMP)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    begun = []
    try:
        for path in folder.iterdir():
            if path.name != DUMP:
                begun.append(state / path.name)
                (shutil.copytree if path.is_dir() else shutil.copy2)(path, state / path.name)
    except BaseException:
        for path in begun:  # or the next try would find a state that is not whole
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        raise
    return {
        "artifacts": sum(1 for path in (state / "artifacts").rglob("*") if path.is_file()) if
        (state / "artifacts").exists() else 0
    }
