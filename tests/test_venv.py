"""platform/setup/venv: an environment has what its lock file names, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

VENV = Path(__file__).resolve().parent.parent / "platform" / "setup" / "venv"


@pytest.fixture
def made(tmp_path):
    def make(text: str) -> subprocess.CompletedProcess:
        lock = tmp_path / "lock.txt"
        lock.write_text(text)
        return subprocess.run(["bash", VENV, lock], capture_output=True, text=True,
                              env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    return make


def test_a_package_without_a_version_is_refused_and_named(made):
    """Else it has the newest version of the day, and two machines differ."""
    done = made("Jinja2==3.1.6\n")
    assert done.returncode == 1 and "add a line each: MarkupSafe==" in done.stderr, done.stderr


def test_a_closed_lock_is_an_environment(made):
    done = made("jinja2==3.1.6\nMARKUPSAFE==3.0.4  # needed by it\n")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert (folder / ".complete").exists() and (folder / "bin" / "python").exists()
