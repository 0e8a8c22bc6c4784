"""One thread that moves sockets and keeps appointments. Runs in the guest; times are time.monotonic()'s."""
import heapq
import itertools
import select
import time
from collections.abc import Callable

READ, WRITE = select.EPOLLIN, select.EPOLLOUT


class Loop:
    def __init__(self):
        self.poll = select.epoll()
        self.watched: dict[int, Callable[[int], None]] = {}
        self.due: list[tuple[float, int, Callable[[], None]]] = []
        self.number = itertools.count()

    def at(self, when_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self.due, (when_s, next(self.number), do))

    def watch(self, file, events: int, do: Callable[[int], None]) -> None:
        """`do` is called with the events that came; again for a file that is watched: other events."""
        known = file.fileno() in self.watched
        self.watched[file.fileno()] = do
        (self.poll.modify if known else self.poll.register)(file.fileno(), events)

    def forget(self, file) -> None:
        if file.fileno() >= 0 and self.watched.pop(file.fileno(), None):
            self.poll.unregister(file.fileno())

    def run(self, end_s: float) -> None:
        while (now_s := time.monotonic()) < end_s:
            while self.due and self.due[0][0] <= now_s:
                heapq.heappop(self.due)[2]()
            next_s = min(end_s, self.due[0][0]) if self.due else end_s
            for file, events in self.poll.poll(max(0.0, next_s - time.monotonic())):
                if do := self.watched.get(file):
                    do(events)
