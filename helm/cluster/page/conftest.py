import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent / "real"), str(HERE.parent), str(ROOT / "tests")]

import images  # noqa: E402
from node import PAUSE  # noqa: E402
from real_cluster import RealCluster, cache  # noqa: E402


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
def release(engine, tmp_path_factory) -> tuple[Path, Path]:
    """A release's folder and its publisher's public key: packed chart and archives of images, of stand-ins. The tree
    must be as it is committed."""
    keys = tmp_path_factory.mktemp("keys")
    program = ROOT / "platform" / "release" / "release"
    subprocess.run([program, "key", keys], check=True)
    done = subprocess.run([program, "make", "--snapshot", "--standins", "--key", keys / "oal.key"],
                          stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-2000:]
    return Path(done.stdout.splitlines()[-1].removeprefix("release: ")), keys / "oal.pub"


class EmptyMachine(RealCluster):
    """A node with no image but the pause container's; the release brings the others."""

    def __init__(self):
        super().__init__(1)
        (node,) = self.nodes
        node.images = cache() / "images-page"

    def start(self) -> "EmptyMachine":
        shutil.rmtree(self.nodes[0].images, ignore_errors=True)
        build, bring = images.build, images.bring
        images.build, images.bring = self._pause, self._bring_pause
        try:
            return super().start()
        finally:
            images.build, images.bring = build, bring

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
        shutil.rmtree(cluster.nodes[0].images, ignore_errors=True)
