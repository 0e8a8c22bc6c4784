"""What happens when: one-off steps of a period, played again and again until the run is over or somebody asks it to
stop.
"""
import os
import time
from collections.abc import Callable

STOP = "/run/out/stop"  # the host makes this file to end the run early, with everything flushed


class Steps:
    """A list of (time in s from the period's start, what to do); run() sleeps to each in turn."""

    def __init__(self):
        self.list: list[tuple[float, Callable[[], None]]] = []

    def at(self, t_s: float, do: Callable[[], None]) -> None:
        self.list.append((t_s, do))

    def run(self, start_s: float, duration_s: float, period_s: float) -> None:
        end_s, cycle_s = start_s + duration_s, start_s
        while cycle_s < end_s:
            for t_s, do in sorted(self.list, key=lambda step: step[0]):
                if cycle_s + t_s >= end_s or not sleep_until(cycle_s + t_s):
                    break
                do()
            cycle_s += period_s
            if not sleep_until(min(cycle_s, end_s)):
                return


def sleep_until(when_s: float) -> bool:
    """False where the stop file appeared meanwhile. Looks twice a second."""
    while (left_s := when_s - time.monotonic()) > 0:
        if os.path.exists(STOP):
            return False
        time.sleep(min(left_s, 0.5))
    return not os.path.exists(STOP)
