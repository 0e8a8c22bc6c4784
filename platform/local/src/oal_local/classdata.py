"""Class-data archives (AppCDS): the JVM maps its classes instead of parsing them, which halves the CPU of a start.

An archive belongs to one set of jars and one JVM; a JVM ignores one that does not fit. They are made by `setup`, again
when a template of the configuration changes (that changes which classes are used): each process runs until it is ready,
and writes its archive as it ends.
"""
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from oal_local import distribution
from oal_local.errors import PlatformError
from oal_local.paths import CONFIG, KAFKA, cache_dir

DISTRIBUTION = {"kafka-format": "kafka", "kafka": "kafka", "jobmanager": "flink", "taskmanager": "flink"}
TEMPLATE = {"kafka": KAFKA / "server.properties", "flink": CONFIG / "flink" / "config.yaml"}
RECORD_SECONDS = 180
recording: Path | None = None  # the folder that archives are written to while record() runs


def _jvm() -> bytes:
    """Tells one JVM from another; its `release` file names the build."""
    home = Path(os.path.realpath(shutil.which("java"))).parent.parent
    try:
        return str(home).encode() + (home / "release").read_bytes()
    except OSError:
        return str(home).encode()


def archive(name: str) -> Path:
    jars = distribution.folder(DISTRIBUTION[name]).name.encode()
    template = TEMPLATE[DISTRIBUTION[name]].read_bytes()
    return cache_dir() / "cds" / f"{name}-{hashlib.sha256(jars + _jvm() + template).hexdigest()[:12]}.jsa"


def options(name: str) -> list[str]:
    """JVM options that use the archive if there is one."""
    if recording:
        return [f"-XX:ArchiveClassesAtExit={recording / name}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    path = archive(name)
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if path.exists() else []


def ensure() -> None:
    """Make the archives that are missing; safe to run again and in parallel."""
    if all(archive(name).exists() for name in DISTRIBUTION):
        return
    folder = cache_dir() / "cds"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all(archive(name).exists() for name in DISTRIBUTION):
            print("setup: recording class-data archives of Kafka and Flink (once, about half a minute)",
                  file=sys.stderr, flush=True)
            record(folder)


def record(folder: Path) -> None:
    global recording
    # Here, not above: these modules ask this one for JVM options.
    from oal_local import flink, kafka, pki, settings
    from oal_local.paths import State
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        recording = Path(temporary)
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
            for name in DISTRIBUTION:
                (recording / name).rename(archive(name))
        finally:
            recording = None


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
