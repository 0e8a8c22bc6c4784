"""The services by name, in start order."""
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from oal_local import clickhouse, flink, grafana, kafka, mlflow, push, registry, telegraf, trainer, transactions
from oal_local.errors import PlatformError


@dataclass(frozen=True)
class Service:
    name: str
    order: int  # of start; the stop goes the other way
    command: Callable  # argv of the process
    ready: Callable  # does it do its work?
    files: Callable  # what it reads at its start; a running one is restarted when they have changed
    stop_seconds: int  # from SIGTERM to SIGKILL
    prepare: Callable = lambda state, settings: None  # before each start


SERVICES = {
    service.name: service for service in (
        Service(kafka.NAME, 1, kafka.command, kafka.ready, kafka.files, 30, kafka.prepare),
        Service(clickhouse.NAME, 2, clickhouse.command, clickhouse.ready, clickhouse.files, 30, clickhouse.prepare),
        Service(mlflow.NAME, 3, mlflow.command, mlflow.ready, mlflow.files, 20),
        Service(flink.JOBMANAGER, 4, flink.jobmanager_command, flink.jobmanager_ready, flink.jobmanager_files, 20,
                flink.prepare_jobmanager),
        Service(flink.TASKMANAGER, 5, flink.taskmanager_command, flink.taskmanager_ready, flink.taskmanager_files, 20,
                flink.prepare_taskmanager),
        Service(push.NAME, 6, push.command, push.ready, push.files, 20, push.prepare),
        Service(trainer.NAME, 7, trainer.command, trainer.ready, trainer.files, 20),
        Service(registry.NAME, 8, registry.command, registry.ready, registry.files, 30),
        Service(telegraf.NAME, 9, telegraf.command, telegraf.ready, telegraf.files, 20, telegraf.prepare),
        Service(transactions.NAME, 10, transactions.command, transactions.ready, transactions.files, 10,
                transactions.prepare),
        *([Service(grafana.NAME, 11, grafana.command, grafana.ready, grafana.files, 20, grafana.prepare)] if grafana.
          installed() else []),
    )
}

FLINK = {flink.JOBMANAGER, flink.TASKMANAGER}
GROUPS = {
    "flink": FLINK, "data": FLINK | {kafka.NAME, clickhouse.NAME},
    "learning": {mlflow.NAME, push.NAME, trainer.NAME,
                 registry.NAME}, "observe": {telegraf.NAME, grafana.NAME} & set(SERVICES)
}


def chosen(only) -> list[Service]:
    """The services of a list of names, in start order; nothing is all, and a group means its services."""
    names = set(only or SERVICES)
    for group, members in GROUPS.items():
        if group in names:
            names = names - {group} | members
    if unknown := names - set(SERVICES):
        raise PlatformError(
            f"no such service: {', '.join(sorted(unknown))}; there are {', '.join(SERVICES)}, and the groups"
            f" {', '.join(GROUPS)}"
        )
    return [service for service in SERVICES.values() if service.name in names]


def fingerprint(service: Service, state, settings) -> str:
    """Changes when the service's files do. A large file, the job, is known by its size and time."""
    digest = hashlib.sha256()
    for path in service.files(state, settings):
        stat = os.stat(path)
        digest.update(str(path).encode())
        digest.update(f"{stat.st_size} {stat.st_mtime_ns}".encode() if stat.st_size >
                      1 << 20 else open(path, "rb").read())
    return digest.hexdigest()
