import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent / "real"), str(HERE.parent), str(ROOT / "tests")]

import figures  # noqa: E402
import images  # noqa: E402
import real_cluster  # noqa: E402
import spaces  # noqa: E402
from figures import measured  # noqa: E402
from newcomer import Newcomer  # noqa: E402
from node import PAUSE  # noqa: E402
from pages import commands  # noqa: E402

PAGE = "install-cluster.md"
HOST = "node.example.net"  # the newcomer's node; another than the examples'
BEGAN = float(os.environ.get("OAL_BEGAN") or time.time())

# A newcomer's machine is empty: one that another run kept is none, and this one is not kept.
real_cluster.KEEP = False


@pytest.fixture(scope="session")
def engine():
    """The container engine that a release is made with."""
    ours = subprocess.run([images.IMAGES / "engine", "env"], capture_output=True).returncode != 0
    started = subprocess.run([images.IMAGES / "engine", "start"], check=True, stdout=subprocess.PIPE, text=True)
    os.environ.update(re.findall(r"(DOCKER_HOST|OAL_ENGINE)=(\S+)", started.stdout))
    yield
    if ours:
        subprocess.run([images.IMAGES / "engine", "stop"], check=False)


@pytest.fixture(scope="session")
def blocks() -> list[str]:
    """The page's commands, top to bottom."""
    return commands(PAGE, "helm/cluster")


@pytest.fixture(scope="session")
def release(engine, blocks, tmp_path_factory):
    """A release's folder and its publisher's public key, by the page's first commands: packed chart and archives of
    images, of stand-ins. The tree must be as it is committed."""
    home = tmp_path_factory.mktemp("publisher")
    without = {name: value for name, value in os.environ.items() if name not in ("OAL_REGISTRY", "OAL_RELEASE_KEY")}
    publisher = Newcomer(home, ROOT, without | {"OAL_KEYS": str(home / "keys"), "STANDINS": "1"})
    began = time.monotonic()
    said = publisher.types(blocks[0], 3000)
    measured("a release made, of stand-ins", time.monotonic() - began)
    (folder,) = map(Path, re.findall(r"^release: (\S+/oal-\S+)$", said, re.M))
    yield folder, home / "keys" / "oal.pub"
    shutil.rmtree(folder)
    tag = folder.name.removeprefix("oal-")
    names = subprocess.run(["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    subprocess.run(["docker", "image", "rm", *(name for name in names if f":{tag}" in name)], check=False,
                   stdout=subprocess.DEVNULL)


class EmptyMachine(real_cluster.RealCluster):
    """A node with no image but the pause container's; the release brings the others. Its network knows it by a name."""
    names = {HOST: spaces.address(0)}

    def __init__(self):
        super().__init__(1)
        (node,) = self.nodes
        node.images = real_cluster.cache() / "images-page"

    def start(self) -> "EmptyMachine":
        self.clean()  # what a killed run left has files of the folder open
        self.forget()
        build, bring = images.build, images.bring
        images.build, images.bring = self._pause, self._bring_pause
        try:
            return super().start()
        finally:
            images.build, images.bring = build, bring

    def forget(self) -> None:
        """Its images are not for another run."""
        if self.nodes[0].images.exists():
            shutil.rmtree(self.nodes[0].images)

    @staticmethod
    def _pause() -> None:
        subprocess.run(["docker", "build", "-q", "-t", PAUSE, "-f", HERE.parent / "real" / "pause.Dockerfile",
                        HERE.parent / "real"], check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"DOCKER_BUILDKIT": "0"})

    @staticmethod
    def _bring_pause(node) -> None:
        save = subprocess.Popen(["docker", "save", PAUSE], stdout=subprocess.PIPE)
        node.ctr("images", "import", "-", stdin=save.stdout, timeout=600)
        save.stdout.close()
        assert save.wait() == 0


@pytest.fixture(scope="session")
def cluster(release):
    cluster = EmptyMachine()
    try:
        yield cluster.start()
    finally:
        cluster.stop()
        cluster.forget()


def pytest_terminal_summary(terminalreporter, exitstatus):
    """Figures are written of a run that passed."""
    if exitstatus == 0:
        measured("all of it, from make's start", time.time() - BEGAN)
        figures.write("make -C helm real-page")
    for name, (value, unit) in figures.MEASURED.items():
        terminalreporter.write_line(f"  {name}: {value} {unit}")
