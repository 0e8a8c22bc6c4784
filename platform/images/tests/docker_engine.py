"""The engine that tests build and run on: platform/images/engine's, started if it is not there and stopped then."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "platform" / "images"
OWN = ("push", "learning", "stream-jobs", "setup", "telegraf", "exporter")


def run(*command, timeout: float = 120, check: bool = True, **more) -> subprocess.CompletedProcess:
    """A command with its output as text; AssertionError with that output if it fails."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, stdin=subprocess.DEVNULL, **more)
    if check:
        assert done.returncode == 0, f"{' '.join(str(c) for c in command)}\n{done.stdout[-4000:]}"
    return done


def tags(standins: bool = True) -> dict[str, str]:
    """Names and values of tags.env, on top of them those of tags.standin.env, as a shell reads them."""
    files = [IMAGES / "tags.env"] + ([IMAGES / "tags.standin.env"] if standins else [])
    names = {name for file in files for name in re.findall(r"^([A-Z_]+)=", file.read_text(), re.M)}
    script = "set -a; " + " ".join(f". {file};" for file in files) + " env -0"
    found = dict(
        entry.split("=", 1) for entry in run("env", "-i", "bash", "-c", script).stdout.split("\0") if "=" in entry)
    return {name: found[name] for name in names}


class Engine:
    def __enter__(self):
        self.ours = run(IMAGES / "engine", "env", check=False).returncode != 0
        text = run(IMAGES / "engine", "start", timeout=600).stdout
        os.environ.update(re.findall(r"(DOCKER_HOST|OAL_ENGINE)=(\S+)", text))
        return self

    def __exit__(self, *_):
        if self.ours:
            run(IMAGES / "engine", "stop", timeout=150)

    def docker(self, *arguments, timeout: float = 120, check: bool = True) -> str:
        return run("docker", *arguments, timeout=timeout, check=check).stdout

    def inspect(self, name: str) -> dict:
        return json.loads(self.docker("inspect", name))[0]

    def inside(self, *command, timeout: float = 30, check: bool = True) -> subprocess.CompletedProcess:
        """In the engine's network, where published ports are."""
        return run(IMAGES / "engine", "exec", *command, timeout=timeout, check=check)


def build(*names, timeout: float = 3600) -> None:
    """Images and stand-ins; what has not changed is not built again."""
    done = subprocess.run([IMAGES / "build", "--standins", *names], timeout=timeout, stdin=subprocess.DEVNULL,
                          stdout=sys.stderr, stderr=subprocess.STDOUT)
    assert done.returncode == 0, "platform/images/build failed; its output stands above"
