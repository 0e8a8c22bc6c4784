"""ICMP and UDP pings at a fixed pace, a thread for all of them. Runs in the guest."""
import os
import socket
import struct
import threading
import time

from guest.namespace import inside

from .loop import READ, Loop

ECHO, REPLY = 8, 0


def checksum(data: bytes) -> int:
    """Of ICMP (RFC 1071); data of an even length."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


class Ping:
    """`rows`: [when it was sent (s since 1970), ms or None for never answered], by sequence number."""

    def __init__(self, loop: Loop, spec: dict, number: int, interval_s: float):
        self.loop, self.interval_s, self.rows, self.sent_s = loop, interval_s, [], []
        self.icmp, self.to, self.number = spec["kind"] == "icmp", (spec["to"], 0), number
        kind = (socket.SOCK_RAW, socket.IPPROTO_ICMP) if self.icmp else (socket.SOCK_DGRAM, 0)
        with inside(spec["from_ns"]):
            self.socket = socket.socket(socket.AF_INET, *kind)
        if not self.icmp:
            with inside(spec["to_ns"]):
                self.echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.echo.bind((spec["to"], 0))
            self.to = self.echo.getsockname()
            loop.watch(self.echo, READ, self.answer)
        loop.watch(self.socket, READ, self.receive)

    def send(self) -> None:
        payload = struct.pack("!HH", self.number, len(self.rows)) + bytes(44)
        if self.icmp:
            head = struct.pack("!BBH", ECHO, 0, 0)
            payload = struct.pack("!BBH", ECHO, 0, checksum(head + payload)) + payload
        self.rows.append([time.time(), None])
        self.sent_s.append(time.monotonic())
        try:
            self.socket.sendto(payload, self.to)
        except OSError:  # a full queue of the sender itself: an unanswered ping
            pass
        self.loop.at(self.sent_s[0] + len(self.rows) * self.interval_s, self.send)

    def answer(self, _: int) -> None:
        data, who = self.echo.recvfrom(2048)
        self.echo.sendto(data, who)

    def receive(self, _: int) -> None:
        data = self.socket.recv(2048)
        now_s = time.monotonic()
        if self.icmp:
            data = data[(data[0] & 15) * 4:]
            if data[0] != REPLY:
                return
            data = data[4:]
        number, sequence = struct.unpack("!HH", data[:4])
        if number == self.number and self.rows[sequence][1] is None:
            self.rows[sequence][1] = (now_s - self.sent_s[sequence]) * 1e3


class Pings:
    def __init__(self, specs: list[dict], interval_s: float, length_s: float):
        self.loop, self.length_s, self.failure = Loop(), length_s, None
        base = os.getpid() & 0xff00
        self.pings = [Ping(self.loop, spec, base + n, interval_s) for n, spec in enumerate(specs)]
        self.thread = threading.Thread(target=self.run, daemon=True)

    def begin(self) -> None:
        self.thread.start()

    def run(self) -> None:
        try:
            # spread over the interval, so that they do not queue behind each other
            for n, ping in enumerate(self.pings):
                self.loop.at(time.monotonic() + ping.interval_s * n / len(self.pings), ping.send)
            self.loop.run(time.monotonic() + self.length_s)
        except Exception as error:  # said by end(): a thread's own end is silent
            self.failure = error

    def end(self) -> list[list]:
        self.thread.join()
        if self.failure:
            raise SystemExit(f"guest: the pings stopped: {self.failure!r}")
        return [ping.rows for ping in self.pings]
