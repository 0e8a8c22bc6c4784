"""A platform of its own for what is backed up, and the configuration that says so."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "platform" / "backup" / "src"), str(ROOT / "platform" / "local" / "src")]

from oal_local.platform import Platform  # noqa: E402


class Backup:
    """`oal-backup` with a configuration."""

    def __init__(self, config: Path):
        self.config = config

    def __call__(self, *arguments: str, ok: bool = True) -> str:
        """What it said on both channels; AssertionError when it ended otherwise than `ok` says."""
        done = subprocess.run([ROOT / "platform" / "backup" / "oal-backup", "--config", self.config, *arguments],
                              capture_output=True, text=True, timeout=300)
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done.stdout + done.stderr


def config_text(folder: Path, **sections: dict) -> str:
    """TOML; values are texts and lists of texts, which Python writes as TOML does."""
    def value(v):
        return "[" + ", ".join(map(value, v)) + "]" if isinstance(v, list) else '"' + str(v).replace('"', '\\"') + '"'
    lines = [f"folder = {value(folder)}"]
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value(v)}" for key, v in options.items())]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    with Platform(
            tmp_path_factory.mktemp("platform") / "state", ports="auto", only=["clickhouse", "mlflow", "kafka",
                                                                               "push"]) as running:
        yield running


def clickhouse_section(platform) -> dict:
    return {
        "url": platform.clickhouse.http_url, "user": "admin",
        "password_file": platform.clickhouse.password_file("admin"),
        "location": f"File('{platform.state.clickhouse}/backups/{{name}}')"
    }
