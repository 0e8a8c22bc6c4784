"""Where things are: the repository, the cache that outlives it, and the layout of a state folder."""
import json
import os
import subprocess
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[4]
PLATFORM = REPO / "platform"
SETUP = PLATFORM / "setup"
KAFKA = PLATFORM / "kafka"
LOCAL = PLATFORM / "local"
SOURCE = LOCAL / "src"
CONFIG = LOCAL / "config"
POLICIES = REPO / "policies" / "in-force"


def cache_dir() -> Path:
    """What is downloaded or built once; shared by every state folder and every checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oal"


@cache
def python() -> str:
    """The interpreter with this folder's pinned packages. Importers of Platform may run on another one."""
    made = subprocess.run([str(SETUP / "venv"), str(LOCAL / "requirements.txt")], check=True, stdout=subprocess.PIPE,
                          text=True)
    return made.stdout.strip() + "/bin/python"


class State:
    """One instance's folder. Everything an instance writes is below it."""

    def __init__(self, folder):
        self.dir = Path(folder).resolve()
        self.settings = self.dir / "platform.json"
        self.lock = self.dir / "lock"
        self.logs = self.dir / "logs"
        self.run = self.dir / "run"
        self.pki = self.dir / "pki"
        self.secrets = self.dir / "secrets"
        self.kafka = self.dir / "kafka"
        self.clickhouse = self.dir / "clickhouse"
        self.flink = self.dir / "flink"
        self.checkpoints = self.flink / "checkpoints"
        self.mlflow = self.dir / "mlflow"
        self.registry = self.dir / "model-registry"
        self.trainer = self.dir / "trainer"
        self.push = self.dir / "push"
        self.agents = self.dir / "agents"  # of APs that are played here: their state, their batch keys
        self.trusted_keys = self.pki / "bundle-keys.txt"
        self.mac_masters = self.secrets / "mac-masters"
        self.job_properties = self.flink / "job.properties"

    def make(self) -> None:
        """Create the folders; only their owner may enter, for keys and passwords are in there."""
        self.dir.mkdir(parents=True, exist_ok=True)
        self.dir.chmod(0o700)
        for folder in (self.logs, self.run, self.pki, self.secrets, self.kafka, self.clickhouse, self.mlflow,
                       self.registry, self.trainer, self.push, self.agents, self.flink / "conf", self.flink / "tmp",
                       self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    temporary = path.with_name(path.name + ".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    temporary.replace(path)


def write_config(path: Path, config: dict) -> None:
    """A service's configuration file; JSON is YAML."""
    write_private(path, json.dumps(config, indent=1) + "\n")
