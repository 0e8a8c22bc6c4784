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
sys.path.insert(0, str(ROOT / "tests"))

from pages import commands  # noqa: E402

#: Blocks of the page about clusters: a release is made, checked, brought to a node, its values are written.
_, CHECK, BRING, VALUES, *_ = commands("install-cluster.md", "helm/cluster")
TAG = "9.9.9-test.g0"
ARCHIVES = [f"{whose}-images-{TAG}-{processor}.tar" for whose in ("oal", "third-party")
            for processor in ("amd64", "arm64")]


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
    assert (tmp_path / "images.tar").stat().st_mode & 0o777 == 0o644


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


@pytest.fixture(scope="module")
def packed(key, tmp_path_factory):
    """A release's folder without an image: packed chart, values, and what stands for archives of two processors."""
    folder, known = tmp_path_factory.mktemp("packed"), images.tags(standins=True, registry="")
    bundle.chart(cli.tools()["helm"], TAG, folder)
    (folder / "images.yaml").write_text(cli.values(known, TAG, "", {}, standins=True))
    for name in ARCHIVES:
        (folder / name).write_text("images")
    bundle.seal(folder, TAG, key / "oal.key")
    return folder


@pytest.fixture
def types(packed, key, tmp_path):
    """Run the page's commands; `ctr` writes down what it is asked."""
    (tmp_path / "ctr").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{tmp_path}/asked\n')
    (tmp_path / "ctr").chmod(0o755)
    environment = os.environ | {"OAL_RELEASE": str(packed), "OAL_PUBLIC_KEY": str(key / "oal.pub"),
                                "OAL_HOST": "node.example.net", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return lambda text: subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=environment).returncode


def test_the_first_steps_of_the_cluster_page_work_on_a_release(packed, types):
    """Its signature is checked, and small.yaml comes out of the packed chart, by the page's own lines; the chart takes
    the values that come of it. helm/cluster runs the whole page."""
    helm, known = cli.tools()["helm"], images.tags(standins=True, registry="")
    (unpack,) = [line for line in VALUES.splitlines() if line.startswith("tar ")]
    assert types(CHECK + unpack) == 0
    assert "oal.example.org" not in (packed / "my.yaml").read_text()
    text = images.run(helm, "template", "oal", packed / f"oal-{TAG}.tgz", "-n", "oal", "-f", packed / "my.yaml", "-f",
                      packed / "images.yaml", "--kube-version", "1.37.0")
    assert f"oal-push:{TAG}" in text and f"image: {known['KAFKA_IMAGE']}" in text
    assert "node.example.net" in text


def test_the_cluster_page_refuses_a_release_that_somebody_changed(packed, types):
    archive = packed / ARCHIVES[0]
    archive.write_text("others")
    assert types(CHECK) != 0
    archive.write_text("images")
    assert types(CHECK) == 0


def test_the_cluster_page_brings_a_node_the_archives_of_its_processor_only(packed, types, tmp_path):
    """Images of another have the same names, and would take their place."""
    (tmp_path / "dpkg").write_text('#!/bin/sh\n[ "$*" = --print-architecture ] && echo arm64\n')
    (tmp_path / "dpkg").chmod(0o755)
    assert types(CHECK + BRING) == 0
    assert [line.split()[-1] for line in (tmp_path / "asked").read_text().splitlines()] == [
        name for name in ARCHIVES if name.endswith("-arm64.tar")]
