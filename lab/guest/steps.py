"""What changes during a scenario, in time order: links, foreign load, wired delay, stations that leave and return."""
import time
from collections.abc import Callable


class Steps:
    """A list of (time in s from the start, what to do); run() sleeps to each in turn."""

    def __init__(self):
        self.list: list[tuple[float, Callable[[], None]]] = []

    def at(self, t_s: float, do: Callable[[], None]) -> None:
        self.list.append((t_s, do))

    def run(self, start_s: float, duration_s: float) -> None:
        for t_s, do in sorted(self.list, key=lambda step: step[0]):
            time.sleep(max(0.0, start_s + t_s - time.monotonic()))
            do()
        time.sleep(max(0.0, start_s + duration_s - time.monotonic()))
