"""The services by name, in start order."""
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from oal_local import clickhouse, flink, kafka
from oal_local.errors import PlatformError


@dataclass(frozen=True)
class Service:
    name: str
    order: int  # of start; the stop goes the other way
    prepare: Callable  # before each start
    command: Callable  # argv of the process
    ready: Callable  # does it do its work?
    files: Callable  # what it reads at its start; a running one is restarted when they have changed
    stop_seconds: int  # from SIGTERM to SIGKILL


SERVICES = {service.name: service for service in (
    Service(kafka.NAME, 1, kafka.prepare, kafka.command, kafka.ready, kafka.files, 30),
    Service(clickhouse.NAME, 2, clickhouse.prepare, clickhouse.command, clickhouse.ready, clickhouse.files, 30),
    Service(flink.JOBMANAGER, 3, flink.prepare_jobmanager, flink.jobmanager_command, flink.jobmanager_ready,
            flink.jobmanager_files, 20),
    Service(flink.TASKMANAGER, 4, flink.prepare_taskmanager, flink.taskmanager_command, flink.taskmanager_ready,
            flink.taskmanager_files, 20),
)}


def chosen(only) -> list[Service]:
    """The services of a list of names, in start order; `flink` is both of its processes, nothing is all."""
    names = set(only or SERVICES)
    if "flink" in names:
        names = names - {"flink"} | {flink.JOBMANAGER, flink.TASKMANAGER}
    if unknown := names - set(SERVICES):
        raise PlatformError(f"no such service: {', '.join(sorted(unknown))}; there are {', '.join(SERVICES)}, and flink for both of its own")
    return [service for service in SERVICES.values() if service.name in names]


def fingerprint(service: Service, state, settings) -> str:
    """Changes when the service's files do. A large file, the job, is known by its size and time."""
    digest = hashlib.sha256()
    for path in service.files(state, settings):
        stat = os.stat(path)
        digest.update(str(path).encode())
        digest.update(f"{stat.st_size} {stat.st_mtime_ns}".encode() if stat.st_size > 1 << 20 else open(path, "rb").read())
    return digest.hexdigest()
