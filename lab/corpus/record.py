"""Play the runs that were not played before and keep their captures under a hash of what they depend on."""
import functools
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import time

from host import guest, scenario

from . import plans

LAB = pathlib.Path(__file__).resolve().parent.parent
EXPORTER = LAB.parent / "ap-exporter/build/ap-exporter"
#: The guest's program as far as it plays and records; the rest of it (windows by hand, live streams) takes no part.
PLAYS = ("__main__.py", "connection.py", "counters.py", "exporter.py", "flows.py", "net.py", "steps.py", "truth.py",
         "wifi.py")
#: Raised by hand when an exporter writes raw rows of another meaning: captures hold raw rows, so one that only decides
#: or ships otherwise leaves them good.
ROWS = 1
SNIFF_HZ = 20  # samples a second of the senders' TCP state: at 50 Hz they cost as much as the exporter
TIMEOUT_S = 3600


def folder() -> pathlib.Path:
    """Where the corpus is kept."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "oal/corpus"


def plan(run: plans.Run, python: str = "python3") -> dict:
    """The guest's plan of a run; its exporter is named later."""
    made = scenario.plan(run.name, run.given)
    return made | {"site": run.site, "start_ns": run.start_ns, "sniff_hz": SNIFF_HZ, "python": python}


@functools.cache
def _played_by() -> list[str]:
    """Hashes of the kernel with its medium, and of the guest's program."""
    code = b"".join((LAB / "guest" / name).read_bytes() for name in PLAYS)
    return [pathlib.Path(guest.kernel()).parent.name, hashlib.sha256(code).hexdigest()]


def key(run: plans.Run) -> str:
    """Hash of all that a capture depends on."""
    return hashlib.sha256(json.dumps([plan(run), ROWS, *_played_by()], sort_keys=True).encode()).hexdigest()[:20]


def kept(run: plans.Run) -> pathlib.Path:
    """Folder of a run's captures, whether it was played or not."""
    return folder() / "runs" / f"{run.name}-{key(run)}"


def missing(runs: list[plans.Run]) -> list[plans.Run]:
    """Those that are still to be played."""
    return [run for run in runs if not (kept(run) / "run.json").exists()]


def whole(run: plans.Run, played: pathlib.Path) -> None:
    """RuntimeError where a capture is missing, or the guest was ended early."""
    for name in run.captures:
        truth = json.loads((played / f"{name}.truth.json").read_text())
        if (seconds := truth["seconds"][-1]["t_s"]) < run.given["duration_s"] - 0.5:
            raise RuntimeError(f"{name} was ended after {seconds:.1f} s")
        if not (played / f"{name}.oalcap").stat().st_size:
            raise RuntimeError(f"{name}: an empty capture")


def played(run: plans.Run, exporter: pathlib.Path, python: str) -> dict:
    """What `play` says, without playing a run that is there (another command may have played it meanwhile)."""
    if (said := kept(run) / "run.json").exists():
        return json.loads(said.read_text())
    return play(run, exporter, python)


def play(run: plans.Run, exporter: pathlib.Path, python: str) -> dict:
    """Play a run and keep its captures, truths and senders' samples; what it cost. RuntimeError where it failed."""
    started, used = time.monotonic(), os.times()
    target = kept(run)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="partial-", dir=target.parent) as name:
        played = pathlib.Path(name) / "run"
        guest.play(plan(run, python) | {"exporter": str(exporter)}, played, timeout_s=TIMEOUT_S)
        whole(run, played)
        for log in played.glob("*.log"):
            log.unlink()
        now = os.times()
        said = {
            "run": run.name, "captures": run.captures, "given": run.given, "start_ns": run.start_ns,
            "exporter_sha256": hashlib.sha256(exporter.read_bytes()).hexdigest(),
            "cpu_s": round(sum(now[:4]) - sum(used[:4]), 1), "wall_s": round(time.monotonic() - started, 1)
        }
        (played / "run.json").write_text(json.dumps(said, indent=1))
        shutil.rmtree(target, ignore_errors=True)
        os.replace(played, target)
    return said
