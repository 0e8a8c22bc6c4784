"""Plays the grid: guests of some paths each, side by side; what is there already is not played again."""
from __future__ import annotations

import hashlib
import json
import pathlib
import tempfile

from evaluate import pool
from host import guest, scenario

from . import paths

BUILD = guest.LAB.parent / "build/grid"
PATHS_A_GUEST = 24  # what an interrupted run loses, some 150 sessions
TIMEOUT_S = 1800
CODE = ("inside.py", "paths.py", "../guest/session.py")


def depends_on(grid: dict) -> str:
    """Hash of what a session's result depends on."""
    here = pathlib.Path(__file__).parent
    parts = [guest.kernel(), json.dumps({k: grid[k] for k in ("congestion_controls", "session_s")})]
    return hashlib.sha256("\n".join([*parts, *((here / name).read_text() for name in CODE)]).encode()).hexdigest()[:12]


def work(grid: dict, folder: pathlib.Path) -> list[tuple[pathlib.Path, list[dict], dict, int]]:
    """(file of its results, paths, grid, repetition), repetitions outermost."""
    order = paths.in_order(paths.paths(grid))
    out = []
    for repetition in range(grid["repetitions"]):
        for at in range(0, len(order), PATHS_A_GUEST):
            some = order[at:at + PATHS_A_GUEST]
            out.append((folder / file_name(repetition, some), some, grid, repetition))
    return out


def file_name(repetition: int, some: list[dict], grid: dict | None = None) -> str:
    """Of a guest's sessions. `grid`: where its algorithms are not those of the folder."""
    what = json.dumps(some) + (json.dumps(grid["congestion_controls"]) if grid else "")
    return f"{repetition}-{hashlib.sha256(what.encode()).hexdigest()[:12]}.jsonl"


def one(item: tuple[pathlib.Path, list[dict], dict, int]) -> int:
    """Play a guest's paths; how many sessions there were. Its file appears when it is whole."""
    file, some, grid, repetition = item
    plan = {**scenario.plan("grid", {"stations": [{"name": "nobody"}], "seed": 1 + repetition}), "paths": some,
            "congestion_controls": grid["congestion_controls"], "session_s": grid["session_s"]}
    with tempfile.TemporaryDirectory(dir=file.parent) as run:
        guest.play(plan, pathlib.Path(run), extra=["MAIN=grid.inside"], timeout_s=TIMEOUT_S)
        lines = (pathlib.Path(run) / "grid.sessions.jsonl").read_text().splitlines()
        rows = [{"repetition": repetition, **json.loads(line)} for line in lines]
    if len(rows) != len(some) * len(grid["congestion_controls"]):
        raise RuntimeError(f"{len(rows)} sessions of {len(some)} paths")
    part = file.with_suffix(".part")
    part.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    part.rename(file)
    return len(rows)


def play(grid: dict, jobs: int, build: pathlib.Path = BUILD) -> pathlib.Path:
    """The folder with the results, a file a guest."""
    folder = build / depends_on(grid)
    folder.mkdir(parents=True, exist_ok=True)
    all_of([item for item in work(grid, folder) if not item[0].exists()], jobs)
    return folder


def all_of(todo: list[tuple], jobs: int) -> None:
    """Play what is to do; SystemExit where some of it failed."""
    failed = 0
    for done, (_, sessions, error) in enumerate(pool.each(one, todo, jobs), 1):
        failed += error is not None
        print(f"grid: guest {done} of {len(todo)}: {error or f'{sessions} sessions'}", flush=True)
    if failed:
        raise SystemExit(f"grid: {failed} guests failed: the same command plays them again")


def rows(folder: pathlib.Path) -> list[dict]:
    """All sessions that a folder has, each with its path's conditions."""
    of = {path["name"]: path for path in paths.paths(paths.load())}
    found = [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [{**{k: v for k, v in of[row["path"]].items() if k != "name"}, **row} for row in found]
