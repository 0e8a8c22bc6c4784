"""Records the class-data archives that classdata.py tells the JVMs to use."""
import fcntl
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from oal_local import classdata, flink, kafka, pki, settings
from oal_local.errors import PlatformError
from oal_local.paths import State, cache_dir

RECORD_SECONDS = 180  # until a process is ready; half a minute on an idle machine


def ensure() -> None:
    """Make the archives that are missing; safe to run again and in parallel."""
    if all(classdata.archive(name).exists() for name in classdata.DISTRIBUTION):
        return
    folder = cache_dir() / "cds"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all(classdata.archive(name).exists() for name in classdata.DISTRIBUTION):
            print("setup: recording class-data archives of Kafka and Flink (once, about half a minute)",
                  file=sys.stderr, flush=True)
            record(folder)


def record(folder: Path) -> None:
    """One archive a process: each runs until it is ready and writes its archive into `folder` as it ends."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        recording = classdata.recording = Path(temporary)
        try:
            state = State(recording / "state")
            state.make()
            # Without the job: an archive fits every class path that begins as its own.
            chosen = settings.resolve(state, {"ports_mode": "auto", "job_jar": ""}, False)
            pki.init(state)
            kafka.render(state, chosen)
            flink.render_cluster(state, chosen)
            kafka.prepare(state, chosen)
            run_until([kafka.command(state, chosen)], lambda: kafka.ready(state, chosen), recording)
            flink.prepare_jobmanager(state, chosen)
            flink.prepare_taskmanager(state, chosen)
            run_until([flink.session_command(state, chosen), flink.taskmanager_command(state, chosen)],
                      lambda: flink.taskmanagers(state, chosen) == 1, recording)
            for name in classdata.DISTRIBUTION:
                (recording / name).rename(classdata.archive(name))
        finally:
            classdata.recording = None


def run_until(commands: list[list[str]], condition, folder: Path) -> None:
    """Run the processes until the condition holds, then end them in reverse order and wait for that."""
    processes = []
    log = folder / "output.log"
    deadline = time.monotonic() + RECORD_SECONDS
    try:
        with open(log, "w") as output:
            for command in commands:
                processes.append(subprocess.Popen(command, stdout=output, stderr=output, cwd=folder))
            while not condition():
                if any(process.poll() is not None for process in processes) or time.monotonic() > deadline:
                    raise PlatformError(
                        f"recording class-data archives: `{commands[0][-3:]}` did not start:\n{log.read_text()[-2000:]}"
                    )
                time.sleep(0.2)
            for process in reversed(processes):
                process.send_signal(signal.SIGTERM)
                process.wait(RECORD_SECONDS)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
