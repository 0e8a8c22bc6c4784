"""What an instance was asked to be: ports, job, sizes. Kept in platform.json, so that `up` after `down` is the same
one.
"""
import json
import os
from dataclasses import asdict, dataclass, field, fields

from oal_local import ports
from oal_local.errors import PlatformError
from oal_local.paths import POLICIES, REPO, State, write_private


def short_lived() -> bool:
    """Whether the platform is up for minutes, as tests say: less CPU at first, slower later. Measure without it."""
    return bool(os.environ.get("OAL_SHORT_LIVED"))


@dataclass
class Settings:
    ports: dict = field(default_factory=dict)
    ports_mode: str = "default"
    partitions: int = 0  # of each topic; 0: as config/kafka/topics.yaml says
    job_jar: str = str(REPO / "stream-jobs" / "target" / "stream-jobs.jar")
    job_class: str = "oal.stream.Main"
    job_args: list = field(default_factory=list)  # after `--config job.properties`
    job_properties: dict = field(default_factory=dict)  # added to job.properties
    flink: dict = field(default_factory=dict)  # Flink options on top of config/flink/config.yaml
    checkpoint_interval: str = "1s"  # rows become visible at a checkpoint, so latency follows this
    state_backend: str = "hashmap"  # or rocksdb, for state larger than the heap
    parallelism: int = 2
    taskmanager_heap_mib: int = 768
    kafka_heap_mib: int = 384
    clickhouse_memory_mib: int = 1536
    trainer_settings: str = ""  # file of thresholds; empty: training/online.yaml
    policies: str = str(POLICIES)  # folder of control policies
    approvals: str = "required"  # before a release reaches more than a canary; or none
    telegraf_interval: str = "10s"  # between readings of the platform's own figures
    telegraf_watch: list = field(
        default_factory=lambda:
        ["host", "kafka", "flink", "clickhouse", "mlflow", "trainer", "model-registry", "push", "certificates"])


def load(state: State) -> Settings | None:
    """The instance's settings, None when it was never up."""
    try:
        text = state.settings.read_text()
    except FileNotFoundError:
        return None
    if not text:
        return None
    known = {f.name for f in fields(Settings)}
    return Settings(**{k: v for k, v in json.loads(text).items() if k in known})


def resolve(state: State, changes: dict, running: bool) -> Settings:
    """Earlier settings with the changes asked for, and with ports. A running instance keeps its ports."""
    known = {f.name for f in fields(Settings)}
    if unknown := set(changes) - known:
        raise PlatformError(f"no such setting: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    settings = load(state) or Settings()
    asked_mode = changes.get("ports_mode") or settings.ports_mode
    if asked_mode not in ("auto", "default"):
        raise PlatformError(f"ports must be `auto` or `default`, not `{asked_mode}`")
    for name, value in changes.items():
        setattr(settings, name, value)
    settings.ports_mode = asked_mode
    if not running:
        if asked_mode == "default":
            settings.ports = dict(ports.DEFAULT)
            if busy := [f"{name}={port}" for name, port in settings.ports.items() if not ports.free(port)]:
                raise PlatformError(
                    f"these loopback ports are in use: {', '.join(busy)}; stop what holds them or use `--ports auto`")
        elif set(settings.ports) != set(ports.DEFAULT) or not all(map(ports.free, settings.ports.values())):
            settings.ports = ports.reserve(state.settings)
    write_private(state.settings, json.dumps(asdict(settings), indent=1))
    return settings
