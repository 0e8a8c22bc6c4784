"""What a running platform holds: memory, file handles, threads, Kafka's transactional ids, ClickHouse's parts, disk."""

from __future__ import annotations

import base64
import json
import os
import statistics
import sys
import urllib.request
from pathlib import Path

from oal_local import jolokia, kafka, passwords
from oal_local.paths import KAFKA

from soak.figures import Figure

SERVICES = ("kafka", "clickhouse", "jobmanager", "taskmanager")
PAGE = os.sysconf("SC_PAGE_SIZE")


def mbeans(platform, service: str, pattern: str, attribute: str) -> dict[str, object]:
    """An attribute of each of a JVM's beans that the pattern names, through Jolokia."""
    password = passwords.token_file(platform.state, "jolokia.password").read_text().strip()
    asked = {"type": "read", "mbean": pattern, "attribute": attribute}
    request = urllib.request.Request(
        jolokia.url(platform.settings, service) + "/jolokia/", json.dumps(asked).encode(),
        {"Authorization": "Basic " + base64.b64encode(f"{jolokia.USER}:{password}".encode()).decode()})
    with urllib.request.urlopen(request, timeout=10) as answer:
        found = json.load(answer)
    if found["status"] not in (200, 404):  # 404: no such bean, as before the job's start
        raise ConnectionError(f"Jolokia of {service}: {found.get('error')}")
    return {name: bean[attribute] for name, bean in (found.get("value") or {}).items()}


def decoded(platform) -> int:
    """Records that the operator `decode` has taken since the job's start, over its subtasks."""
    return sum(count for name, count in mbeans(
        platform, "taskmanager", "org.apache.flink.taskmanager.job.task.operator.numRecordsIn:*", "Count").items()
        if "operator_name=decode," in name)


def heap_after_gc(platform, service: str) -> int:
    """Bytes of the heap's pools after the last collection of each; 0 of a pool that never needed one."""
    return sum((usage or {}).get("used", 0) for usage in mbeans(
        platform, service, "java.lang:type=MemoryPool,*", "CollectionUsage").values())


def transactional_ids(platform) -> int:
    sys.path.append(str(KAFKA))
    from transaction_requests import Connection

    with Connection("127.0.0.1", platform.settings.ports["kafka"], kafka.tls(platform.state, "admin")) as broker:
        return len(broker.transactional_ids([]))


def bytes_below(folder: Path) -> int:
    total = 0
    for at, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.stat(os.path.join(at, name), follow_symlinks=False).st_blocks * 512
            except OSError:
                continue  # gone meanwhile
    return total


def sample(platform) -> dict[str, float]:
    """Each resource by name, now."""
    out: dict[str, float] = {}
    for service in SERVICES:
        process = Path(f"/proc/{platform.pid(service)}")
        out[f"resident_bytes.{service}"] = int((process / "statm").read_text().split()[1]) * PAGE
        out[f"file_handles.{service}"] = len(os.listdir(process / "fd"))
        out[f"threads.{service}"] = len(os.listdir(process / "task"))
    for service in ("kafka", "taskmanager"):
        out[f"heap_after_gc_bytes.{service}"] = heap_after_gc(platform, service)
    out["transactional_ids"] = transactional_ids(platform)
    parts = platform.clickhouse.rows("SELECT count() AS parts, sum(bytes_on_disk) AS bytes FROM system.parts"
                                     " WHERE database = 'oal' AND active")[0]
    out["clickhouse_parts"] = parts["parts"]
    out["stored_bytes.clickhouse"] = parts["bytes"]
    out["stored_bytes.kafka"] = bytes_below(platform.state.kafka / "data")
    out["disk_bytes.flink"] = bytes_below(platform.state.flink)
    out["stored_bytes.logs"] = bytes_below(platform.state.logs)
    return out


