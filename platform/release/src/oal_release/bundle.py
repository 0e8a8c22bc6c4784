"""The folder of a release: what is in it, its checksums, its signature."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from oal_release import ReleaseError
from oal_release.images import ROOT, run

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.minisig"


def digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files(folder: Path) -> list[Path]:
    """What checksums are of: everything but themselves."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name not in (SUMS, SIGNATURE))


def chart(helm: Path, version: str, folder: Path) -> Path:
    run(helm, "package", ROOT / "helm" / "oal", "--version", version, "--app-version", version, "-d", folder)
    return folder / f"oal-{version}.tgz"


def sources(version: str, folder: Path) -> Path:
    """What Compose and the OpenWrt feed are taken from: the tree of the commit."""
    file = folder / f"oal-{version}-source.tar.gz"
    run("git", "-C", ROOT, "archive", "--format=tar.gz", f"--prefix=oal-{version}/", "-o", file, "HEAD")
    return file


def seal(folder: Path, version: str, key: Path) -> None:
    """Write the checksums and their signature. `key`: minisign's secret key."""
    lines = [f"{digest(file)}  {file.relative_to(folder)}\n" for file in files(folder)]
    (folder / SUMS).write_text("".join(lines))
    run("minisign", "-S", "-s", key, "-m", folder / SUMS, "-t", f"oal {version}", "-x", folder / SIGNATURE)


def verify(folder: Path, key: Path) -> str:
    """Who the signature says it is ("oal VERSION"), when it is of `key` and every file is the listed one."""
    for name in (SUMS, SIGNATURE):
        if not (folder / name).exists():
            raise ReleaseError(f"{folder} has no {name}: it is not a whole release")
    try:
        said = run("minisign", "-V", "-p", key, "-m", folder / SUMS, "-x", folder / SIGNATURE)
    except ReleaseError as error:
        raise ReleaseError(f"the signature is not of {key}: {error}") from error
    listed = dict(reversed(line.split("  ", 1)) for line in (folder / SUMS).read_text().splitlines())
    there = {str(file.relative_to(folder)): file for file in files(folder)}
    wrong = [f"{name} is missing" for name in listed.keys() - there.keys()]
    wrong += [f"{name} is not listed" for name in there.keys() - listed.keys()]
    wrong += [f"{name} is another" for name in sorted(listed.keys() & there.keys())
              if digest(there[name]) != listed[name]]
    if wrong:
        raise ReleaseError("; ".join(sorted(wrong)))
    return re.search(r"Trusted comment: (.*)", said)[1]
