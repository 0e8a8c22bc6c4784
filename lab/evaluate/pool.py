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
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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


@contextlib.contextmanager
def _interrupts() -> Iterator:
    """A pipe that can be read once SIGINT or SIGTERM came. An exception that a handler raises can be lost: Python drops
    those that are raised while it forks.
    """
    here, there = FORK.Pipe(False)
    before = {number: signal.signal(number, lambda *_: there.send_bytes(b"!"))
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield here
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        here.close()
        there.close()


def each(work: Callable, items: list, jobs: int) -> Iterator[tuple]:
    """(item, its result, None) or (item, None, what went wrong), as they come. SIGTERM counts as Ctrl-C."""
    waiting, running = list(items), {}
    with _interrupts() as interrupted:
        try:
            while waiting or running:
                while waiting and len(running) < jobs and not interrupted.poll():
                    item = waiting.pop(0)
                    here, there = FORK.Pipe(False)
                    process = FORK.Process(target=_child, args=(work, item, there))
                    process.start()
                    there.close()
                    running[here] = process, item
                for pipe in wait([interrupted, *running]):
                    if pipe is interrupted:
                        raise KeyboardInterrupt
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