def slope(points: list[tuple[float, float]]) -> float:
    """Of the straight line through (x, y), least squares; 0 of fewer than two points."""
    if len(points) < 2 or len({x for x, _ in points}) < 2:
        return 0.0
    mean_x, mean_y = statistics.fmean(x for x, _ in points), statistics.fmean(y for _, y in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x)**2 for x, _ in points)


def growth(points: list[tuple[float, float]]) -> float:
    """By how much of its middle value a resource grows from the first of these points to the last, along the line."""
    middle = statistics.median(y for _, y in points)
    span = points[-1][0] - points[0][0]
    return slope(points) * span / middle if middle else slope(points) * span


def floors(points: list[tuple[float, float]], windows: int = 6) -> list[tuple[float, float]]:
    """The lowest point of each of so many stretches of equally many: what is used for a while and given back is above
    it, what is never given back raises it.
    """
    each = max(1, len(points) // windows)
    return [min(points[i:i + each], key=lambda point: point[1]) for i in range(0, each * (len(points) // each), each)]


#: Of what is to stay flat: how much it may grow over the last three quarters, as a part of its middle value. Beside
#: each what was seen.
FLAT = {
    "resident_bytes.": 0.25,  # 0.11 of ClickHouse, whose caches still fill; under 0.04 of the others
    "heap_after_gc_bytes.": 0.25,
    # 0.23: of each part that it reads or merges, whose number swings by a third. A handle a checkpoint that is never
    # given back would be 0.7.
    "file_handles.clickhouse": 0.5,
    "file_handles.": 0.15,  # under 0.01
    "threads.": 0.1,  # 0.02
    "transactional_ids": 0.0,  # one a sink's writer, whatever the number of checkpoints
    "clickhouse_parts": 0.5,  # 0.05; a merge more or less is a tenth
    "disk_bytes.": 0.5,  # 0.01
}
#: Handles: a merge has up to a hundred files open, and gives them back.
FLOORS = ("file_handles.",)
#: Not before its last half: until an old generation is collected for the first time, nobody knows what it holds.
LATE = ("heap_after_gc_bytes.",)
#: What grows by what is stored: it must not grow faster at the end than in the middle, by more than this (0.01).
STORED = 0.5


def figures(drill: str, samples: list[tuple[float, dict[str, float]]]) -> list[Figure]:
    """Of samples (hour of the stream, resources): each at the quarter points, and how much it grew after the first."""
    out = []
    hours = samples[-1][0]
    for name in samples[0][1]:
        begin = hours / 2 if name.startswith(LATE) else hours / 4
        later = [(at, values) for at, values in samples if at >= begin]
        quarters = [min(samples, key=lambda s: abs(s[0] - hours * q / 4))[1][name] for q in range(1, 5)]
        told = ", ".join(f"{value:,.0f}" for value in quarters)
        points = [(at, values[name]) for at, values in later]
        if name.startswith("stored_"):
            half = len(points) // 2
            first, last = slope(points[:half + 1]), slope(points[half:])
            out.append(Figure(f"{drill}.{name}.per_hour", round(last), "B/h",
                              f"of stream; {name} at the quarters: {told}"))
            out.append(Figure(f"{drill}.{name}.faster", round(last / first - 1, 3) if first > 0 else 0, "",
                              "at the end than in the middle, as a part", ("<=", STORED)))
            continue
        bound = next(limit for prefix, limit in FLAT.items() if name.startswith(prefix))
        out.append(Figure(f"{drill}.{name}", quarters[-1], name.split(".")[0].split("_")[-1],
                          f"{name} at the quarters: {told}"))
        lowest = name.startswith(FLOORS)
        out.append(Figure(f"{drill}.{name}.growth", round(growth(floors(points) if lowest else points), 4), "",
                          f"{'of the lowest values, ' if lowest else ''}after the first"
                          f" {'half' if name.startswith(LATE) else 'quarter'}, along a straight line, as a part of the"
                          " middle value", ("<=", bound)))
    return out
