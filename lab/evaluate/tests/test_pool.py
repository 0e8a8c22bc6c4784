"""Cells side by side: results as they come, failures as values, and no process left after Ctrl-C."""
import os
import pathlib
import signal
import time

import pytest
from evaluate import pool


def test_results_and_failures_come_back_with_their_item():
    def work(n: int) -> int:
        if n == 3:
            raise RuntimeError("no guest")
        if n == 4:
            os._exit(1)
        return n * n

    found = {item: (value, error) for item, value, error in pool.each(work, [1, 2, 3, 4], 2)}
    assert found == {
        1: (1, None), 2: (4, None), 3: (None, "RuntimeError: no guest"), 4: (None, "its process ended without a word")
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_cells_that_run(number, tmp_path):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with SIGINT ignored
    def work(n: int) -> None:
        (tmp_path / f"{n}").write_text(str(os.getpid()))
        try:
            time.sleep(60)
        finally:
            (tmp_path / f"{n}.over").touch()

    def begun() -> list[pathlib.Path]:
        return [p for p in tmp_path.iterdir() if p.suffix == "" and p.read_text()]

    parent = os.getpid()
    watcher = os.fork()
    if not watcher:  # tells the parent once both cells run
        while len(begun()) < 2:
            time.sleep(0.01)
        os.kill(parent, number)
        os._exit(0)
    with pytest.raises(KeyboardInterrupt):
        list(pool.each(work, [1, 2, 3], 2))
    os.waitpid(watcher, 0)
    assert len(begun()) == 2, "the third never began"
    for file in begun():
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)
