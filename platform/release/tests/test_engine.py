"""An image listed, saved and pushed by the real engine to a real registry: a small one, of one program."""
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from docker_engine import ROOT, Engine
from oal_release import images
from registry import program, serving

SRC = Path(__file__).resolve().parents[1] / "src"


@pytest.fixture(scope="module")
def engine():
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def registry(engine):
    with serving(engine) as address:
        yield address


@pytest.fixture(scope="module")
def image(engine, registry, tmp_path_factory):
    folder = tmp_path_factory.mktemp("image")
    (folder / "registry").write_bytes(program().read_bytes())
    (folder / "registry").chmod(0o755)
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY registry /registry\nENTRYPOINT [\"/registry\"]\n")
    name = f"{registry}test-release:1"
    engine.docker("build", "-q", "-t", name, str(folder))
    engine.docker("tag", name, f"{name}-amd64")
    yield name
    engine.docker("image", "rm", "-f", name, f"{name}-amd64", check=False)


def test_a_list_names_what_is_in_the_image(image, tmp_path):
    images.material(Path(sys.executable).parent / "syft", image, tmp_path / "list.json")
    listed = json.loads((tmp_path / "list.json").read_text())
    assert listed["bomFormat"] == "CycloneDX"
    assert any(part.get("purl", "").startswith("pkg:golang/github.com/google/go-containerregistry@v")
               for part in listed["components"])


def test_an_archive_has_the_image_by_its_name(image, tmp_path):
    images.save([image], tmp_path / "images.tar", "linux/amd64")
    with tarfile.open(tmp_path / "images.tar") as tar:
        assert json.load(tar.extractfile("manifest.json"))[0]["RepoTags"] == [image]


def test_what_is_pushed_is_a_list_of_platforms_by_the_digest_that_is_told(engine, registry, image):
    inside = f"from oal_release import images; print(images.push({image!r}, ['amd64'], plain=True))"
    done = subprocess.run([ROOT / "platform/images/engine", "exec", "env", f"PYTHONPATH={SRC}", sys.executable, "-c",
                           inside], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    listed = json.loads(engine.inside(
        "curl", "-sSf", "-H", "Accept: application/vnd.docker.distribution.manifest.list.v2+json",
        f"http://{registry.split('/')[0]}/v2/oal/test-release/manifests/{done.stdout.strip()}").stdout)
    assert [m["platform"]["architecture"] for m in listed["manifests"]] == ["amd64"]


def test_the_engines_own_platform_is_one_that_it_builds(engine):
    assert images.platforms("")[0] == "linux/amd64"
