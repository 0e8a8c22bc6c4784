"""A copy of the working tree, under git, for tests that change what is tracked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 900  # of a command that builds, on a busy machine
#: Folders of built programs that a copy shares with the tree it was made of.
BUILT = ("ap-exporter/build", "deploy/build", "stream-jobs/target", "training/build", "build/tools")


def run(tree: Path, *command: object, **more) -> str:
    """What a command printed; AssertionError with the end of it when it failed."""
    done = subprocess.run([str(word) for word in command], cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout[-6000:]}"
    return done.stdout


def git(tree: Path, *words: str) -> str:
    return run(tree, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", *words)


def commit(tree: Path, message: str) -> None:
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "--allow-empty", "-m", message)


def changed(tree: Path) -> set[str]:
    """Files that differ from the last commit, new ones included."""
    lines = run(tree, "git", "status", "--porcelain", "--untracked-files=all").splitlines()
    return {line[3:] for line in lines}


def copy(folder: Path, built: bool = False) -> Path:
    """What git tracks, as it is in the working tree, committed once. `built`: with links to what was built here."""
    for name in run(ROOT, "git", "ls-files", "-z").split("\0"):
        if name and ((ROOT / name).is_symlink() or (ROOT / name).exists()):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    git(folder, "init", "-q")
    if built:
        exclude = folder / ".git" / "info" / "exclude"
        for name in BUILT:
            if (ROOT / name).is_dir():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).symlink_to(ROOT / name)
                exclude.write_text(exclude.read_text() + f"/{name}\n")
    commit(folder, "as it is")
    return folder
