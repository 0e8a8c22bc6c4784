"""What the test programs in Python share: each function named t_… is a test, its docstring the sentence that it
proves."""

import sys
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed

ATTEMPTS = 5  # of a test on a busy machine


class Skip(Exception):
    """Raised by a test that cannot be run here; its text says what is missing."""


class Busy(Exception):
    """Raised by a test that saw the machine too busy for what it measures: it is tried again."""


def patiently(test: Callable[[], None]) -> None:
    """Runs a test, again while the machine is too busy for it."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return test()
        except Busy:
            if attempt == ATTEMPTS:
                raise


class Sum:
    """Results of tests so far."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, test: Callable[[], None]) -> str:
        """Runs a test; the line, or lines, that say what became of it."""
        began, sentence = time.monotonic(), " ".join(test.__doc__.split())
        try:
            patiently(test)
        except Skip as why:
            self.skipped += 1
            return f"skip {sentence}: {why}"
        except Exception:
            self.failed += 1
            return f"# {traceback.format_exc()}not ok {sentence}"
        self.passed += 1
        return f"ok {sentence}  # {time.monotonic() - began:.1f} s"

    def status(self) -> int:
        """Prints the closing line; the exit status."""
        print(f"# {self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return self.failed > 0 or self.passed + self.skipped == 0


def tests_of(functions: dict, wanted: Iterable[str] = (), left_out: Iterable = ()) -> list:
    """The tests of a module, or those of them that are wanted by name."""
    return [test for name, test in functions.items()
            if name.startswith("t_") and (not wanted or name in wanted) and test not in left_out]


def run_tests(tests: list, at_once: int, total: Sum) -> None:
    """Runs them, `at_once` at a time: they mostly wait. Prints each result as it comes."""
    with ThreadPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(total.add, test) for test in tests]):
            print(done.result(), flush=True)


def skip_all(why: str) -> int:
    """The whole program cannot be run here; its exit status."""
    print(f"skip {sys.argv[0]}: {why}")
    print("# 0 passed, 0 failed, 1 skipped")
    return 0
