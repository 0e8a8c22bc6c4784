"""What a release promises: one version, notes, checksums and a signature that fail on any change."""
import json
import re
import shutil
import subprocess

import pytest
import yaml
from oal_release import ReleaseError, bundle, cli, images, version
from oal_release.images import ROOT


def test_one_version_everywhere():
    assert version.SEMANTIC.fullmatch(version.current(ROOT))


def test_the_agent_and_its_packages_say_the_version_of_the_tree():
    """Every place that writes the version out is one that `release version` knows."""
    known = set(version.PLACES)
    said = subprocess.run(
        ["git", "-C", ROOT, "grep", "-lE", rf"(PKG_VERSION:=|OAL_VERSION[ =\"]+|^appVersion.*){version.current(ROOT)}"],
        capture_output=True, text=True).stdout.split()
    assert set(said) == known


def test_a_new_version_is_written_everywhere_or_nowhere(tmp_path):
    for name in version.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version.write(tmp_path, "7.8.9-rc.1")
    assert set(version.found(tmp_path).values()) == {"7.8.9-rc.1"}
    with pytest.raises(ReleaseError, match="no version like"):
        version.write(tmp_path, "next")
    chart = tmp_path / "helm/oal/Chart.yaml"
    chart.write_text(chart.read_text().replace("appVersion: \"7.8.9-rc.1\"", "appVersion: \"7.8.8\""))
    with pytest.raises(ReleaseError, match="the version differs"):
        version.current(tmp_path)
    chart.write_text("name: oal\n")
    with pytest.raises(ReleaseError, match="Chart.yaml has no line"):
        version.write(tmp_path, "8.0.0")
    assert "8.0.0" not in (tmp_path / version.SOURCE).read_text()


def test_notes_are_the_versions_part_of_the_changelog():
    text = "# Changelog\n\n## Unreleased\n\n### Added\n- new\n\n## 1.2.0 (2026-01-02)\n\n- old\n\n## 1.1.0\n"
    assert version.notes(text, "Unreleased") == "### Added\n- new\n"
    assert version.notes(text, "1.2.0") == "- old\n"
    for none in ("1.1.0", "1.2", "9.9.9"):
        with pytest.raises(ReleaseError, match="CHANGELOG.md has nothing"):
            version.notes(text, none)
    assert version.notes((ROOT / "CHANGELOG.md").read_text(), "Unreleased")


@pytest.fixture
def sealed(tmp_path, key):
    folder = tmp_path / "oal-1.2.3"
    (folder / "sbom").mkdir(parents=True)
    (folder / "oal-1.2.3.tgz").write_bytes(b"a chart")
    (folder / "sbom" / "oal-push-amd64.cdx.json").write_text("{}")
    bundle.seal(folder, "1.2.3", key / "oal.key")
    return folder


def test_a_sealed_release_is_whole(sealed, key, capsys):
    assert cli.main(["verify", str(sealed), "--public-key", str(key / "oal.pub")]) == 0
    assert "oal 1.2.3 is whole" in capsys.readouterr().out
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=sealed).returncode == 0


@pytest.mark.parametrize(("change", "said"), [
    (lambda f: (f / "oal-1.2.3.tgz").write_bytes(b"another"), "oal-1.2.3.tgz is another"),
    (lambda f: (f / "oal-1.2.3.tgz").unlink(), "oal-1.2.3.tgz is missing"),
    (lambda f: (f / "more.tgz").write_bytes(b"x"), "more.tgz is not listed"),
    (lambda f: (f / "SHA256SUMS").write_text(""), "the signature is not of"),
    (lambda f: (f / "SHA256SUMS.minisig").unlink(), "not a whole release"),
], ids=["changed", "missing", "added", "unsigned list", "no signature"])
def test_a_changed_release_is_refused(sealed, key, capsys, change, said):
    change(sealed)
    assert cli.main(["verify", str(sealed), "--public-key", str(key / "oal.pub")]) == 1
    assert said in capsys.readouterr().err


def test_another_key_is_refused(sealed, tmp_path, capsys):
    assert cli.main(["key", str(tmp_path / "other")]) == 0
    assert cli.main(["verify", str(sealed), "--public-key", str(tmp_path / "other" / "oal.pub")]) == 1
    assert "the signature is not of" in capsys.readouterr().err


