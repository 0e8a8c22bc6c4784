"""The host's side: boots a guest for each backend, lets it play the cases, and judges what it left."""
import ctypes
import json
import shutil
import signal
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from host import guest, scenario

from .case import Case, Result
from .cases import CASES
from .switch import NAMES

ROOT = guest.LAB.parent
OUT = ROOT / "build/lab/conformance"
EXPORTER = ROOT / "ap-exporter/build/ap-exporter"


class NoSources(Exception):
    """Debian no longer has the release of Open vSwitch that the patches are for."""


def ovs_build() -> str:
    """Folder of the patched Open vSwitch. NoSources where it is neither built nor can be."""
    done = subprocess.run([guest.LAB / "ovs/build.sh"], stdout=subprocess.PIPE, text=True)
    if done.returncode == 77:
        raise NoSources("no sources of Open vSwitch: pass OVS_TARBALL (lab/ovs/build.sh says which)")
    done.check_returncode()
    return done.stdout.strip()


def push_python() -> str:
    """Python of the push service in the guest: that of the contract, with cryptography."""
    venv = subprocess.run([ROOT / "platform/setup/venv", ROOT / "schema/requirements.txt"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    return f"{venv}/bin/python"


def chosen(switches: list[str], names: list[str] | None, quick: bool, wired: bool = False) -> dict[str, list[Case]]:
    """Cases of each backend. A name may be the beginning of one. `wired`: those that need no Wi-Fi in the kernel."""
    unknown = [n for n in names or [] if not any(case.name.startswith(n) for case in CASES)]
    if unknown:
        raise ValueError(f"no case {', '.join(unknown)}; there are {', '.join(case.name for case in CASES)}")
    fits = {
        s: [
            c for c in CASES
            if s in (c.quick if quick else c.on) and (not names or any(c.name.startswith(n) for n in names))
            and not (wired and c.shape.wifi)
        ] for s in switches
    }
    return {s: cases for s, cases in fits.items() if cases}


def judged(switch: str, cases: list[Case], folder: Path, error: str = "it was not played") -> list[Result]:
    """What a guest left, judged; one result for each case, also where it was not reached."""
    results = []
    for case in cases:
        left = folder / f"{case.name}.json"
        played = json.loads(left.read_text()) if left.exists() else {"events": [], "facts": {}, "error": error}
        results.append(Result(case, switch, folder, played))
    return results


def play(switch: str, cases: list[Case], ovs: str, python: str, out: Path, exporter: Path,
         real_time: bool) -> list[Result]:
    """One guest plays all of them."""
    plan = {
        **scenario.plan("conformance", {"stations": [{"name": "client"}]}), "switch": switch,
        "ovs": ovs if switch.startswith("ovs") else "", "exporter": str(exporter.resolve()), "python": python,
        "cases": [case.name for case in cases]
    }
    folder = out / switch
    shutil.rmtree(folder, ignore_errors=True)
    error = "it was not reached"
    try:
        guest.play(plan, folder, virtual=not real_time, extra=["MAIN=conformance.inside"],
                   timeout_s=120 + 60 * len(cases))
    except RuntimeError as problem:
        error = str(problem)
    for path in folder.glob("conformance.*.*"):
        path.rename(folder / path.name.removeprefix("conformance."))
    return judged(switch, cases, folder, error)


def end_with_parent() -> None:
    """A worker's guest ends with the suite, however that ends (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def run(switches: list[str] | None = None, names: list[str] | None = None, quick: bool = False, out: Path = OUT,
        exporter: Path = EXPORTER, jobs: int = 2, real_time: bool = False, again: bool = False,
        wired: bool = False) -> list[Result]:
    """`again`: nothing is played, what an earlier run left is judged."""
    wanted = chosen(switches or list(NAMES), names, quick, wired)
    if again:
        return [result for switch, cases in wanted.items() for result in judged(switch, cases, out / switch)]
    ovs = ovs_build() if any(s.startswith("ovs") for s in wanted) else ""
    python = push_python()
    guest.kernel()  # built before two of us ask for it
    with ProcessPoolExecutor(jobs, initializer=end_with_parent) as pool:
        done = [
            pool.submit(play, switch, cases, ovs, python, out, exporter, real_time) for switch, cases in wanted.items()
        ]
        return [result for future in done for result in future.result()]
