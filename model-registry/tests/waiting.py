"""Waiting for a condition, never for a time."""

import time


def until(condition, what: str, seconds: float = 120):
    """The first true value of condition(). The longer it lasts, the less often it looks: a look at MLflow costs CPU."""
    began = time.monotonic()
    while not (value := condition()):
        lasted = time.monotonic() - began
        assert lasted < seconds, f"{what}: not within {seconds} s"
        time.sleep(min(0.05 + lasted / 10, 0.5))
    return value
