#!/usr/bin/env python3
"""Check the shape of stream-jobs' Java code: `make lint` runs this; it needs nothing but Python and takes a second.

    python3 lint_packages.py [FOLDER]     exit status 1 when something is wrong; FOLDER: this one

The order of packages is the order of the rows in README.md's table "Packages": a package uses those above it.

    no package uses one below it, or one that the table does not name
    no circle between packages, none between files
    no production file above 400 lines; no line above 120 columns
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

BASE = "oal.stream"
MAX_LINES = 400
MAX_COLUMNS = 120
# Comments and texts use nothing of what they mention. Texts come first, so that "//" in a text begins no comment.
NO_CODE = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
ROW = re.compile(r"^\| `([a-z]+|\(root\))` \|", re.MULTILINE)
ROOT = "(root)"


def package_order(readme: str) -> list[str]:
    """Packages as the README's table has them, lowest first; the root package, `(root)`, is among them."""
    table = readme.split("## Packages", 1)[-1].split("\n## ", 1)[0]
    return ROW.findall(table)


def circle(uses: dict[str, set[str]]) -> list[str]:
    """A circle in the graph, first node again at the end; empty when there is none."""
    done: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node):], node]
        if node in done:
            return []
        for other in sorted(uses.get(node, ())):
            if found := walk(other, [*path, node]):
                return found
        done.add(node)
        return []

    for start in sorted(uses):
        if found := walk(start, []):
            return found
    return []


class Code:
    """Java sources below a folder: per file its package, its classes' own name and which other files it uses."""

    def __init__(self, root: Path):
        files = sorted(root.rglob("*.java"))
        self.text = {path: NO_CODE.sub(" ", path.read_text(encoding="utf-8")) for path in files}
        self.package = {path: self._package(path.relative_to(root).parent.as_posix()) for path in self.text}
        self.file_of = {(self.package[path], path.stem): path for path in self.text}
        self.uses = {path: self._uses(path) for path in self.text}

    @staticmethod
    def _package(folder: str) -> str:
        inner = folder.removeprefix(BASE.replace(".", "/")).strip("/").replace("/", ".")
        return inner or ROOT

    def _uses(self, path: Path) -> set[Path]:
        text, own = self.text[path], self.package[path]
        named = re.findall(rf"\b{re.escape(BASE)}\.(?:([a-z]+)\.)?([A-Z]\w*)", text)
        used = {(inner or ROOT, name) for inner, name in named}
        used |= {(own, name) for name in set(re.findall(r"\b[A-Z]\w*", text))}
        return {self.file_of[key] for key in used if key in self.file_of and self.file_of[key] != path}

    def packages(self) -> dict[str, set[str]]:
        """Package → packages that it uses."""
        found: dict[str, set[str]] = {package: set() for package in self.package.values()}
        for path, others in self.uses.items():
            found[self.package[path]] |= {self.package[other] for other in others} - {self.package[path]}
        return found


def order_faults(code: Code, order: list[str], root: Path) -> list[str]:
    """Uses that point down the table, and packages that differ from it."""
    rank = {name: i for i, name in enumerate(order)}
    have = set(code.package.values())
    faults = [f"README.md, Packages: `{name}` is not in the table" for name in sorted(have - set(order))]
    faults += [f"README.md, Packages: there is no package `{name}`" for name in sorted(set(order) - have)]
    for path, others in code.uses.items():
        for other in sorted(others):
            low, high = code.package[path], code.package[other]
            if rank.get(high, -1) > rank.get(low, len(order)):
                faults.append(f"{path.relative_to(root)}: {low} uses {high}.{other.stem}, which is higher")
    return faults


def circle_faults(code: Code) -> list[str]:
    """A circle between packages, and one between files."""
    faults = []
    if found := circle(code.packages()):
        faults.append("circle between packages: " + " → ".join(found))
    name_of = {path: f"{package}.{path.stem}" for path, package in code.package.items()}
    if found := circle({name: {name_of[other] for other in code.uses[path]} for path, name in name_of.items()}):
        faults.append("circle between files: " + " → ".join(found))
    return faults


def size_faults(root: Path) -> list[str]:
    """Files and lines that are too long."""
    faults = []
    for path in sorted([*root.glob("src/**/*.java"), *root.glob("*.py"), *root.glob("Makefile")]):
        lines = path.read_text(encoding="utf-8").splitlines()
        name = path.relative_to(root)
        if len(lines) > MAX_LINES and "test" not in name.parts:
            faults.append(f"{name}: {len(lines)} lines; at most {MAX_LINES}")
        faults += [f"{name}:{i}: {len(line)} columns; at most {MAX_COLUMNS}" for i, line in enumerate(lines, 1)
                   if len(line) > MAX_COLUMNS]
    return faults


def findings(root: Path) -> list[str]:
    """What is wrong in a folder with README.md and src/, one line a fault."""
    order = package_order((root / "README.md").read_text(encoding="utf-8"))
    code = Code(root / "src/main/java")
    return order_faults(code, order, root) + circle_faults(code) + size_faults(root)


def main(arguments: list[str]) -> int:
    """Print what is wrong; exit status 1 if anything is."""
    faults = findings(Path(arguments[0]) if arguments else Path(__file__).resolve().parent)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"stream-jobs: {len(faults)} faults in packages, files and lines")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
