"""The trainer's name, kept in its state folder: Kafka knows it again after a restart."""

from __future__ import annotations

import fcntl
import socket
import uuid
from pathlib import Path

from oal_training.errors import TrainingError


def instance(state_dir: Path) -> tuple[str, object]:
    """(this trainer's name, the same after a restart; lock to hold on to).

    TrainingError when another process has the folder.
    """
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = open(state_dir / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise TrainingError(f"another trainer runs with state_dir {state_dir}; give each one its own") from None
    file = state_dir / "instance"
    if not file.exists():
        new = file.with_suffix(".new")
        new.write_text(f"trainer-{socket.gethostname()[:40]}-{uuid.uuid4().hex[:8]}\n")
        new.rename(file)
    return file.read_text().strip(), lock
