"""Waiting for a condition, never for a time."""
import time


def until(condition, what: str, seconds: float = 120):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return value
