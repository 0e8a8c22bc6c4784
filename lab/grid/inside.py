"""The guest's main program: sessions of ten seconds over one path, one after another, in virtual time.

  server netns  s0 -- s1 [path netns: bridge] c1 -- c0  client netns

All of a path's conditions are on c1, for what goes to the client: netem has delay, jitter and loss, and below it is the
bottleneck, a tbf with a queue of its own. ACKs come back at once. The path is a namespace of its own, because a packet
that still waits in the sender's own queue is not sent again, and one that another machine delays is.

A line of JSON a session goes to /run/out/NAME.sessions.jsonl as it ends. A system call is what costs most
in the guest, more than the packets of slow paths: buffers are large, and between two looks both ends are left alone."""
from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import sys
import time

from guest.connection import SO_RCVBUFFORCE, choose
from guest.namespace import inside
from guest.offloads import switch_off
from guest.play import OUT
from guest.session import LOOK_S, Looks
from guest.sh import batch, run, write

SERVER, CLIENT = "10.30.0.1", "10.30.0.2"
MACS = {"s0": "02:00:00:00:30:01", "c0": "02:00:00:00:30:02"}
PIECE_BYTES = 8 << 20
RCVBUF_BYTES = 64 << 20  # half of it is window: twice the largest path's product and its queue
SNDBUF_BYTES = 64 << 20  # the sender is seldom woken: a system call is what costs most in the guest
DRAIN_S = 5.0  # until the queue holds nothing of the session before
SO_SNDBUFFORCE = 32
TBF_BURST_BYTES = 2000  # a packet: what leaves is spaced by the rate
NETEM_LIMIT = 1_000_000  # more than any path holds: netem is no queue here


def build() -> None:
    """The three namespaces; conditions come with each session."""
    batch("ip", ["netns add server", "netns add path", "netns add client"])
    batch("ip", ["link add s1 type veth peer name s0 netns server", "link add c1 type veth peer name c0 netns client",
                 "link add br0 type bridge", "link set s1 master br0 up", "link set c1 master br0 up",
                 "link set br0 up"], "path")
    for ns, port, mine, other, peer in (("server", "s0", SERVER, CLIENT, "c0"), ("client", "c0", CLIENT, SERVER, "s0")):
        batch("ip", [f"link set {port} address {MACS[port]} up", f"addr add {mine}/24 dev {port}",
                     f"neigh replace {other} lladdr {MACS[peer]} nud permanent dev {port}"], ns)
        switch_off(port, ns, ("tso", "gso", "gro"))
        with inside(ns):
            write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")  # nothing is learned from the session before
    pages = 4 * (SNDBUF_BYTES + RCVBUF_BYTES) >> 12
    # what a small machine would not give one connection
    write("/proc/sys/net/ipv4/tcp_mem", f"{pages} {pages} {pages}")
    for port in ("s1", "c1"):
        switch_off(port, "path", ("tso", "gso", "gro"))


def conditions(path: dict) -> list[str]:
    """Commands of tc that put a path on c1."""
    delay = f"delay {path['delay_ms']}ms" + (f" {path['jitter_ms']:g}ms" if path["jitter_ms"] else "")
    tbf = f"parent 1:1 handle 2: tbf rate {path['rate_mbps']}mbit burst {TBF_BURST_BYTES} limit {path['queue_bytes']}"
    lines = [f"qdisc add dev c1 root handle 1: netem {delay} loss {100 * path['loss']:g}% limit {NETEM_LIMIT}",
             f"qdisc add dev c1 {tbf}"]
    if path["queue"] == "fq_codel":
        lines.append(f"qdisc add dev c1 parent 2:1 handle 3: fq_codel target {path['target_us']}us")
    return lines


class Session:
    """One connection that always has something to send."""

    def __init__(self, cc: str, data: int):
        self.data = data
        with inside("client"):
            listener = socket.create_server((CLIENT, 0))
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF_BYTES)
        # ACKs do not depend on when the bytes are read: below this the receiver acknowledges every second segment
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, RCVBUF_BYTES // 2)
        listener.setblocking(False)
        with inside("server"):
            self.sender = socket.socket()
        choose(self.sender, cc)
        self.sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SNDBUF_BYTES)
        self.sender.setblocking(False)
        self.listener, self.receiver = listener, None
        self.looks = Looks()
        with contextlib.suppress(BlockingIOError):
            self.sender.connect(listener.getsockname())

    def write(self) -> None:
        """As much as the socket takes. An error of the connection ends the guest: no path here loses one."""
        with contextlib.suppress(BlockingIOError):
            while os.sendfile(self.sender.fileno(), self.data, 0, PIECE_BYTES) == PIECE_BYTES:
                pass

    def read(self) -> None:
        """Throw away what has come."""
        with contextlib.suppress(BlockingIOError):
            if not self.receiver:
                self.receiver, _ = self.listener.accept()
            self.receiver.recv(RCVBUF_BYTES, socket.MSG_TRUNC | socket.MSG_DONTWAIT)

    def play(self, seconds: float, rate_mbps: float) -> dict:
        """The session's figures, after so many seconds from its SYN. A path that takes no more than the socket holds
        is left alone in between.
        """
        fills = rate_mbps * 1e6 / 8 * seconds > SNDBUF_BYTES / 4
        select.select([], [self.sender], [])
        self.write()
        for _ in range(round(seconds / LOOK_S) - 1):
            time.sleep(LOOK_S)
            self.looks.look(self.sender)
            if fills:
                self.read()
                self.write()
        time.sleep(LOOK_S)
        self.looks.look(self.sender)
        return self.looks.figures(seconds)

    def end(self) -> None:
        for sock in (self.sender, self.receiver, self.listener):
            if sock:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()


def main() -> int:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    run("mount -t tmpfs lab /run/lab")
    build()
    write("/run/lab/data", "x" * PIECE_BYTES)
    data = os.open("/run/lab/data", os.O_RDONLY)
    with open(f"{OUT}/{plan['name']}.sessions.jsonl", "w") as out:
        for number, path in enumerate(plan["paths"]):
            batch("tc", ["qdisc del dev c1 root"][:number] + conditions(path), "path")
            for cc in plan["congestion_controls"]:
                session = Session(cc, data)
                figures = session.play(plan["session_s"], path["rate_mbps"])
                session.end()
                time.sleep(DRAIN_S)
                out.write(json.dumps({"path": path["name"], "cc": cc, **figures}) + "\n")
            out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
