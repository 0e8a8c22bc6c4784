"""A host in a namespace of its own, and networks that it serves over paths of given rate, delay, loss and buffer.

Paths are played by a process between TUN devices: kernels without netem will do. What the host connects to on its own
loopback at a port of `through` comes out at the same port of this machine's loopback, so that an agent in the namespace
reaches a platform outside.

usage: far_networks.py HOST FAR THROUGH PATHS    (two namespaces; ports; JSON: a path has mbps, delay_ms, loss, packets)
Prints "ready", and ends with its input. Path n is 10.96.n.0/24: the host is .1, the far end .2.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import math
import os
import random
import selectors
import socket
import struct
import sys
import threading
import time
from collections import deque

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 1, 0x1000, 0x40000000
MOST_BYTES = 2048
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(namespace) -> None:
    """This thread makes its sockets and devices in that network namespace (an open file of it) from now on."""
    if LIBC.setns(namespace.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"setns {namespace.name}")


def tun(name: str) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH14x", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


class Path:
    """One path: to the far end a queue of so many packets before the rate, a loss of each packet for itself, a delay,
    and turns: packets come over together once in turn_ms (0: each when it is due). Back nothing.
    """

    def __init__(
        self, host: int, far: int, mbps: float, delay_ms: float, loss: float, packets: int, turn_ms: float = 0
    ):
        self.host, self.far, self.bits_per_s, self.delay_s = host, far, mbps * 1e6, delay_ms / 1e3
        self.turn_s = turn_ms / 1e3
        self.loss, self.packets = loss, packets
        self.free_at, self.waiting = 0.0, deque()  # when the link is idle; when each packet in the queue will have left
        self.lot = random.Random(host)

    def arrive(self, size: int, now: float) -> float | None:
        """When a packet is at the far end; None: it is lost."""
        while self.waiting and self.waiting[0] <= now:
            self.waiting.popleft()
        if self.lot.random() < self.loss or len(self.waiting) >= self.packets:
            return None
        self.free_at = max(self.free_at, now) + size * 8 / self.bits_per_s
        self.waiting.append(self.free_at)
        at = self.free_at + self.delay_s
        return math.ceil(at / self.turn_s) * self.turn_s if self.turn_s else at


def play(paths: list[Path]) -> None:
    """Forward packets until the end of this process."""
    selector, due, number = selectors.DefaultSelector(), [], 0
    for path in paths:
        selector.register(path.host, selectors.EVENT_READ, (path, True))
        selector.register(path.far, selectors.EVENT_READ, (path, False))
    while True:
        wait = max(due[0][0] - time.monotonic(), 0) if due else None
        for key, _ in selector.select(wait):
            path, forth = key.data
            for _ in range(64):
                try:
                    packet = os.read(key.fd, MOST_BYTES)
                except BlockingIOError:
                    break
                if not forth:
                    put(path.host, packet)
                elif (at := path.arrive(len(packet), time.monotonic())) is not None:
                    number += 1
                    heapq.heappush(due, (at, number, path.far, packet))
        now = time.monotonic()
        while due and due[0][0] <= now:
            _, _, fd, packet = heapq.heappop(due)
            put(fd, packet)


def put(fd: int, packet: bytes) -> None:
    try:
        os.write(fd, packet)
    except OSError:
        pass  # what a device does not take is lost, as on a wire


def copy(from_: socket.socket, to: socket.socket) -> None:
    try:
        while some := from_.recv(65536):
            to.sendall(some)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (from_, to):
            s.close()


def pass_on(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    while True:
        near = listener.accept()[0]
        try:
            there = socket.create_connection(("127.0.0.1", port))
        except OSError:
            near.close()  # refused, as it would be outside
            continue
        for pair in ((near, there), (there, near)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def main() -> None:
    host, far, through, wanted = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
    outside = open("/proc/self/ns/net")
    enter(open(f"/run/netns/{host}"))
    near = [tun(f"net{n}") for n in range(len(wanted))]
    listeners = [socket.create_server(("127.0.0.1", port)) for port in through]
    enter(open(f"/run/netns/{far}"))
    ends = [tun(f"net{n}") for n in range(len(wanted))]
    enter(outside)
    for listener in listeners:
        threading.Thread(target=pass_on, args=(listener,), daemon=True).start()
    threading.Thread(target=play, args=([Path(a, b, **p) for a, b, p in zip(near, ends, wanted)],),
                     daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
