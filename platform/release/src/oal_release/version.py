"""The version: it stands in platform/images/tags.env, and in each place whose format wants it written out."""

from __future__ import annotations

import re
from pathlib import Path

from oal_release import ReleaseError

#: What a person edits, through `release version NEW`.
SOURCE = "platform/images/tags.env"
#: File → the text around the version; what stands between is it. The first is SOURCE.
PLACES = {
    SOURCE: [r"^(OAL_VERSION=)(.+)()$"],
    "helm/oal/Chart.yaml": [r"^(version: )(.+)()$", r'^(appVersion: ")(.+)(")$'],
    "ap-exporter/src/base/version.h": [r'^(#define OAL_VERSION ")(.+)(")$'],
    "ap-exporter/openwrt/net/ap-exporter/Makefile": [r"^(PKG_VERSION:=)(.+)()$"],
    "ap-exporter/openwrt/kernel/oal-sampler/Makefile": [r"^(PKG_VERSION:=)(.+)()$"],
    "ap-exporter/openwrt/luci/luci-app-ap-exporter/Makefile": [r"^(PKG_VERSION:=)(.+)()$"],
}
SEMANTIC = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")


def found(root: Path) -> dict[str, str]:
    """Place → the version that stands there. ReleaseError names a file without one."""
    versions = {}
    for name, patterns in PLACES.items():
        text = (root / name).read_text()
        for pattern in patterns:
            match = re.search(pattern, text, re.M)
            if not match:
                raise ReleaseError(f"{name} has no line like {pattern}")
            versions[f"{name}: {match[1].strip()}"] = match[2]
    return versions


def current(root: Path) -> str:
    """The one version; ReleaseError where places differ."""
    versions = found(root)
    if len(set(versions.values())) > 1:
        raise ReleaseError("the version differs: " + "; ".join(f"{place}{value}" for place, value in versions.items()) +
                           "; `platform/release/release version NEW` writes it everywhere")
    return next(iter(versions.values()))


def write(root: Path, new: str) -> None:
    """`new` in every place."""
    if not SEMANTIC.fullmatch(new):
        raise ReleaseError(f"{new} is no version like 1.2.3 or 1.2.3-rc.1")
    found(root)  # all or none
    for name, patterns in PLACES.items():
        text = (root / name).read_text()
        for pattern in patterns:
            text = re.sub(pattern, lambda m: m[1] + new + m[3], text, count=1, flags=re.M)
        (root / name).write_text(text)


def notes(changelog: str, heading: str) -> str:
    """The part of the changelog below `## HEADING…`; ReleaseError where there is none, or it is empty."""
    match = re.search(rf"^## \[?{re.escape(heading)}\]?(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if not match or not match[1].strip():
        raise ReleaseError(f"CHANGELOG.md has nothing below `## {heading}`: name the section of Unreleased so")
    return match[1].strip() + "\n"
