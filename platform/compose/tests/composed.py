"""A Compose project of its own on the engine of platform/images/tests, with stand-ins for the images that cannot be had
here.
"""
import json
import os
import time
from pathlib import Path

from docker_engine import ROOT, Engine, run

#: No image of Grafana can be had or made here.
OVER = Path(__file__).with_name("without-grafana.yml")
PROFILES = ("sim", "train", "observe")


def program() -> Path:
    return Path(
        run(ROOT / "platform" / "setup" / "gotool", ROOT / "platform" / "compose" / "tools",
            timeout=1800).stdout.split()[-1]) / "cmd"


class Project:
    def __init__(self, engine: Engine, name: str, state: Path):
        self.engine, self.name, self.state = engine, name, state
        self.environment = {"OAL_SECRETS": str(state)}
        self._compose = program()

    def __call__(self, *arguments, profiles=PROFILES, timeout: float = 120, check: bool = True) -> str:
        files = ("-f", ROOT / "docker-compose.yml", "-f", OVER, "--env-file", ROOT / "platform" / "images" / "tags.env",
                 "--env-file", ROOT / "platform" / "images" / "tags.standin.env")
        asked = [part for profile in profiles for part in ("--profile", profile)]
        return run(self._compose, "-p", self.name, "--project-directory", ROOT, *files, *asked, *arguments,
                   timeout=timeout, check=check, env={**os.environ, **self.environment}).stdout

    def up(self, *more, timeout: float = 900) -> float:
        """Seconds until everything is healthy."""
        started = time.monotonic()
        self("up", "--no-build", "--wait", "--wait-timeout", str(int(timeout)), *more, timeout=timeout + 30)
        return time.monotonic() - started

    def containers(self) -> dict[str, dict]:
        """Service → what the engine says of its container."""
        ids = self("ps", "-a", "-q").split()
        return {c["Config"]["Labels"]["com.docker.compose.service"]: c for c in map(self.engine.inspect, ids)}

    def secret(self, name: str) -> str:
        return (self.state / "secrets" / name).read_text().strip()

    def sql(self, query: str, user: str = "admin") -> str:
        return self.engine.inside("curl", "-sS", "--fail-with-body", "-m", "20", *self.trust, "-u",
                                  f"{user}:{self.secret(f'clickhouse-{user}.password')}", "https://localhost:8123/",
                                  "--data-binary", query).stdout.strip()

    def number(self, query: str) -> int:
        return int(self.sql(query))

    def get(self, url: str, *options) -> dict:
        """Of a server that our authority vouches for."""
        return json.loads(
            self.engine.inside("curl", "-sS", "--fail-with-body", "-m", "20", *self.trust, *options, url).stdout)

    @property
    def trust(self) -> tuple:
        return "--cacert", self.state / "pki" / "ca.crt"

    def flink(self, path: str) -> dict:
        pki = self.state / "pki"
        return self.get(f"https://localhost:8081{path}", "--cert", pki / "operator.crt",
                        "--key", pki / "operator.key")

    def until(self, what: str, condition, seconds: float = 120):
        """The first true answer."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if answer := condition():
                    return answer
                seen = answer
            except AssertionError as error:
                seen = error
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}; last: {str(seen)[-1500:]}"
            time.sleep(0.5)
