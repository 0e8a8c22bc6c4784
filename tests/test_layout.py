"""The layout: which folders there are, what their READMEs begin with, and that links and calls of set-up lead
somewhere.

Starts nothing; reads what git tracks.
"""

from __future__ import annotations

import os
import re
import subprocess
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: The pipeline in the order in which data flows, then what surrounds it.
FOLDERS = {
    "schema", "ap-exporter", "stream-jobs", "clickhouse", "training", "model-registry", "deploy",
    "policies", "lab", "observe", "helm", "platform", "docs", "tests",
}
PLATFORM = {"kafka", "images", "compose", "local", "backup", "security", "setup", "release"}
#: The texts of licences: no room, and no README.
LEGAL = {"LICENSES"}
#: How a README begins, below its title.
LABELS = ("Lives here", "Takes", "Gives", "Not here")
#: Folders of data, whose README says the format; the chart's own is for `helm show readme`, generated from its values.
DATA = ("*/tests/data/*", "schema/golden", "helm/oal")
LINK = re.compile(r"\]\(([^)\s]+)\)")
#: A call of set-up in a Makefile or a script: by a path from where it is run, or from a variable with a folder.
CALL = re.compile(r'(?P<variable>\$\{?\w+\}?/)?(?P<path>(?:\.\./)+(?:platform/)?setup/[\w.-]+|platform/setup/[\w.-]+)')


@cache
def tracked(*patterns: str) -> list[Path]:
    """Files that git knows and that are there, by path from ROOT."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", *patterns], capture_output=True, text=True,
                            check=True)
    return [Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def readmes() -> list[str]:
    """Folders that must have a README, and those that have one; but the top, and what describes files of data alone."""
    there = {str(page.parent) for page in tracked("*/README.md")
             if not any(fnmatch(str(page.parent), data) for data in DATA)}
    return sorted({*FOLDERS, *(f"platform/{name}" for name in PLATFORM), *there})


def prose(page: Path) -> str:
    """A page's text without blocks of code."""
    return re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)


@cache
def anchors(page: Path) -> set[str]:
    """What a link into the page may name: its headings as GitHub spells them."""
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.+?)\s*$", prose(page), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        if seen[slug]:
            seen[f"{slug}-{seen[slug]}"] = 0
    return set(seen)


def callers() -> list[Path]:
    """Makefiles and scripts."""
    found = []
    for path in tracked():
        if (ROOT / path).is_symlink() or path.suffix in (".md", ".py", ".json", ".oalcap"):
            continue
        with open(ROOT / path, "rb") as file:
            begins = file.read(2)
        if path.name == "Makefile" or path.suffix in (".mk", ".sh") or begins == b"#!":
            found.append(path)
    return found


def test_the_top_level_has_these_folders_and_no_other():
    top = {path.parts[0] for path in tracked() if len(path.parts) > 1 and not path.parts[0].startswith(".")}
    assert top - LEGAL == FOLDERS


def test_platform_has_these_folders_and_no_other():
    assert {path.parts[1] for path in tracked("platform") if len(path.parts) > 2} == PLATFORM


@pytest.mark.parametrize("folder", readmes())
def test_a_folders_readme_begins_with_what_lives_there(folder):
    lines = (ROOT / folder / "README.md").read_text().splitlines()
    assert lines[0].startswith("# ") and not lines[1], f"{folder}/README.md: a title, then an empty line"
    begins = [re.match(r"- \*\*([\w ]+):\*\* \S", line) for line in lines[2:14] if not line.startswith("  ")]
    assert [found and found[1] for found in begins[:4]] == list(LABELS), f"{folder}/README.md: {' / '.join(LABELS)}"


@pytest.mark.parametrize("page", tracked("*.md"), ids=str)
def test_links_of_a_page_lead_somewhere(page):
    wrong = []
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        if not (ROOT / target).exists():
            wrong.append(link)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            wrong.append(link)
    assert not wrong, f"{page}: {wrong}"


def test_every_call_of_set_up_finds_its_program():
    programs = {path for path in tracked("platform/setup") if path.name != "README.md"}
    assert programs and all(os.access(ROOT / path, os.X_OK) for path in programs)
    called = set()
    for caller in callers():
        for line in (ROOT / caller).read_text().splitlines():
            if line.lstrip().startswith(("#", "//")):
                continue
            for call in CALL.finditer(line):
                base = ROOT
                if call["variable"]:
                    base = {"here": ROOT / caller.parent, "lab": ROOT / "lab"}[call["variable"].strip("${}/")]
                elif call["path"].startswith("../"):
                    base = ROOT / caller.parent
                program = Path(os.path.normpath(base / call["path"])).relative_to(ROOT)
                assert program in programs, f"{caller}: {call[0]}"
                called.add(program)
    assert called == programs


def test_every_make_of_another_folder_finds_its_makefile():
    """Of Makefiles from where they are, of pages from the top."""
    makefiles = [path for path in tracked() if path.name == "Makefile"]
    called = [(path, path.parent / where) for path in makefiles for where in folders_made(path)]
    called += [(page, Path(where)) for page in tracked("*.md") for where in folders_made(page)]
    assert len(called) > 20
    assert not [f"{caller}: {where}" for caller, where in called if not (ROOT / where / "Makefile").exists()]


def folders_made(path: Path) -> list[str]:
    """What stands behind `make -C` in the file, without those that a variable names."""
    return re.findall(r"(?:\bmake|\$\(MAKE\)(?: --no-print-directory)?) -C ([\w./-]+)", (ROOT / path).read_text())


def test_what_images_copy_is_let_into_their_builds():
    """A Dockerfile's COPY fails, minutes into a build, for a source that .dockerignore does not name."""
    named = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    sources = set()
    for file in (ROOT / "platform/images").glob("*/Dockerfile"):
        for line in file.read_text().replace("\\\n", " ").splitlines():
            words = line.split()
            if words[:1] == ["COPY"] and not any(w.startswith("--from") for w in words):
                sources |= {w for w in words[1:-1] if not w.startswith("--")}
    assert len(sources) > 10
    for source in sources:
        paths = [source.rstrip("/"), *(str(parent) for parent in Path(source).parents if parent.name)]
        assert any(fnmatch(path, name) or fnmatch(name, path) for path in paths for name in named), source


def test_maven_keeps_its_libraries_in_the_home_that_the_makefile_marks(tmp_path):
    """Maven looks in the home of /etc/passwd, the Makefile in HOME: an account whose HOME is elsewhere had no folder
    for the mark, and set-up failed."""
    would = subprocess.run(["make", "-n", "-C", str(ROOT / "stream-jobs"), "setup", "build", "test", "check",
                            f"HOME={tmp_path}"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"mvn -B.*", would)
    assert len(commands) >= 4
    assert all(f"-Dmaven.repo.local={tmp_path}/.m2/repository" in command for command in commands)
