"""An image listed, saved and pushed by the real engine to a real registry: a small one, of one program."""
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from docker_engine import ROOT
from oal_release import bundle, cli, images
from registry import program

SRC = Path(__file__).resolve().parents[1] / "src"


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


def test_the_first_steps_of_the_cluster_page_work_on_a_release(key, tmp_path):
    """Its signature is checked, and small.yaml comes out of the packed chart, by the page's own lines; the chart takes
    the values that come of it. helm/cluster runs the whole page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from pages import commands
    check, _, values, *_ = commands("install-cluster.md", "helm/cluster")
    helm, known = cli.tools()["helm"], images.tags(standins=True, registry="")
    bundle.chart(helm, "9.9.9-test.g0", tmp_path)
    (tmp_path / "images.yaml").write_text(cli.values(known, "9.9.9-test.g0", "", {}, standins=True))
    bundle.seal(tmp_path, "9.9.9-test.g0", key / "oal.key")
    (unpack,) = [line for line in values.splitlines() if line.startswith("tar ")]
    environment = os.environ | {"OAL_RELEASE": str(tmp_path), "OAL_PUBLIC_KEY": str(key / "oal.pub"),
                                "OAL_HOST": "node.example.net"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", check + unpack], check=True, env=environment)
    assert "oal.example.org" not in (tmp_path / "my.yaml").read_text()
    text = images.run(helm, "template", "oal", tmp_path / "oal-9.9.9-test.g0.tgz", "-n", "oal", "-f",
                      tmp_path / "my.yaml", "-f", tmp_path / "images.yaml", "--kube-version", "1.37.0")
    assert "oal-push:9.9.9-test.g0" in text and f"image: {known['KAFKA_IMAGE']}" in text
    assert "node.example.net" in text
