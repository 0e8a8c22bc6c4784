"""Offset between two hosts' clocks: requests and answers over UDP with four times each, as in NTP (RFC 5905, chapter
8).

With t1 request sent, t2 received there, t3 answered, t4 received here: round trip d = (t4 - t1) - (t3 - t2), offset of
this clock minus that one = ((t1 - t2) + (t4 - t3)) / 2. Whatever the two directions' delays are, the error is at most d
/ 2; so of the latest exchanges that with the smallest d counts (a queue on the way only makes d longer).
"""
from __future__ import annotations

import collections
import os
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass

MAGIC = b"OALclk1\0"
# magic, nonce, t2, t3 in ns since 1970; an answer is as long as a request: nothing is amplified
PACKET = struct.Struct("!8s8sQQ")
SO_TIMESTAMPNS = 35  # of the kernel: when the packet came, not when this process got to it
TIMESPEC = struct.Struct("@qq")
KEEP = 16
DRIFT_PPM = 50  # an old exchange's bound grows by what two ordinary quartz clocks drift apart
UNKNOWN_ERROR_US = 0xFFFFFFFF
PORT = 4123


@dataclass(frozen=True)
class Offset:
    """This clock minus the other one's, and the bound of the error, in µs."""

    offset_us: int
    error_us: int


NO_OFFSET = Offset(0, UNKNOWN_ERROR_US)


def open_socket(address: tuple[str, int] | None = None) -> socket.socket:
    """A UDP socket with receive timestamps; bound if an address is given."""
    family = socket.AF_INET6 if address and ":" in address[0] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    if address:
        sock.bind(address)
    return sock


def receive(sock: socket.socket) -> tuple[bytes, tuple, int]:
    """(packet, sender, time of arrival in ns)."""
    packet, ancillary, _, sender = sock.recvmsg(PACKET.size + 1, 64)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) >= TIMESPEC.size:
            seconds, ns = TIMESPEC.unpack(data[:TIMESPEC.size])
            return packet, sender, seconds * 10**9 + ns
    return packet, sender, time.time_ns()


class Reflector:
    """The other end: answers each well-formed request with the times at which it came and was answered."""

    def __init__(self, sock: socket.socket):
        self.socket, self.answered, self.refused = sock, 0, 0

    def answer(self) -> None:
        """Wait for one packet and answer it if it is a request."""
        packet, sender, t2 = receive(self.socket)
        if len(packet) != PACKET.size or not packet.startswith(MAGIC):
            self.refused += 1
            return
        nonce = PACKET.unpack(packet)[1]
        self.socket.sendto(PACKET.pack(MAGIC, nonce, t2, time.time_ns()), sender)
        self.answered += 1

    def serve(self, stop: threading.Event) -> None:
        """Until stop is set; looks five times a second."""
        while not stop.is_set():
            if select.select([self.socket], [], [], 0.2)[0]:
                self.answer()


class Clock:
    """The asking end. ask() sends a request, poll() takes answers; neither waits."""

    def __init__(self, sock: socket.socket, reflector: tuple[str, int]):
        self.socket, self.reflector = sock, reflector
        sock.setblocking(False)
        self.asked: dict[bytes, int] = {}  # nonce → t1
        # (round trip, offset, t4) in ns
        self.exchanges: collections.deque[tuple[int, int, int]] = collections.deque(maxlen=KEEP)
        self.answers = self.refused = self.unsent = 0

    def ask(self) -> None:
        nonce = os.urandom(8)
        if len(self.asked) >= KEEP:
            del self.asked[next(iter(self.asked))]  # the oldest was lost
        self.asked[nonce] = time.time_ns()
        try:
            self.socket.sendto(PACKET.pack(MAGIC, nonce, 0, 0), self.reflector)
        except OSError:
            del self.asked[nonce]
            self.unsent += 1  # no route for now; the bound grows meanwhile

    def poll(self) -> None:
        while True:
            try:
                packet, _, t4 = receive(self.socket)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of an earlier request
                self.unsent += 1
                continue
            self.take(packet, t4)

    def take(self, packet: bytes, t4: int) -> None:
        """One answer. What answers no request of ours, or does so before it was asked, is refused."""
        if len(packet) != PACKET.size or not packet.startswith(MAGIC):
            self.refused += 1
            return
        _, nonce, t2, t3 = PACKET.unpack(packet)
        t1 = self.asked.pop(nonce, None)
        if t1 is None or t3 < t2 or t4 - t1 < t3 - t2:
            self.refused += 1
            return
        self.answers += 1
        self.exchanges.append(((t4 - t1) - (t3 - t2), ((t1 - t2) + (t4 - t3)) // 2, t4))

    def offset(self, now_ns: int) -> Offset:
        """The best estimate: the exchange with the smallest bound now. NO_OFFSET before the first answer."""
        if not self.exchanges:
            return NO_OFFSET
        bound, offset = min((round_trip // 2 + abs(now_ns - t4) * DRIFT_PPM // 10**6, offset)
                            for round_trip, offset, t4 in self.exchanges)
        return Offset(round(offset / 1000), min(-(-bound // 1000), UNKNOWN_ERROR_US))
