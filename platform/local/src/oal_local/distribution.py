"""The jars of Kafka and Flink, copied once from Maven Central to the cache as pinned in config/NAME/pom.xml."""
import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from oal_local.errors import PlatformError
from oal_local.paths import CONFIG, KAFKA, SETUP, cache_dir

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
AGENT = "jolokia-agent-jvm-*-javaagent.jar"


def pom_file(name: str) -> Path:
    """What says which jars `kafka` or `flink` has."""
    return (KAFKA if name == "kafka" else CONFIG / name) / "pom.xml"


def folder(name: str) -> Path:
    """Where the jars of `kafka` or `flink` are, whether or not they are there yet. A changed pom is another folder."""
    pom = pom_file(name).read_bytes()
    return cache_dir() / "dist" / f"{name}-{hashlib.sha256(pom).hexdigest()[:12]}"


def ensure(name: str) -> Path:
    """Download what is missing; safe to run again and in parallel."""
    target = folder(name)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        ensure_java()
        print(f"setup: downloading the jars of {name} (once)", file=sys.stderr, flush=True)
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = ["mvn", "-B", "-q", "-Dstyle.color=never", "-f", str(pom_file(name)), DEPENDENCY_PLUGIN,
                   f"-DoutputDirectory={partial}", "-DincludeScope=runtime"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise PlatformError(
                f"downloading the jars of {name} failed: `{' '.join(command)}` said\n{done.stdout[-2000:]}")
        partial.rename(target)
    return target


def ensure_java() -> None:
    """Java and Maven from Debian, unless some are on the path already."""
    if not (shutil.which("java") and shutil.which("mvn")):
        subprocess.run([str(SETUP / "apt"), "openjdk-17-jdk-headless", "maven"], check=True)


def class_path(name: str) -> str:
    """The jars in one fixed order: class-data archives are valid only for the order they were made with."""
    return ":".join(str(jar) for jar in sorted(ensure(name).glob("*.jar")) if not jar.match(AGENT))


def agent(name: str) -> Path:
    """Jolokia's agent, which brings its own classes and is on no class path."""
    return next(ensure(name).glob(AGENT))
