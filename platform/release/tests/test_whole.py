"""A release as `make release` makes it, of stand-ins: every image built and listed, pushed to a real registry, checked,
and brought to an engine that had none of them.
"""
import json
import subprocess
import tarfile

import pytest
import yaml
from docker_engine import OWN, run
from oal_release import bundle, cli
from oal_release.images import ROOT


@pytest.fixture(scope="module")
def made(engine, registry, key):
    """The release's folder."""
    done = subprocess.run(
        [ROOT / "platform/images/engine", "exec", ROOT / "platform/release/release", "make", "--snapshot", "--standins",
         "--registry", registry, "--plain-http", "--key", key / "oal.key"], capture_output=True, text=True,
        timeout=3000)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    print(f"\n{done.stdout}")
    return cli.ROOT / "build" / "release" / done.stdout.rpartition("release/")[2].strip()


def test_it_is_whole_and_signed(made, key):
    tag = made.name.removeprefix("oal-")
    assert bundle.verify(made, key / "oal.pub") == f"oal {tag}"
    there = {str(file.relative_to(made)) for file in bundle.files(made)}
    assert {f"oal-{tag}.tgz", f"oal-{tag}-source.tar.gz", "images.yaml", "NOTES.md", f"oal-images-{tag}-amd64.tar",
            f"third-party-images-{tag}-amd64.tar", f"oal-host_{tag}_amd64.deb"} <= there
    assert "Package: oal-host" in run("dpkg-deb", "-f", made / f"oal-host_{tag}_amd64.deb").stdout


@pytest.mark.parametrize(("name", "package"), [
    ("oal-push", "pkg:golang/google.golang.org/protobuf"), ("oal-learning", "pkg:pypi/mlflow"),
    ("oal-stream-jobs", "pkg:maven/org.jolokia"), ("oal-setup", "pkg:deb/debian/postgresql-client"),
    ("oal-telegraf", "pkg:golang/github.com/influxdata/telegraf"), ("oal-exporter", "pkg:deb/debian/librdkafka1")])
def test_every_image_has_a_list_of_what_is_in_it(made, name, package):
    listed = json.loads((made / "sbom" / f"{name}-amd64.cdx.json").read_text())
    assert listed["bomFormat"] == "CycloneDX"
    assert any(part.get("purl", "").startswith(package) for part in listed["components"]), name


def test_the_chart_takes_the_releases_images_by_digest(made, engine, registry):
    said = yaml.safe_load((made / "images.yaml").read_text())["images"]
    assert set(said["digests"]) == {f"oal-{name}" for name in OWN}
    for name, digest in said["digests"].items():
        listed = json.loads(engine.inside("curl", "-sSf", "-H", "Accept: application/vnd.docker.distribution.manifest."
                                          "list.v2+json", f"http://{registry.split('/')[0]}/v2/oal/{name}/manifests/"
                                          f"{digest}").stdout)
        assert [m["platform"]["architecture"] for m in listed["manifests"]] == ["amd64"]
    helm = cli.tools()["helm"]
    text = run(helm, "template", "oal", made / f"{made.name}.tgz", "-n", "oal", "-f", made / "images.yaml",
               "--kube-version", "1.37.0").stdout
    assert f"{registry}oal-push@{said['digests']['oal-push']}" in text


def test_a_registry_has_the_chart(made, engine, registry, tmp_path):
    helm = cli.tools()["helm"]
    engine.inside(helm, "pull", f"oci://{registry}charts/oal", "--version", made.name.removeprefix("oal-"),
                  "--plain-http", "-d", tmp_path)
    assert (tmp_path / f"{made.name}.tgz").read_bytes() == (made / f"{made.name}.tgz").read_bytes()


def test_the_archives_bring_every_image_that_images_yaml_names(made):
    tag = made.name.removeprefix("oal-")
    names = set()
    for archive in (f"oal-images-{tag}-amd64.tar", f"third-party-images-{tag}-amd64.tar"):
        with tarfile.open(made / archive) as tar:
            for image in json.load(tar.extractfile("manifest.json")):
                names |= set(image["RepoTags"])
    said = yaml.safe_load((made / "images.yaml").read_text())["images"]
    assert {f"{said['prefix']}oal-{name}:{said['tag']}" for name in OWN} <= names
    assert {said[part] for part in ("kafka", "clickhouse", "postgres")} <= names
