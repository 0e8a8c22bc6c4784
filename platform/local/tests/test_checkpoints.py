"""Which checkpoint a new run resumes from, on made-up folders."""
from oal_local import checkpoints

WHOLE = checkpoints.METADATA_MAGIC + b"rest"


def checkpoint(folder, run: int, number: int, metadata: bytes | None):
    place = folder / f"run-{run:06d}" / "job" / f"chk-{number}"
    place.mkdir(parents=True, exist_ok=True)
    if metadata is not None:
        (place / "_metadata").write_bytes(metadata)
    return place


def test_the_first_run_has_nothing_to_resume_from(tmp_path):
    run, resumed = checkpoints.begin_run(tmp_path)
    assert resumed is None and run.is_dir() and run.name == "run-000001"


def test_numbers_are_compared_as_numbers(tmp_path):
    checkpoint(tmp_path, 1, 9, WHOLE)
    newest = checkpoint(tmp_path, 1, 10, WHOLE)
    assert checkpoints.begin_run(tmp_path)[1] == newest


def test_an_incomplete_checkpoint_is_passed_over(tmp_path):
    newest = checkpoint(tmp_path, 1, 4, WHOLE)
    checkpoint(tmp_path, 1, 5, None)
    checkpoint(tmp_path, 1, 6, b"")
    checkpoint(tmp_path, 1, 7, WHOLE[:3])
    (checkpoint(tmp_path, 1, 8, None) / "._metadata.inprogress.1").write_bytes(WHOLE)
    assert checkpoints.begin_run(tmp_path)[1] == newest


def test_a_run_without_a_checkpoint_leads_back_to_the_run_before(tmp_path):
    checkpoint(tmp_path, 1, 90, WHOLE)
    newest = checkpoint(tmp_path, 2, 3, WHOLE)
    checkpoint(tmp_path, 3, 4, None)
    run, resumed = checkpoints.begin_run(tmp_path)
    assert resumed == newest
    assert [path.name for _, path in checkpoints.runs(tmp_path)] == ["run-000002", run.name]


def test_a_run_number_is_never_used_twice(tmp_path):
    first, _ = checkpoints.begin_run(tmp_path)
    second, _ = checkpoints.begin_run(tmp_path)
    third, _ = checkpoints.begin_run(tmp_path)
    assert len({first, second, third}) == 3 and not first.exists() and not second.exists()
