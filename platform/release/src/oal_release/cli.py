"""Make a release, sign it, check it.

usage: platform/release/release make [options]     into build/release/oal-VERSION
       platform/release/release verify FOLDER --public-key FILE
       platform/release/release key FOLDER         a key to sign with: FOLDER/oal.key (keep it) and oal.pub (publish it)
       platform/release/release version [NEW]      say the version, or write NEW everywhere

  --key FILE          minisign's secret key                                          (default: $OAL_RELEASE_KEY)
  --registry PREFIX   push images and chart there; ends in a slash                    (default: $OAL_REGISTRY)
  --platforms LIST    linux/amd64,linux/arm64; default: as many of these as the engine or its builder can
  --snapshot          from a tree that is not tagged: VERSION-snapshot.gREVISION, notes from Unreleased
  --standins          for where no image registry is reached: bases and third-party images made here
  --plain-http        the registry has no TLS (loopback, tests)
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from oal_release import ReleaseError, bundle, images, version
from oal_release.images import ROOT, run

HELM = "helm.sh/helm/v3/cmd/helm"


def head(snapshot: bool) -> tuple[str, str]:
    """(version, heading of its notes) of the tree as it is committed. ReleaseError where it may not be released."""
    name = version.current(ROOT)
    if changed := run("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no").strip():
        raise ReleaseError(f"files differ from the commit, so nobody could say what was released:\n{changed}")
    if snapshot:
        return f"{name}-snapshot.g{run('git', '-C', ROOT, 'rev-parse', '--short=8', 'HEAD').strip()}", "Unreleased"
    tagged = run("git", "-C", ROOT, "tag", "--points-at", "HEAD").split()
    if f"v{name}" not in tagged:
        raise ReleaseError(f"this commit is not tagged v{name}: git tag -s v{name}, or --snapshot")
    return name, name


def values(known: dict, tag: str, registry: str, digests: dict[str, str], standins: bool) -> str:
    """images.yaml: a values file for the chart that names this release's images."""
    said = {"prefix": registry, "tag": tag, **images.third_party(known, standins)}
    if digests:
        said["digests"] = digests
    text = f"# For helm install -f: the images of OAL {tag}.\n" + yaml.safe_dump({"images": said}, sort_keys=False)
    return text + ("grafana: {enabled: false}   # nothing stands in for its image\n" if standins else "")


def replaying(text: str, tag: str, registry: str, digests: dict[str, str]) -> str:
    """access-point.yaml: helm/access-point.yaml with this release's image of the exporter."""
    digest = digests.get("oal-exporter")
    image = f"{registry}oal-exporter" + (f"@{digest}" if digest else f":{tag}")
    filled, count = re.subn(r"^( *image:) oal-exporter$", rf"\1 {image}", text, flags=re.M)
    if not count:
        raise ReleaseError("helm/access-point.yaml names no image `oal-exporter`")
    return filled


def pictures(options, tag: str, folder: Path, programs: dict[str, Path]) -> tuple[dict, dict[str, str]]:
    """Build, list, save and push; (tags, digests of what was pushed)."""
    known = images.tags(options.standins, options.registry)
    own = images.own(known)
    # Built under the tree's own version, whose layers are cached; this release's name is put on it.
    released = {name: image.rpartition(":")[0] + f":{tag}" for name, image in own.items()}
    architectures = []
    (folder / "sbom").mkdir()
    for platform in images.platforms(options.platforms):
        architecture = platform.split("/")[1]
        architectures.append(architecture)
        print(f"release: images for {platform}", file=sys.stderr)
        images.build(platform, options.standins, options.registry)
        for name, image in own.items():
            images.material(programs["syft"], image, folder / "sbom" / f"{name}-{architecture}.cdx.json")
            for other in (released[name], f"{released[name]}-{architecture}"):
                run("docker", "tag", image, other)
        images.package(own["oal-exporter"], folder / f"oal-host_{tag}_{architecture}.deb")
        images.save(list(released.values()), folder / f"oal-images-{tag}-{architecture}.tar", platform)
        images.save(list(images.third_party(known, options.standins).values()),
                    folder / f"third-party-images-{tag}-{architecture}.tar", platform)
    digests = {}
    if options.registry:
        for name, image in released.items():
            digests[name] = images.push(image, architectures, options.plain_http)
    return known, digests


