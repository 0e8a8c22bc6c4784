"""Captures to training items: stream-jobs/items, then a Parquet file for each AP-run, under a hash of captures and
tools.
"""
import functools
import hashlib
import json
import pathlib
import shutil
import subprocess
import tempfile

from . import plans, record

ROOT = record.LAB.parent
#: What makes items of raw rows, and Parquet files of items.
TOOLS = ("stream-jobs/src/main/java", "schema/generated", "training/src/oal_training/stored")
AT_ONCE = 12  # captures of a start of the Java program


@functools.cache
def tools() -> str:
    """Hash of the sources of what makes items."""
    found = hashlib.sha256()
    for folder in TOOLS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in (".java", ".json", ".py", ".oalf"):
                found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:20]


def folder(runs: list[plans.Run]) -> pathlib.Path:
    """Where the items of these runs are, by these tools."""
    keys = json.dumps([[run.name, record.key(run)] for run in sorted(runs, key=lambda run: run.name)])
    return record.folder() / "items" / hashlib.sha256((keys + tools()).encode()).hexdigest()[:20]


def largest(runs: list[plans.Run]) -> pathlib.Path | None:
    """The folder that holds items of the most of these runs, and of no others, by these tools."""
    names, found = {run.name for run in runs}, []
    for path in (record.folder() / "items").glob("*/corpus.json"):
        made = json.loads(path.read_text())
        held = {one["run"] for one in made["ap_runs"]}
        if made["tools"] == tools() and held <= names and path.parent == folder([r for r in runs if r.name in held]):
            found.append((len(held), path.parent))
    return max(found)[1] if found else None


def _one(run: plans.Run, name: str) -> pathlib.Path:
    """The Parquet file of an AP-run, whichever corpus it is taken into."""
    return record.folder() / "parquet" / f"{name}-{record.key(run)}-{tools()}.parquet"


def _split(lines: pathlib.Path, captures: list[tuple[plans.Run, str]]) -> None:
    """Items of several captures, one Parquet file each."""
    from oal_training.stored import jsonl

    with tempfile.TemporaryDirectory(dir=lines.parent) as name:
        files = {capture: open(pathlib.Path(name) / f"{capture}.jsonl", "w", encoding="utf-8")
                 for _, capture in captures}
        with open(lines, encoding="utf-8") as every:
            for line in every:
                files[json.loads(line)["ap_id"]].write(line)
        for run, capture in captures:
            files[capture].close()
            target = _one(run, capture)
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(".partial")
            jsonl.convert(pathlib.Path(files[capture].name), partial, record.kept(run) / f"{capture}.oalcap")
            partial.rename(target)


def make(runs: list[plans.Run], log=print) -> pathlib.Path:
    """Items of the runs that are there; the folder with NAME.items.parquet and corpus.json."""
    captures = [(run, name) for run in runs for name in run.captures]
    todo = [(run, name) for run, name in captures if not _one(run, name).exists()]
    if todo:
        log(f"corpus: items of {len(todo)} captures", flush=True)
        subprocess.run(["make", "--no-print-directory", "-s", "-C", ROOT / "stream-jobs", "build"], check=True,
                       stdout=subprocess.DEVNULL)
    for at in range(0, len(todo), AT_ONCE):
        some = todo[at:at + AT_ONCE]
        with tempfile.TemporaryDirectory(prefix="items-", dir=record.folder()) as name:
            lines = pathlib.Path(name) / "items.jsonl"
            with open(lines, "wb") as out:
                subprocess.run([ROOT / "stream-jobs/items",
                                *(record.kept(run) / f"{capture}.oalcap" for run, capture in some)], check=True,
                               stdout=out, stderr=subprocess.DEVNULL)
            _split(lines, some)
        log(f"corpus: items of {min(at + AT_ONCE, len(todo))}/{len(todo)}", flush=True)
    target = folder(runs)
    target.mkdir(parents=True, exist_ok=True)
    for run, name in captures:
        link = target / f"{name}.items.parquet"
        link.unlink(missing_ok=True)
        link.hardlink_to(_one(run, name))
    (target / "corpus.json").write_text(index(runs))
    return target


def sample(folder_: pathlib.Path, runs: list[plans.Run], to: pathlib.Path) -> None:
    """Copy the items of the AP-runs that the repository keeps, and their part of corpus.json."""
    names = plans.settings()["sample"]
    to.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(folder_ / f"{name}.items.parquet", to / f"{name}.items.parquet")
    (to / "corpus.json").write_text(index(runs, names))


#: Of fleet.items.parquet: a block of this length of every so many, and when each AP-run ends (2026-11-01, µs).
BLOCK_US, EVERY, END_US = 2_000_000, 3, 1_793_491_200_000_000


def fleet(folder_: pathlib.Path, runs: list[plans.Run], to: pathlib.Path) -> int:
    """Items that a fleet's first model learns from: blocks of the AP-runs of `train` and `validation`, and the capture
    learning2 whole, side by side in time, so that the latest quarter of the file is the end of each. Their number.
    """
    import numpy as np
    from oal_training.stored import parquet

    files = {name: folder_ / f"{name}.items.parquet" for run in runs if run.part != "test" for name in run.captures}
    files["learning2"] = record.LAB / "captures/learning2.items.parquet"
    parts, said = [], {}
    for name, path in files.items():
        columns, said = parquet.read_columns(path)
        ts = columns["ts_us"]
        kept = np.full(len(ts), name == "learning2") | ((ts - ts.min()) // BLOCK_US % EVERY == 0)
        columns["ts_us"] = ts + (END_US - ts.max())
        columns["ap_id"] = np.full(len(ts), name, object)
        parts.append({column: values[kept] for column, values in columns.items()})
    joined = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
    order = np.lexsort((joined["ap_id"].astype(str), joined["ts_us"]))
    provenance = {"capture": f"{len(files) - 1} AP-runs of lab/corpus and lab/captures/learning2", "tools": tools()}
    parquet.write(to, {column: values[order] for column, values in joined.items()},
                  provenance | {"schema_revision": said.get("schema_revision")})
    return len(order)


def index(runs: list[plans.Run], names: list[str] | None = None) -> str:
    """corpus.json: what each file is of; capture: beside the folder of all items, in the cache."""
    found = [{
        "ap_run": name, "run": run.name, "site": run.site, "ap": f"{run.site}/{number}", "part": run.part,
        "evening": run.evening, "file": f"{name}.items.parquet",
        "capture": f"runs/{record.kept(run).name}/{name}.oalcap",
        "start_ns": run.start_ns
    } for run in runs for number, name in enumerate(run.captures)]
    if names is not None:
        found = [next(one for one in found if one["ap_run"] == name) for name in names]
    return json.dumps({"tools": tools(), "ap_runs": found}, indent=1) + "\n"
