"""Which checkpoint a restarted JobManager resumes from.

Every start of the JobManager is a run with a checkpoint folder of its own: checkpoints/run-000007/<job
id>/chk-42/_metadata.
- A checkpoint is complete when its `_metadata` is there: Flink writes that last, to another name, and renames it.
- A later run begins where an earlier one ended, so the newest checkpoint is the highest number of the latest run that
  has one.
- Flink does not own what it resumes from (claim mode NO_CLAIM), so runs older than the one resumed from are deleted
  here, and
  what a dead run's TaskManager still writes lands in a folder that nobody reads.
"""
import re
import shutil
import struct
from pathlib import Path

METADATA_MAGIC = struct.pack(">i", 0x4960672D)  # org.apache.flink.runtime.checkpoint.Checkpoints.HEADER_MAGIC_NUMBER


def runs(folder: Path) -> list[tuple[int, Path]]:
    found = ((re.fullmatch(r"run-(\d+)", path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def complete(folder: Path) -> list[tuple[int, Path]]:
    """The complete checkpoints of one run, by number."""
    found = []
    for metadata in folder.glob("*/chk-*/_metadata"):
        with open(metadata, "rb") as file:
            # A file cut off by a power failure is no checkpoint.
            if file.read(4) == METADATA_MAGIC:
                found.append((int(metadata.parent.name.removeprefix("chk-")), metadata.parent))
    return sorted(found)


def newest(folder: Path) -> Path | None:
    for _, run in reversed(runs(folder)):
        if there := complete(run):
            return there[-1][1]
    return None


def begin_run(folder: Path) -> tuple[Path, Path | None]:
    """The folder of a new run, and the checkpoint it resumes from; None when there is none yet."""
    resumed = newest(folder)
    earlier = runs(folder)
    for _, run in earlier:
        if resumed is None or run not in resumed.parents:
            shutil.rmtree(run)
    # Numbers are never used twice: a folder made anew would mix two runs.
    counter = folder / "last-run"
    number = 1 + max([n for n, _ in earlier] + [int(counter.read_text()) if counter.exists() else 0])
    counter.write_text(str(number))
    run = folder / f"run-{number:06d}"
    run.mkdir()
    return run, resumed
