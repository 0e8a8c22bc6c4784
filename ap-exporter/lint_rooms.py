#!/usr/bin/env python3
"""Is the source in order? No circle between files, no include that points up, no room or file that outgrew its noun.
usage: lint_rooms.py [ROOT]    (from ap-exporter/; prints what is wrong and where, exit status 1)"""
import re
import sys
from pathlib import Path

#: Low to high: a room may include what stands left of it, and itself. Last src/ itself: the process.
ROOMS = (
    "base", "wire", "netlink", "packet", "sender", "tc", "helper", "tap", "enrol", "feature", "model", "openflow",
    "rewrite", "mark", "effect", "congestion", "pipeline",
    "sample", "kmod", "replay", "ship", "control", "destination", "agent", "collect", ".",
)
MOST_FILES = 25  # in a room
MOST_LINES = 400  # in a file that is part of the product
MOST_COLUMNS = 120  # in any C file; a tab takes eight
#: Waits until a time of the realtime clock, which may be set back: a tick thread would stand for as long.
REALTIME_WAITS = re.compile(r"\b(sem_timedwait|pthread_mutex_timedlock|mq_timedreceive|mq_timedsend)\b")
FROM_POLICIES = ("loss-cause/ca.h",)  # below policies/: a law that is the policy's own, in a kernel and here
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

#: What runs with privileges once the exporter has started: the helper's loop and all that it calls of ours.
TRUSTED = (
    "helper/serve.c", "helper/tc_maps.c", "tc/tc_place.c", "tap/tap_programs.c", "rewrite/rwnd_programs.c",
    "mark/mark_programs.c"
)
TRUSTED_MAY_CALL = ("base/clock.c", "base/log.c")
MOST_TRUSTED_LINES = 380  # of code, in all of them

COMMENT = re.compile(r"/\*.*?\*/", re.S)
TEXT = re.compile(r'"(\\.|[^"\n])*"')
NAME = re.compile(r"(?<![.>\w])(?<!struct )[a-z_][a-z_0-9]*\b")
#: the head of a function that other files may call, up to its brace
FUNCTION = re.compile(
    r"^(?!static|typedef|#|\s|/|\}|struct [a-z_0-9]+ \{|enum)[A-Za-z_][^;={}]*?\b([a-z_][a-z_0-9]*)\([^;{}]*?\)\s*\n\{",
    re.M | re.S,
)
STATIC = re.compile(r"^static [^;={}]*?\b([a-z_0-9]+)\(", re.M)

Graph = dict[str, set[str]]  # file, relative to src/: what it needs


def source_files(root: Path, *folders: str) -> list[Path]:
    """Every C file below these folders."""
    return sorted(p for folder in folders for p in (root / folder).rglob("*.[ch]"))


def room_of(path: Path, src: Path) -> str:
    """A file's room: the first folder below src; what lies deeper is part of that room."""
    parts = path.relative_to(src).parts
    return parts[0] if len(parts) > 1 else "."


def shape(root: Path) -> list[str]:
    """Rooms with too many files, files with too many lines, lines with too many columns."""
    found = []
    src = root / "src"
    files = source_files(root, "src", "fleet")
    for room in sorted({room_of(p, src) for p in source_files(root, "src")}):
        if room not in ROOMS:
            found.append(f"src/{room}: a room that {Path(__file__).name} does not know: give it its place in the order")
        folder = src / room
        count = sum(1 for p in folder.glob("*.[ch]"))
        if count > MOST_FILES:
            found.append(f"src/{room}: {count} files, more than {MOST_FILES}: find the second noun in it")
    for path in files:
        lines = path.read_text().count("\n")
        if lines > MOST_LINES:
            found.append(f"{path.relative_to(root)}: {lines} lines, more than {MOST_LINES}: one noun a file")
    for path in files:
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line.expandtabs(8)) > MOST_COLUMNS:
                found.append(f"{path.relative_to(root)}:{number}: more than {MOST_COLUMNS} columns")
    return found


def waits(root: Path) -> list[str]:
    """Calls that wait by a clock that can be set. Conditions wait by the monotonic one (pthread_condattr_setclock)."""
    found = []
    for path in source_files(root, "src", "fleet"):
        text = COMMENT.sub("", path.read_text())
        for name in REALTIME_WAITS.findall(text):
            found.append(f"{path.relative_to(root)}: {name} waits by the realtime clock")
        if "pthread_cond_timedwait(" in text and "pthread_condattr_setclock(" not in text:
            found.append(f"{path.relative_to(root)}: a condition waits by the realtime clock")
    return found


def includes(root: Path) -> tuple[Graph, list[str]]:
    """Which header includes which, and includes that point up or nowhere."""
    src = root / "src"
    uses: Graph = {}
    found = []
    for path in source_files(root, "src"):
        room = room_of(path, src)
        for name in INCLUDE.findall(path.read_text()):
            target = src / name
            if not target.exists():
                if not name.startswith("oal_") and not (path.parent / name).exists() and name not in FROM_POLICIES:
                    found.append(f"{path.relative_to(root)}: includes {name}, which is nowhere")
                continue
            other = room_of(target, src)
            if ROOMS.index(other) > ROOMS.index(room):
                found.append(f"{path.relative_to(root)}: includes {name}, but {other}/ stands above {room}/")
            if path.suffix == ".h":
                uses.setdefault(str(path.relative_to(src)), set()).add(name)
    return uses, found


def calls(root: Path) -> Graph:
    """Which file calls, or names, a function of which. Two headers may describe one thing; two files may not need each
    other's functions."""
    src = root / "src"
    text = {str(p.relative_to(src)): TEXT.sub('""', COMMENT.sub("", p.read_text())) for p in src.rglob("*.c")}
    where = {name: path for path in sorted(text) for name in FUNCTION.findall(text[path])}
    return {
        path: {where[n] for n in set(NAME.findall(t)) - set(STATIC.findall(t)) if n in where} - {path}
        for path, t in text.items()
    }


def trusted(root: Path, uses: Graph) -> list[str]:
    """Is the trusted part small, and is it all? `uses`: which file calls which."""
    found = []
    lines = 0
    for name in TRUSTED:
        path = root / "src" / name
        if not path.exists():
            found.append(f"src/{name}: a part of what keeps privileges that is nowhere: say what it is now")
            continue
        lines += sum(1 for line in COMMENT.sub("", path.read_text()).split("\n") if line.strip())
        for other in sorted(uses[name] - {*TRUSTED, *TRUSTED_MAY_CALL}):
            found.append(f"src/{name}: keeps privileges and calls {other}, which is not counted")
    if lines > MOST_TRUSTED_LINES:
        found.append(f"what keeps privileges has {lines} lines of code, more than {MOST_TRUSTED_LINES}")
    return found


def circles(uses: Graph) -> list[str]:
    """Ways that lead back to where they began."""
    found, done, way = [], set(), []

    def follow(name: str) -> None:
        if name in way:
            found.append(f"circle: {' -> '.join([*way[way.index(name):], name])}")
            return
        if name in done:
            return
        way.append(name)
        for other in sorted(uses.get(name, ())):
            follow(other)
        done.add(way.pop())

    for name in sorted(uses):
        follow(name)
    return found


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    uses, found = includes(root)
    called = calls(root)
    found += circles(uses) + circles(called) + shape(root) + waits(root) + trusted(root, called)
    for line in found:
        print(f"lint: {line}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
