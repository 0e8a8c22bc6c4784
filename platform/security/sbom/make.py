"""The bill of materials: a CycloneDX document of each folder, from its lock files alone, so it needs no network.

usage: make.py OUT_FOLDER        writes OUT_FOLDER/<folder>.json

Python's and Go's lock files name everything that is installed; a pom names what it asks for, and what that brings along
is Maven's to say (`mvn dependency:list`).
"""
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

REPO = Path(__file__).resolve().parents[3]
POM = "{http://maven.apache.org/POM/4.0.0}"


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "-C", str(REPO), "ls-files", *patterns], capture_output=True, text=True,
                            check=True).stdout.split()
    return [REPO / name for name in listed if (REPO / name).exists()]


def python(lock: Path) -> set[PackageURL]:
    pinned = re.findall(r"^(?:--no-deps )?([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", lock.read_text(), re.M)
    return {PackageURL("pypi", None, name.lower().replace("_", "-"), version) for name, version in pinned}


def go(module: Path) -> set[PackageURL]:
    required = re.findall(r"^(?:require )?\s*([\w.-]+\.\S+) (v\S+)", module.read_text(), re.M)
    return {
        PackageURL("golang",
                   path.rpartition("/")[0] or None,
                   path.rpartition("/")[2], version) for path, version in required
    }


def maven(pom: Path) -> set[PackageURL]:
    root = ElementTree.parse(pom).getroot()
    properties = {p.tag.removeprefix(POM): p.text for p in root.findall(f"{POM}properties/*")}

    def text(of, name: str) -> str:
        return re.sub(r"\$\{([^}]+)\}", lambda m: properties[m[1]], of.findtext(POM + name, ""))

    return {
        PackageURL("maven", text(d, "groupId"), text(d, "artifactId"), text(d, "version"))
        for d in root.iter(f"{POM}dependency")
    }


def npm(package: Path) -> set[PackageURL]:
    data = json.loads(package.read_text())
    return {PackageURL("npm", *(name.split("/") if "/" in name else (None, name)), version)
            for part in ("dependencies", "devDependencies") for name, version in data.get(part, {}).items()}


SOURCES = {
    "*requirements*.txt": python, "tests/lint.txt": python, "*go.mod": go, "*pom.xml": maven, "*package.json": npm
}


def found() -> dict[str, set[PackageURL]]:
    """By folder of the repository."""
    packages: dict[str, set[PackageURL]] = {}
    for pattern, read in SOURCES.items():
        for lock in tracked(pattern):
            packages.setdefault(str(lock.parent.relative_to(REPO)).replace("/", "-"), set()).update(read(lock))
    return {folder: urls for folder, urls in packages.items() if urls}


def main(out: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    packages = found()
    for name, urls in sorted(packages.items()):
        components = [
            Component(name=url.name, group=url.namespace, version=url.version, purl=url, bom_ref=str(url),
                      type=ComponentType.LIBRARY) for url in urls
        ]
        bom = Bom(components=components)
        bom.metadata.component = Component(name=f"oal-{name}", type=ComponentType.APPLICATION)
        (folder / f"{name}.json").write_text(JsonV1Dot6(bom).output_as_string(indent=1) + "\n")
    print(f"sbom: {len(packages)} documents, {len(set().union(*packages.values()))} packages in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
