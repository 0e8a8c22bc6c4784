"""OAL's images and the stand-ins of official ones, built by platform/images and brought into nodes.

A node keeps what it has from run to run; an image is brought again when its content changed.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

from node import PAUSE, Node

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "platform" / "images"
HERE = Path(__file__).resolve().parent
OWN = ("PUSH", "LEARNING", "STREAM_JOBS", "SETUP", "TELEGRAF", "EXPORTER")
NEXT_TAG = "next"  # a second name of OAL's own images, to upgrade to


def tags() -> dict[str, str]:
    """Names and values of tags.env and, over it, tags.standin.env, as a shell reads them."""
    files = (IMAGES / "tags.env", IMAGES / "tags.standin.env")
    names = {name for file in files for name in re.findall(r"^([A-Z_]+)=", file.read_text(), re.M)}
    script = "set -a; " + " ".join(f". {file};" for file in files) + " env -0"
    done = subprocess.run(["env", "-i", "bash", "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    found = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if "=" in entry)
    return {name: found[name] for name in names}


def wanted() -> list[str]:
    known = tags()
    return [*(known[f"OAL_{name}_IMAGE"] for name in OWN),
            *(known[f"{name}_IMAGE"] for name in ("KAFKA", "CLICKHOUSE", "POSTGRES")), PAUSE]


def build() -> None:
    """Whatever is not built yet, on an engine of its own that runs as long as this needs it."""
    ours = subprocess.run([IMAGES / "engine", "env"], capture_output=True).returncode != 0
    started = subprocess.run([IMAGES / "engine", "start"], check=True, stdout=subprocess.PIPE, text=True)
    os.environ.update(re.findall(r"(DOCKER_HOST|OAL_ENGINE)=(\S+)", started.stdout))
    build.stops_engine = ours
    subprocess.run([IMAGES / "build", "--standins"], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    subprocess.run(["docker", "build", "-q", "-t", PAUSE, "-f", HERE / "pause.Dockerfile", HERE], check=True,
                   stdout=subprocess.DEVNULL, env=os.environ | {"DOCKER_BUILDKIT": "0"})


build.stops_engine = False


def ids() -> dict[str, str]:
    """Name → what says that an image is another one."""
    done = subprocess.run(["docker", "image", "inspect", "-f", "{{.Id}}", *wanted()], check=True,
                          stdout=subprocess.PIPE, text=True)
    return dict(zip(wanted(), done.stdout.split(), strict=True))


def bring(node: Node) -> None:
    mark = node.images / "brought"
    has = dict(line.split() for line in mark.read_text().splitlines()) if mark.exists() else {}
    now = ids()
    new = [name for name in now if has.get(name) != now[name]]
    if new:
        mark.unlink(missing_ok=True)
        save = subprocess.Popen(["docker", "save", *new], stdout=subprocess.PIPE)
        node.ctr("images", "import", "-", stdin=save.stdout, timeout=1800)
        save.stdout.close()
        if save.wait() != 0:
            raise RuntimeError(f"docker save ended with {save.returncode}")
    version = tags()["OAL_VERSION"]
    for name in now:
        if name.endswith(f":{version}"):
            full = f"docker.io/library/{name}"
            node.ctr("images", "tag", "--force", full, full.removesuffix(version) + NEXT_TAG)
    mark.write_text("".join(f"{name} {now[name]}\n" for name in now))


def release_engine() -> None:
    if build.stops_engine:
        subprocess.run([IMAGES / "engine", "stop"], check=False)
