"""Clocks that a drill sets: of all services of a platform, or of those whose command line holds a word (clock.c)."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
FORMAT = "<Qqqq"  # version, since, ahead, rate
ALL = "all"


def build(folder: Path) -> Path:
    """The library, compiled."""
    library = folder / "clock.so"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"],
                   check=True)
    return library


class Clock:
    """The realtime clock of those services, as a drill sets it. It begins right."""

    def __init__(self, folder: Path, name: str = ALL):
        with open(folder / name, "w+b") as file:
            file.truncate(struct.calcsize(FORMAT))
            self._map = mmap.mmap(file.fileno(), struct.calcsize(FORMAT))
        self._version = 0
        self._write(time.time_ns(), 0, 1)

    def _write(self, since_ns: int, ahead_ns: int, rate: int) -> None:
        self._since_ns, self._ahead_ns, self._rate = since_ns, ahead_ns, rate
        self._version += 2
        struct.pack_into("<Q", self._map, 0, self._version - 1)
        struct.pack_into("<qqq", self._map, 8, since_ns, ahead_ns, rate)
        struct.pack_into("<Q", self._map, 0, self._version)

    def ahead_s(self) -> float:
        """How far it is ahead of this machine's."""
        real = time.time_ns()
        return (self._ahead_ns + (real - self._since_ns) * (self._rate - 1)) / 1e9

    def now_us(self) -> int:
        """Microseconds since 1970 by this clock."""
        real = time.time_ns()
        return (real + self._ahead_ns + (real - self._since_ns) * (self._rate - 1)) // 1000

    def run(self, rate: int) -> None:
        """From now on it goes so many times as fast as this machine's."""
        real = time.time_ns()
        self._write(real, self._ahead_ns + (real - self._since_ns) * (self._rate - 1), rate)

    def step(self, seconds: float) -> None:
        """Set it on by so much, or back."""
        real = time.time_ns()
        self._write(real, self._ahead_ns + (real - self._since_ns) * (self._rate - 1) + int(seconds * 1e9), self._rate)

    def wait_s(self, seconds: float, tick=lambda: None) -> None:
        """Until so many seconds have passed by it."""
        until = self.now_us() + seconds * 1e6
        while self.now_us() < until:
            tick()
            time.sleep(0.05)


@contextmanager
def preloaded(folder: Path, clocks: Path) -> Iterator[None]:
    """What is started within has the clocks of that folder."""
    added = {"LD_PRELOAD": str(build(folder)), "OAL_SOAK_CLOCKS": str(clocks)}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
