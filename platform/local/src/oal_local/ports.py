"""Loopback ports of an instance.

`default` is the fixed list below. `auto` reserves a block of free ports: below the kernel's ephemeral range, so that no
outgoing connection can take one while a service restarts, and in a registry in the cache, so that instances that start
at the same moment do not choose the same block.
"""
import fcntl
import json
import random
import socket

from oal_local.errors import PlatformError
from oal_local.paths import cache_dir

DEFAULT = {
    "kafka": 9094,
    "kafka_controller": 9095,
    "clickhouse_http": 8123,
    "flink_rest": 8081,
    "flink_rpc": 6123,
    "flink_blob": 6124,
    "taskmanager_rpc": 6122,
    "mlflow": 5000,
    "model_registry": 5001,
    "trainer": 5002,
    "push_ap": 8443,
    "push_admin": 8444,
    "push_enrol": 8445,
    "jolokia_kafka": 8778,
    "jolokia_jobmanager": 8779,
    "jolokia_taskmanager": 8780,
    "grafana": 3000,
}
FIRST, LAST = 20000, 32000  # Linux gives out 32768-60999 by itself
BLOCK = 24


def free(port: int) -> bool:
    with socket.socket() as probe:
        # As the services do: a port in TIME_WAIT is free for a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def reserve(settings_file) -> dict:
    """Choose a block of free ports for the instance whose platform.json is `settings_file`."""
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "ports.json", "a+") as registry:
        fcntl.flock(registry, fcntl.LOCK_EX)
        registry.seek(0)
        text = registry.read()
        taken = {int(first): owner for first, owner in (json.loads(text) if text else {}).items() if _alive(owner)}
        blocks = list(range(FIRST, LAST, BLOCK))
        random.shuffle(blocks)
        for first in blocks:
            if first in taken:
                continue
            ports = {name: first + i for i, name in enumerate(DEFAULT)}
            if all(map(free, ports.values())):
                break
        else:
            raise PlatformError(
                f"no block of {len(DEFAULT)} free loopback ports between {FIRST} and {LAST}; stop an instance")
        # The owner's file is written after this returns; an empty one keeps the reservation alive until then.
        settings_file.touch()
        taken[first] = str(settings_file)
        registry.seek(0)
        registry.truncate()
        json.dump(taken, registry)
    return ports


def _alive(owner: str) -> bool:
    """A reservation lives as long as its instance's folder."""
    try:
        open(owner).close()
        return True
    except OSError:
        return False
