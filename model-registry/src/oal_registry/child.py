"""A training command as a child process: its output in a file, its end with ours."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path

STOP_S = 5  # from SIGTERM to SIGKILL
MAX_REASON = 240
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded before any fork


def start(command: list[str], log: Path) -> subprocess.Popen:
    """Begin it. To be called from the thread that lives as long as the process: that thread's death ends the child.
    OSError when it cannot be started.
    """
    with open(log, "wb") as output:
        # Our own MLflow settings (short timeouts, no repetition) are not for a training run, which reads the same
        # configuration file.
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")},
            preexec_fn=_die_with_parent,
        )


def end(process: subprocess.Popen) -> None:
    """End it, and what it started."""
    for number, wait_s in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(wait_s)
            return
        except subprocess.TimeoutExpired:
            continue


def reason(log: Path, code: int) -> str:
    """The last line of a log that says something, shortened."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            lines = [" ".join(line.split()) for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        lines = []
    said = next((line for line in reversed(lines) if line), "")
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return (said if len(said) <= MAX_REASON else said[:MAX_REASON] + "…") if said else f"{how}, without a word"


def _die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
