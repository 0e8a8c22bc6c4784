"""Class-data archives (AppCDS): the JVM maps its classes instead of parsing them, which halves the CPU of a start.

An archive belongs to one set of jars and one JVM; a JVM ignores one that does not fit. They are made by `setup`, again
when a template of the configuration changes (that changes which classes are used); classdata_record.py records them.
"""
import hashlib
import os
import shutil
from pathlib import Path

from oal_local import distribution
from oal_local.paths import CONFIG, KAFKA, cache_dir

DISTRIBUTION = {"kafka-format": "kafka", "kafka": "kafka", "jobmanager": "flink", "taskmanager": "flink"}
TEMPLATE = {"kafka": KAFKA / "server.properties", "flink": CONFIG / "flink" / "config.yaml"}
recording: Path | None = None  # the folder that archives are written to while classdata_record.record() runs


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
