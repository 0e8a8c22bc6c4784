"""Every dependency has one exact version in the repository."""
import json
import re
import subprocess
from xml.etree import ElementTree

import pytest
from conftest import REPO

POM = "{http://maven.apache.org/POM/4.0.0}"


def tracked(*patterns: str) -> list:
    listed = subprocess.run(["git", "-C", REPO, "ls-files", *patterns], capture_output=True, text=True,
                            check=True).stdout.split()
    found = [REPO / name for name in listed if (REPO / name).exists()]
    assert found, patterns
    return found


@pytest.mark.parametrize("lock", tracked("*requirements*.txt", "tests/lint.txt", "*/later-postgres.txt"),
                         ids=lambda path: str(path.relative_to(REPO)))
def test_every_python_dependency_is_pinned_exactly(lock):
    for line in lock.read_text().splitlines():
        line = line.partition("#")[0].strip()
        assert not line or re.fullmatch(r"(--no-deps )?[A-Za-z0-9._\[\],-]+==[0-9][0-9A-Za-z.!+]*",
                                        line), f"{lock}: {line}"


@pytest.mark.parametrize("pom", tracked("*pom.xml"), ids=lambda path: str(path.relative_to(REPO)))
def test_every_maven_dependency_is_pinned_exactly(pom):
    root = ElementTree.parse(pom).getroot()
    properties = {p.tag.removeprefix(POM): p.text for p in root.findall(f"{POM}properties/*")}
    for each in [*root.iter(f"{POM}dependency"), *root.iter(f"{POM}plugin")]:
        version = each.findtext(f"{POM}version", "")
        version = re.sub(r"\$\{([^}]+)\}", lambda m: properties.get(m[1], m[0]), version)
        assert re.fullmatch(
            r"[0-9][0-9A-Za-z.-]*",
            version) and "SNAPSHOT" not in version, f"{pom}: {each.findtext(f'{POM}artifactId')} {version}"


def test_every_go_module_is_pinned_exactly_and_has_its_sum():
    for module in tracked("*go.mod"):
        assert module.with_name("go.sum").exists(), module
        for line in module.read_text().splitlines():
            if found := re.match(r"(?:require )?\s*([\w.-]+\.[\w.-]+/\S+) (v\S+)", line):
                assert re.fullmatch(r"v\d+\.\d+\.\d+[\w.+-]*", found[2]), f"{module}: {line}"


def test_every_npm_dependency_is_pinned_exactly():
    for package in (REPO / name for name in subprocess.run(["git", "-C", REPO, "ls-files", "*package.json"],
                                                           capture_output=True, text=True, check=True).stdout.split()):
        for name, version in {
                k: v for part in ("dependencies", "devDependencies")
                for k, v in json.loads(package.read_text()).get(part, {}).items()
        }.items():
            # under a name of its own: npm:PACKAGE@VERSION
            assert re.fullmatch(r"(npm:@?[\w./-]+@)?\d+\.\d+\.\d+[\w.-]*", version), f"{package}: {name} {version}"
