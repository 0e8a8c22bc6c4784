"""Images of a release: built for each platform, listed, saved to archives, pushed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from oal_release import ReleaseError

ROOT = Path(__file__).resolve().parents[4]
IMAGES = ROOT / "platform" / "images"
OWN = ("push", "learning", "stream-jobs", "setup", "telegraf", "exporter")
PARTS = ("kafka", "clickhouse", "postgres", "grafana")
PLATFORMS = ("linux/amd64", "linux/arm64")


def run(*command, **more) -> str:
    """Standard output of a command; ReleaseError with the end of what it said if it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, **more)
    except FileNotFoundError as missing:
        raise ReleaseError(f"{missing.filename} is missing; make -C platform/release setup") from missing
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr)[-2000:].strip()}")
    return done.stdout


def tags(standins: bool, registry: str) -> dict[str, str]:
    """Names and values of tags.env (over it tags.standin.env), as a shell reads them, with this registry."""
    files = ["tags.env", *(["tags.standin.env"] if standins else [])]
    script = "set -a; " + "".join(f". {IMAGES / file}; " for file in files) + "env"
    said = run("env", "-i", f"OAL_REGISTRY={registry}", "bash", "-c", script)
    return dict(line.split("=", 1) for line in said.splitlines() if "=" in line)


def platforms(asked: str) -> list[str]:
    """Those to build for: the asked ones (a list with commas), or as many of PLATFORMS as this engine can. Others than
    the engine's own take a builder: `docker buildx`, with QEMU.
    """
    own = run("docker", "version", "-f", "{{.Server.Os}}/{{.Server.Arch}}").strip()
    can = {own}
    try:
        for line in run("docker", "buildx", "inspect", "--bootstrap").splitlines():
            if line.startswith("Platforms:"):
                can |= {word.strip(" *") for word in line.removeprefix("Platforms:").split(",")}
    except ReleaseError:
        pass  # no builder: the engine's own platform
    wanted = asked.split(",") if asked else [platform for platform in PLATFORMS if platform in can]
    if missing := [platform for platform in wanted if platform not in can]:
        raise ReleaseError(f"this engine builds {', '.join(sorted(can))} and not {', '.join(missing)}: set up a builder"
                           " (docker buildx create --use) and QEMU (docker run --privileged tonistiigi/binfmt --install"
                           " all), or name fewer with --platforms")
    return wanted


def build(platform: str, standins: bool, registry: str) -> None:
    own = run("docker", "version", "-f", "{{.Server.Os}}/{{.Server.Arch}}").strip()
    environment = os.environ | {"OAL_REGISTRY": registry} | ({} if platform == own else {"OAL_PLATFORM": platform})
    done = subprocess.run([IMAGES / "build", *(["--standins"] if standins else [])], stdin=subprocess.DEVNULL,
                          stdout=sys.stderr, env=environment)
    if done.returncode != 0:
        raise ReleaseError(f"platform/images/build failed for {platform}")


def own(known: dict[str, str]) -> dict[str, str]:
    """Name → image of OAL's own."""
    return {f"oal-{name}": known[f"OAL_{name.replace('-', '_').upper()}_IMAGE"] for name in OWN}


def third_party(known: dict[str, str], standins: bool) -> dict[str, str]:
    """Name → image of the others; nothing stands in for Grafana."""
    return {part: known[f"{part.upper()}_IMAGE"] for part in PARTS if not (standins and part == "grafana")}


def material(syft: Path, image: str, file: Path) -> None:
    """The bill of materials of an image that the engine has: CycloneDX, with packages of Debian, Python, Go, Java."""
    environment = os.environ | {"SYFT_CHECK_FOR_APP_UPDATE": "false"}
    run(syft, "scan", "-q", f"docker:{image}", "-o", f"cyclonedx-json={file}", env=environment)


def package(image: str, file: Path) -> None:
    """The Debian package of the agent of hosts, out of the image of the exporter, with which it was built."""
    container = run("docker", "create", image).strip()
    try:
        run("docker", "cp", f"{container}:/usr/share/oal/oal-host.deb", file)
    finally:
        run("docker", "rm", "-v", container)
    file.chmod(0o644)


def save(images: list[str], file: Path, platform: str) -> None:
    """One archive, which `docker load` and `ctr images import` read; what the engine lacks is pulled."""
    for image in images:
        if subprocess.run(["docker", "image", "inspect", image], capture_output=True).returncode != 0:
            run("docker", "pull", "-q", "--platform", platform, image)
    run("docker", "save", "-o", file, *images)
    file.chmod(0o644)  # docker writes it for its owner alone; it is to be read by whoever installs


def push(image: str, architectures: list[str], plain: bool) -> str:
    """Push IMAGE-ARCHITECTURE for each, and IMAGE as the list of them; the list's digest."""
    parts = [f"{image}-{architecture}" for architecture in architectures]
    for part in parts:
        run("docker", "push", "-q", part)
    insecure = ["--insecure"] if plain else []
    run("docker", "manifest", "create", *insecure, "--amend", image, *parts)
    said = run("docker", "manifest", "push", *insecure, "--purge", image)
    digest = re.search(r"sha256:[0-9a-f]{64}", said)
    if not digest:
        raise ReleaseError(f"the registry named no digest of {image}: {said[-300:]}")
    return digest[0]
