"""Waiting for a condition, never for a time."""
import time

LIMIT_S = 420  # a restart takes 20 s on an idle machine, minutes on one that is busy with builds


def until(condition, what: str, seconds: float = LIMIT_S):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return value