def make(options) -> None:
    if not options.key:
        raise ReleaseError("no key to sign with: --key FILE or OAL_RELEASE_KEY; `release key FOLDER` makes one")
    if options.registry and not options.registry.endswith("/"):
        raise ReleaseError(f"--registry {options.registry} does not end in a slash")
    tag, heading = head(options.snapshot)
    notes = version.notes((ROOT / "CHANGELOG.md").read_text(), heading)
    programs = tools()
    folder = ROOT / "build" / "release" / f"oal-{tag}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    known, digests = pictures(options, tag, folder, programs)
    (folder / "images.yaml").write_text(values(known, tag, options.registry, digests, options.standins))
    (folder / "access-point.yaml").write_text(
        replaying((ROOT / "helm" / "access-point.yaml").read_text(), tag, options.registry, digests))
    run("make", "--no-print-directory", "-C", ROOT / "platform/security", "sbom")
    shutil.copytree(ROOT / "build" / "sbom", folder / "sbom" / "sources")
    package = bundle.chart(programs["helm"], tag, folder)
    bundle.sources(tag, folder)
    (folder / "NOTES.md").write_text(f"# OAL {tag}\n\n{notes}")
    bundle.seal(folder, tag, Path(options.key))
    if options.registry:
        plain = ["--plain-http"] if options.plain_http else []
        run(programs["helm"], "push", package, f"oci://{options.registry}charts", *plain)
    for file in bundle.files(folder):
        print(f"{file.stat().st_size / 1e6:9.1f} MB  {file.relative_to(folder)}")
    print(f"release: {folder}")


def tools() -> dict[str, Path]:
    """helm, built if the cache lacks it, and syft."""
    built = subprocess.run([ROOT / "platform/setup/gotool", ROOT / "helm/tools"], stdout=subprocess.PIPE, text=True,
                           env=os.environ | {"TOOLS": HELM})
    if built.returncode != 0:
        raise ReleaseError("helm could not be built; its output stands above")
    return {"helm": Path(built.stdout.strip()) / "helm", "syft": Path(sys.executable).parent / "syft"}


def key(options) -> None:
    """A key pair without a password: for a person's own, run minisign -G."""
    options.folder.mkdir(parents=True, exist_ok=True)
    secret, public = options.folder / "oal.key", options.folder / "oal.pub"
    if secret.exists():
        raise ReleaseError(f"{secret} is there already")
    run("minisign", "-G", "-W", "-s", secret, "-p", public)
    secret.chmod(0o600)
    print(f"release: sign with {secret}; publish {public}")


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="platform/release/release", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    one.add_argument("--key", default=os.environ.get("OAL_RELEASE_KEY", ""))
    one.add_argument("--registry", default=os.environ.get("OAL_REGISTRY", ""))
    one.add_argument("--platforms", default="")
    for switch in ("--snapshot", "--standins", "--plain-http"):
        one.add_argument(switch, action="store_true")
    one = commands.add_parser("verify")
    one.add_argument("folder", type=Path)
    one.add_argument("--public-key", type=Path, required=True)
    commands.add_parser("key").add_argument("folder", type=Path)
    commands.add_parser("version").add_argument("new", nargs="?")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    options = arguments(words)
    try:
        if options.command == "make":
            make(options)
        elif options.command == "verify":
            print(f"release: {bundle.verify(options.folder, options.public_key)} is whole")
        elif options.command == "key":
            key(options)
        elif options.new:
            version.write(ROOT, options.new)
        else:
            print(version.current(ROOT))
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0
