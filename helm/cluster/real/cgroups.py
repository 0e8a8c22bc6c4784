"""The cgroups that kubelets and containers of a test get, as one tree: by it everything that runs in them is found."""
import os
import signal
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def trees() -> list[Path]:
    """One of version 2; of version 1 one a controller."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [
        folder for folder in sorted(ROOT.iterdir())
        if (folder / "cgroup.procs").exists() and not folder.is_symlink()
    ]


def make(name: str) -> None:
    """`name` as /A/B in each tree."""
    for tree in trees():
        folder = tree
        for part in name.strip("/").split("/"):
            if (enable := folder / "cgroup.subtree_control").exists() and tree == ROOT:
                enable.write_text(" ".join(f"+{one}" for one in (folder / "cgroup.controllers").read_text().split()))
            folder = folder / part
            folder.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):  # of version 1: empty ones let nobody in
                if (folder / file).exists() and not (folder / file).read_text().strip() and tree != ROOT:
                    (folder / file).write_text((folder.parent / file).read_text())


def enter(name: str, pid: int) -> None:
    """With all of its threads; what it starts from now on is in there too."""
    for tree in trees():
        try:
            (tree / name.strip("/") / "cgroup.procs").write_text(str(pid))
        except ProcessLookupError:  # it has ended: whoever waits for it will say so
            return


def pids(name: str) -> set[int]:
    found = set()
    for tree in trees():
        for folder, _, _ in os.walk(tree / name.strip("/")):
            try:
                found.update(map(int, (Path(folder) / "cgroup.procs").read_text().split()))
            except OSError:  # removed meanwhile, by a container's end
                continue
    return found


def end(name: str, seconds: float = 20) -> None:
    """Kill what is in there and remove it."""
    deadline = time.monotonic() + seconds
    while left := pids(name):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of {name} do not end: {sorted(left)}")
        time.sleep(0.1)
    for tree in trees():
        folder = tree / name.strip("/")
        deep = sorted((Path(f) for f, _, _ in os.walk(folder)), key=lambda f: -len(f.parts))
        for one in deep:
            while True:
                try:
                    one.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:  # busy for a moment more after its last process
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)
