"""Cells side by side, a process each: guests are killed with their cell when the run is interrupted, and nothing half
done is stored.
"""
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait

FORK = multiprocessing.get_context("fork")


def _child(work: Callable, item, pipe) -> None:
    os.setsid()  # Ctrl-C is for the parent, which then tells this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        pipe.send((True, work(item)))
    except BaseException as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))
    pipe.close()


def _stop(process) -> None:
    """Twice: the first asks the guest to finish, the second kills it."""
    for _ in range(2):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        process.join(0.5)
    process.join(10)
    if process.is_alive():
        process.kill()


def each(work: Callable, items: list, jobs: int) -> Iterator[tuple]:
    """(item, its result, None) or (item, None, what went wrong), as they come. SIGTERM counts as Ctrl-C."""
    waiting, running = list(items), {}
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                item = waiting.pop(0)
                here, there = FORK.Pipe(False)
                process = FORK.Process(target=_child, args=(work, item, there))
                process.start()
                there.close()
                running[here] = process, item
            for pipe in wait(list(running)):
                process, item = running.pop(pipe)
                try:
                    good, value = pipe.recv()
                except EOFError:
                    good, value = False, "its process ended without a word"
                process.join()
                pipe.close()
                yield (item, value, None) if good else (item, None, value)
    finally:
        for process, _ in running.values():
            _stop(process)
        signal.signal(signal.SIGTERM, before)