def test_nothing_is_made_without_a_key_a_tag_or_a_clean_tree(monkeypatch, capsys):
    monkeypatch.delenv("OAL_RELEASE_KEY", raising=False)
    assert cli.main(["make"]) == 1 and "no key to sign with" in capsys.readouterr().err
    assert cli.main(["make", "--key", "k", "--registry", "r.example/oal"]) == 1
    assert "does not end in a slash" in capsys.readouterr().err
    answers = {"status": "", "tag": "v0.0.1\n", "rev-parse": "0123456\n"}
    monkeypatch.setattr(cli, "run", lambda *words, **_: answers[words[3]])
    with pytest.raises(ReleaseError, match="is not tagged v"):
        cli.head(snapshot=False)
    assert cli.head(snapshot=True) == (f"{version.current(ROOT)}-snapshot.g0123456", "Unreleased")
    answers["tag"] = f"v{version.current(ROOT)}\n"
    assert cli.head(snapshot=False) == (version.current(ROOT),) * 2
    answers["status"] = " M README.md\n"
    with pytest.raises(ReleaseError, match="files differ from the commit"):
        cli.head(snapshot=True)


def test_platforms_are_what_the_engine_can_or_an_error(monkeypatch):
    def answers(builder: str):
        def run(*words, **_):
            if words[1] == "version":
                return "linux/amd64\n"
            if not builder:
                raise ReleaseError("docker: unknown command: docker buildx")
            return f"Name: default\nPlatforms: {builder}\n"
        return run

    monkeypatch.setattr(images, "run", answers(""))
    assert images.platforms("") == ["linux/amd64"]
    with pytest.raises(ReleaseError, match="not linux/arm64: set up a builder"):
        images.platforms("linux/amd64,linux/arm64")
    monkeypatch.setattr(images, "run", answers("linux/amd64*, linux/arm64, linux/riscv64"))
    assert images.platforms("") == ["linux/amd64", "linux/arm64"]


def test_the_registry_of_the_environment_names_the_images():
    """platform/images/tags.env took it back once."""
    known = images.tags(standins=False, registry="r.example/oal/")
    assert images.own(known)["oal-stream-jobs"] == f"r.example/oal/oal-stream-jobs:{version.current(ROOT)}"


def test_the_pod_that_replays_has_the_releases_image():
    text = (cli.ROOT / "helm" / "access-point.yaml").read_text()
    for digests, image in (({}, "r/oal-exporter:1.2.3"), ({"oal-exporter": "sha256:0"}, "r/oal-exporter@sha256:0")):
        _, pod = yaml.safe_load_all(cli.replaying(text, "1.2.3", "r/", digests))
        containers = pod["spec"]["initContainers"] + pod["spec"]["containers"]
        assert {container["image"] for container in containers} == {image}
    with pytest.raises(ReleaseError):
        cli.replaying("image: other", "1.2.3", "", {})


def test_images_yaml_names_images_that_the_chart_takes():
    """Keys of the chart's own values: others are refused by its schema."""
    known = images.tags(standins=True, registry="")
    said = yaml.safe_load(cli.values(known, "1.2.3", "", {}, standins=True))
    chart = yaml.safe_load((ROOT / "helm/oal/values.yaml").read_text())
    assert set(said["images"]) <= set(chart["images"]) and set(said) <= set(chart)
    assert said["images"]["tag"] == "1.2.3" and said["images"]["kafka"] == known["KAFKA_IMAGE"]
    digests = {name: f"sha256:{0:064x}" for name in images.own(known)}
    schema = json.loads((ROOT / "helm/oal/values.schema.json").read_text())
    taken = schema["properties"]["images"]["properties"]["digests"]["properties"]
    assert set(yaml.safe_load(cli.values(known, "1.2.3", "r/", digests, False))["images"]["digests"]) == set(taken)
    assert "enabled" not in str(cli.values(known, "1.2.3", "r/", {"oal-push": "sha256:0"}, standins=False))


def test_the_package_of_hosts_is_taken_out_of_the_image_and_nothing_is_left(monkeypatch, tmp_path):
    asked = []

    def run(*words, **_):
        asked.append(words[1])
        if words[1] == "cp":
            words[3].write_bytes(b"deb")
            if words[2].startswith("bad:"):
                raise ReleaseError("no such file")
        return "bad\n" if words[-1] == "without" else "good\n"
    monkeypatch.setattr(images, "run", run)
    images.package("with", tmp_path / "a.deb")
    assert asked == ["create", "cp", "rm"] and (tmp_path / "a.deb").stat().st_mode & 0o777 == 0o644
    with pytest.raises(ReleaseError):
        images.package("without", tmp_path / "b.deb")
    assert asked[3:] == ["create", "cp", "rm"]


WORKFLOWS = (".github/workflows/release.yml", ".gitlab-ci.yml")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_releases_what_is_tagged_to_a_registry_that_is_a_variable(name):
    text = (ROOT / name).read_text()
    yaml.safe_load(text)
    assert "make release" in text and "OAL_REGISTRY" in text and "OAL_RELEASE_KEY" in text
    assert re.search(r"tags: \[\"?v|CI_COMMIT_TAG =~ /\^v", text), "it runs on tags"
    assert not re.search(r"(ghcr|docker|quay)\.io/", text)
