"""The test's client in the guest: connections that make load, one more at each interval, and probes on them and beside
them. Whatever it sees is kept; what it means is said outside (rpm.py).
"""
import random
import socket
import time

from guest.namespace import inside
from h2.events import DataReceived, StreamEnded

from .channel import Channel
from .loop import Loop
from .server import LARGE, SLURP, SMALL, Server


class Requests:
    """Owner of a client's channel: what is asked on it, and who is told of the answers."""

    def __init__(self, test: "Test", then=None):
        self.test, self.then, self.waiting, self.received_bytes = test, then, {}, 0

    def ask(self, channel: Channel, path: str, done=None, method: str = "GET") -> int:
        stream = channel.http.get_next_available_stream_id()
        channel.http.send_headers(stream, [(":method", method), (":path", path), (":scheme", "https"),
                                           (":authority", "server")], end_stream=method == "GET")
        if done:
            self.waiting[stream] = done
        return stream

    def ready(self, channel: Channel) -> None:
        self.then(channel)

    def event(self, channel: Channel, event) -> None:
        if isinstance(event, DataReceived):
            self.received_bytes += len(event.data)
        elif isinstance(event, StreamEnded) and event.stream_id in self.waiting:
            self.waiting.pop(event.stream_id)()

    def closed(self, channel: Channel, why: str) -> None:
        if why:
            self.test.failures.append(why)


class Test:
    """From begin() until the loop ends. `probes`: a row each, times in ms; those without an end had none."""

    def __init__(self, loop: Loop, ns: str, server: Server, context, plan: dict, seed: int):
        self.loop, self.ns, self.server, self.context, self.plan = loop, ns, server, context, plan
        self.chance = random.Random(seed)
        self.load: list[tuple[Channel, Requests]] = []
        self.probes: list[dict] = []
        self.intervals: list[dict] = []
        self.failures: list[str] = []

    def begin(self) -> None:
        self.start_s = time.monotonic()
        self.interval()
        self.loop.at(self.start_s + 0.5 / self.plan["probes_per_s"], self.probe)

    def now_s(self) -> float:
        return time.monotonic() - self.start_s

    def channel(self, owner: Requests) -> Channel:
        with inside(self.ns):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        channel = Channel(self.loop, sock, self.context, True, self.plan["control"], owner)
        channel.connect(self.server.address)
        return channel

    def interval(self) -> None:
        """Goodput until now; then the next connections."""
        down = sum(owner.received_bytes for _, owner in self.load)
        self.intervals.append({"t_s": self.now_s(), "down_bytes": down, "up_bytes": self.server.received_bytes,
                               "connections": len(self.load)})
        for _ in range(min(self.plan["more"], self.plan["most"] - len(self.load))):
            owner = Requests(self, None)
            owner.then = lambda channel, owner=owner: self.begin_load(channel, owner)
            self.load.append((self.channel(owner), owner))
        self.loop.at(self.start_s + len(self.intervals) * self.plan["interval_s"], self.interval)

    def begin_load(self, channel: Channel, owner: Requests) -> None:
        if self.plan["direction"] == "down":
            owner.ask(channel, LARGE)
        else:
            channel.endless = owner.ask(channel, SLURP, method="POST")

    def probe(self) -> None:
        """One beside the load, one on it."""
        self.foreign_probe()
        there = [n for n, (channel, _) in enumerate(self.load) if channel.open and channel.waits]
        if there:
            self.self_probe(self.chance.choice(there))
        self.loop.at(self.start_s + (len(self.probes_begun("foreign")) + 0.5) / self.plan["probes_per_s"], self.probe)

    def probes_begun(self, kind: str) -> list[dict]:
        return [row for row in self.probes if row["kind"] == kind]

    def foreign_probe(self) -> None:
        row = {"kind": "foreign", "begin_s": self.now_s(), "end_s": None, "tcp_ms": None, "tls_ms": None,
               "http_ms": None, "connection": None}
        self.probes.append(row)
        owner = Requests(self)

        def asked(channel: Channel) -> None:
            asked_s = time.monotonic()
            row.update(tcp_ms=(channel.connected_s - channel.begun_s) * 1e3,
                       tls_ms=(channel.ready_s - channel.connected_s) * 1e3)

            def done() -> None:
                row.update(http_ms=(time.monotonic() - asked_s) * 1e3, end_s=self.now_s())
                self.loop.at(time.monotonic(), channel.close)  # not amid what it has read

            owner.ask(channel, SMALL, done)

        owner.then = asked
        self.channel(owner)

    def self_probe(self, number: int) -> None:
        channel, owner = self.load[number]
        row = {"kind": "self", "begin_s": self.now_s(), "end_s": None, "tcp_ms": None, "tls_ms": None, "http_ms": None,
               "connection": number}
        self.probes.append(row)
        begun_s = time.monotonic()
        owner.ask(channel, SMALL, lambda: row.update(http_ms=(time.monotonic() - begun_s) * 1e3, end_s=self.now_s()))
        channel.flush()
