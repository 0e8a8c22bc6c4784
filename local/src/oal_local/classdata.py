"""Class-data archives (AppCDS): the JVM maps its classes instead of parsing them, which halves the CPU of a start.

An archive belongs to one set of jars and one JVM; the JVM itself ignores one that does not fit.
"""
import functools
import hashlib
import subprocess

from oal_local import distribution
from oal_local.paths import cache_dir

DISTRIBUTION = {"kafka": "kafka", "kafka-format": "kafka", "jobmanager": "flink", "taskmanager": "flink"}


@functools.cache
def _jvm() -> str:
    return subprocess.run(["java", "-version"], check=True, capture_output=True, text=True).stderr


def archive(name: str):
    jars = distribution.folder(DISTRIBUTION[name]).name
    return cache_dir() / "cds" / f"{name}-{hashlib.sha256((jars + _jvm()).encode()).hexdigest()[:12]}.jsa"


def options(name: str) -> list[str]:
    """JVM options that use the archive, if `setup` made it."""
    path = archive(name)
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if path.exists() else []
