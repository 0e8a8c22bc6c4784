import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHART = ROOT / "helm" / "oal"
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def tools() -> Path:
    return Path(
        subprocess.run([ROOT / "helm" / "cluster" / "tools.sh"], check=True, stdout=subprocess.PIPE,
                       text=True).stdout.strip())


class Chart:
    def __init__(self, helm: Path, home: Path):
        self.helm, self.environment, self._rendered, self._parsed = helm, os.environ | {"HOME": str(home)}, {}, {}

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        done = subprocess.run([self.helm, *arguments], capture_output=True, text=True, env=self.environment)
        # Helm speaks of every symbolic link that it follows.
        done.stderr = "\n".join(line for line in done.stderr.splitlines() if "found symbolic link" not in line)
        return done

    def text(self, *values: str) -> str:
        """The manifests with `-f FILE` and `--set …` of VALUES; names without a suffix are examples."""
        if values not in self._rendered:
            done = self.run("template", "oal", str(CHART), "-n", "wifi", "--kube-version", "1.37.0", *options(values))
            assert done.returncode == 0, done.stderr
            self._rendered[values] = done.stdout
        return self._rendered[values]

    def objects(self, *values: str) -> list[dict]:
        """The same parsed; shared by all tests, so not to be changed."""
        if values not in self._parsed:
            # PyYAML's own parser takes seconds for the dashboards.
            self._parsed[values] = [o for o in yaml.load_all(self.text(*values), yaml.CSafeLoader) if o]
        return self._parsed[values]

    def refusal(self, *values: str) -> str:
        """What Helm says to values that it must not take."""
        done = self.run("template", "oal", str(CHART), "--kube-version", "1.37.0", *options(values))
        assert done.returncode != 0, f"{values} was rendered"
        return done.stderr


def options(values) -> list[str]:
    words = []
    for value in values:
        words += ["--set", value] if "=" in value else ["-f", str(CHART / "examples" / f"{value}.yaml")]
    return words


@pytest.fixture(scope="session")
def chart(tools, tmp_path_factory) -> Chart:
    return Chart(tools / "helm", tmp_path_factory.mktemp("home"))
