"""Boot the User-Mode-Linux guest with a plan and wait for it; its root is this machine's, read-only."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from . import scenario

#: Nice value of a guest in real time.
AHEAD = -15
LAB = pathlib.Path(__file__).resolve().parent.parent


def kernel() -> str:
    return subprocess.run([LAB / "kernel/build.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def command_line(plan: dict, out: pathlib.Path, virtual: bool, extra: list[str]) -> list[str]:
    medium = plan["medium"]
    words = [
        kernel(), f"mem={plan['memory_mb']}M", "root=none", "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={LAB}/guest/init.sh", "con=null", "con0=null,fd:1", "con1=null", "quiet", "loglevel=3", "panic=1",
        f"LAB={LAB}", f"OUT={out}", f"mac80211_hwsim.radios={scenario.radios(plan)}", "mac80211_hwsim.medium=1",
        "mac80211_hwsim.regtest=5", "mac80211_hwsim.support_p2p_device=0", f"mac80211_hwsim.medium_seed={plan['seed']}",
        *(f"mac80211_hwsim.medium_{key}={medium[key]}" for key in ("retries", "ampdu_us", "lower_permille"))
    ]
    if plan["ap"]["queue"]["mode"] == "qdisc":
        words.append(f"mac80211_hwsim.medium_qdisc_radios={plan['aps']}")
    if plan["live"]:
        words.append(f"vec0:transport=tap,ifname={plan['live']['tap']},depth=128,gro=1")
    if virtual:
        words += ["time-travel=inf-cpu", f"time-travel-start={plan['start_ns'] or time.time_ns()}"]
    return words + extra


def memory_folder(megabytes: int, fallback: pathlib.Path) -> str:
    """Where the guest's memory, a file that it maps executable, can be: /dev/shm if there is room, else on disk
    (slower).
    """
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    if shm and shm.f_bavail * shm.f_frsize > megabytes << 20 and not shm.f_flag & os.ST_NOEXEC:
        return "/dev/shm"
    return str(fallback)


class Interrupted(Exception):
    """SIGTERM or Ctrl-C."""


@contextlib.contextmanager
def one_cpu(process: subprocess.Popen):
    """Keep a guest on a processor that no other guest of ours has, if there is one. Its kernel and its programs are
    processes of this machine that take turns, several times a system call: a third more time where another processor
    has to be woken for each.
    """
    cpus = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as files:
        chosen = cpus[process.pid % len(cpus)]
        for cpu in cpus:
            lock = files.enter_context(open(f"{tempfile.gettempdir()}/oal-lab-{os.getuid()}-cpu{cpu}", "w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            chosen = cpu
            break
        with contextlib.suppress(ProcessLookupError):  # it ended at once
            os.sched_setaffinity(process.pid, {chosen})
        yield


def ahead_of_others(process: subprocess.Popen) -> None:
    """An access point has its processor for itself, whatever else runs: a guest in real time comes first on this
    machine, else it misses ticks for want of a turn. Where that is not permitted it runs as any other.
    """
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, process.pid, AHEAD)


def boot(words: list[str], console, env: dict, timeout_s: float, stop_file: pathlib.Path, virtual: bool) -> int:
    """Run the kernel to its end. Its processes are a session of their own, so that none is left if this one ends before
    it.

    The first SIGTERM or Ctrl-C asks the guest to finish, which takes a few seconds; the second ends it at once.
    """
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT, env=env,
                               start_new_session=True)

    def on_signal(*_):
        if stop_file.exists():
            raise Interrupted
        stop_file.touch()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        if not virtual:
            ahead_of_others(process)
        with one_cpu(process):
            return process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the guest did not end within {timeout_s:.0f} s") from error
    except Interrupted as error:
        raise RuntimeError("the run was interrupted twice and has no results") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def play(plan: dict, results: pathlib.Path, virtual: bool = True, extra: list[str] | None = None,
         timeout_s: float = 1800) -> pathlib.Path:
    """Run the plan; move what the guest left to results; return that folder. Raises RuntimeError with the guest's log
    if it failed.
    """
    results.mkdir(parents=True, exist_ok=True)
    shared = pathlib.Path(tempfile.mkdtemp(prefix="oal-lab-", dir=results))
    try:
        (shared / "plan.json").write_text(json.dumps(plan))
        env = {**os.environ, "TMPDIR": memory_folder(plan["memory_mb"], shared)}
        with open(shared / "console.log", "wb") as console:
            try:
                kernel_status = boot(command_line(plan, shared, virtual, extra or []), console, env, timeout_s,
                                     shared / "stop", virtual)
            except RuntimeError as error:
                kernel_status = error  # what it has done so far is kept all the same
        status = (shared / "guest.exit").read_text().strip() if (shared / "guest.exit").exists() else "no exit status"
        log = (shared / "guest.log").read_text(errors="replace") if (shared / "guest.log").exists() else ""
        for item in shared.iterdir():
            if item.name not in ("plan.json", "guest.exit", "stop"):
                target = results / (item.name if item.name.startswith(plan["name"]) else f"{plan['name']}.{item.name}")
                shutil.move(item, target)
        if status != "exit 0":
            console_text = (results / f"{plan['name']}.console.log").read_text(errors="replace")
            raise RuntimeError(
                f"guest of {plan['name']} failed ({status}, kernel"
                f" {kernel_status}):\n{log[-3000:]}\n{console_text[-2000:]}"
            )
        return results
    finally:
        shutil.rmtree(shared, ignore_errors=True)
