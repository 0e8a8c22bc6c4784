"""What each flow has received, and its TCP's round trip, again and again. Runs in the guest."""
import threading
import time

from guest.connection import tcp_info
from guest.flows import Flow


class Sampler:
    """`rows` of each flow: [s since 1970, bytes received so far, the sender's smoothed round trip in µs or None]."""

    def __init__(self, flows: list[Flow], step_s: float):
        self.flows, self.step_s, self.rows = flows, step_s, [[] for _ in flows]
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def begin(self) -> None:
        self.start_s = time.monotonic()
        self.thread.start()

    def run(self) -> None:
        number = 0
        while not self.stop.wait(max(0.0, self.start_s + number * self.step_s - time.monotonic())):
            number += 1
            for flow, rows in zip(self.flows, self.rows):
                rows.append([time.time(), flow.received_bytes, self.round_trip_us(flow)])

    @staticmethod
    def round_trip_us(flow: Flow) -> int | None:
        there = [c for c in flow.connections if c.open]
        try:
            return tcp_info(there[0].socket)["rtt_us"] or None if there else None
        except OSError:  # closed between the two lines
            return None

    def end(self) -> list[list]:
        self.stop.set()
        self.thread.join()
        return self.rows
