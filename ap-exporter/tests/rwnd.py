#!/usr/bin/env python3
"""The rewrite by tc programs, from outside: real TCP through an AP of namespaces, `ap-exporter rwnd`, and captures at
the sender.

usage: tests/rwnd.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py. Needs root. Where the kernel refuses BPF
the tests are skipped, and say why.
"""

import ipaddress
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from outside import BINARY, TAGS, Allocations, Folder, run_here, sh, until
from sentences import Busy, skip_all

DELAY_MS = 20  # each way
CLIENT_PORTS = (5000, 5001)
BYTES_ON_THE_WAY = 400_000  # of a sender that nothing else holds back

# Carries frames between the ports m0 and m1 with a delay: this machine's kernel may lack netem.
WIRE = """
import heapq, select, socket, sys, time
ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2)]
for end, name in zip(ends, ("m0", "m1")):
    end.bind((name, 0))
    end.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    end.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE
    end.setblocking(False)
delay, queue, number = int(sys.argv[1]) / 1000, [], 0
print("ready", flush=True)
while True:
    now = time.monotonic()
    while queue and queue[0][0] <= now:
        _, _, out, frame = heapq.heappop(queue)
        try:
            out.send(frame)
        except OSError:
            pass
    readable = select.select(ends, [], [], max(0, queue[0][0] - time.monotonic()) if queue else 1)[0]
    for end in readable:
        try:
            while True:
                frame = end.recv(65536)
                number += 1
                heapq.heappush(queue, (time.monotonic() + delay, number, ends[end is ends[0]], frame))
        except BlockingIOError:
            pass
"""

# Frames of a port with the kernel's time, to a file: seconds, nanoseconds, length, frame.
CAPTURE = """
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
with open(sys.argv[2], "wb", buffering=0) as out:
    print("ready", flush=True)
    while True:
        frame, anc, _, _ = s.recvmsg(65536, 64)
        out.write(anc[0][2][:16] + struct.pack("<I", len(frame)) + frame)
"""

SERVER = """
import socket, sys
address, on_the_way = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, 32, on_the_way // 2)  # SO_SNDBUFFORCE: what may be on its way; the kernel doubles it
s.setsockopt(socket.IPPROTO_TCP, 13, b"cubic")
s.bind((address, 443))
s.listen()
print("ready", flush=True)
c, _ = s.accept()
try:
    while True:
        c.sendall(bytes(16384))
except OSError:
    pass
"""

CLIENT = """
import socket, sys
source, address = sys.argv[1:]
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((source, 5000))
s.connect((address, 443))
print("ready", flush=True)
while s.recv(1 << 20):
    pass
"""

SINK = """
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 443))
s.listen()
print("ready", flush=True)
c, _ = s.accept()
while c.recv(1 << 20):
    pass
"""

SOURCE = """
import socket, sys
source, address, on_the_way = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, 32, on_the_way // 2)  # SO_SNDBUFFORCE, as the server above
s.setsockopt(socket.IPPROTO_TCP, 13, b"cubic")
s.bind((source, 5000))
s.connect((address, 443))
print("ready", flush=True)
while True:
    s.sendall(bytes(16384))
"""


def python(ns: str, code: str, *args) -> subprocess.Popen:
    """A program in a namespace, once it says that it is ready."""
    process = subprocess.Popen(
        ["ip", "netns", "exec", ns, sys.executable, "-c", code, *map(str, args)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n", f"did not start: {code.strip().splitlines()[0]}"
    return process


class Air:
    """Station — AP with a bridge — wire with a delay — server. `offload`: NICs make checksums and cut segments, as far
    as veth goes."""

    def __init__(self, folder: Path, offload: bool = False):
        self.folder, self.offload, self.processes = folder, offload, []
        tag = next(TAGS)
        self.sta, self.ap, self.mid, self.far = (f"{tag}{n}" for n in ("sta", "ap", "mid", "far"))

    def __enter__(self) -> "Air":
        try:
            for ns in (self.sta, self.ap, self.mid, self.far):
                sh(f"ip netns add {ns}")
                sh("ip link set lo up", ns)
            sh("ip link add br0 type bridge", self.ap)
            sh("ip link set br0 up", self.ap)
            self.plug_station()
            self.join(self.ap, "lan0", self.mid, "m0")
            self.join(self.mid, "m1", self.far, "eth0")
            sh("ip link set lan0 master br0", self.ap)
            sh("ip addr add 10.96.0.2/24 dev eth0", self.far)
            sh("ip addr add fd96::2/64 dev eth0 nodad", self.far)
            self.processes.append(python(self.mid, WIRE, DELAY_MS))
        except BaseException:
            self.__exit__()
            raise
        return self

    def join(self, ns: str, port: str, other: str, its: str, offload: bool = False) -> None:
        sh(f"ip link add {port} netns {ns} type veth peer name {its} netns {other}")
        for where, name in ((ns, port), (other, its)):
            # What leaves the AP's wired port is whole: segments of one frame, with their checksums.
            sh(
                f"ethtool -K {name} "
                + " ".join(f"{what} {'on' if offload else 'off'}" for what in ("tx", "rx", "tso", "gso", "gro")),
                where,
            )
            sh(f"ip link set {name} up", where)

    def plug_station(self) -> None:
        self.join(self.ap, "wifi0", self.sta, "eth0", self.offload)
        sh("ip link set wifi0 master br0", self.ap)
        sh("ip addr add 10.96.0.1/24 dev eth0", self.sta)
        sh("ip addr add fd96::1/64 dev eth0 nodad", self.sta)

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
            process.stdout.close()
        for ns in (self.sta, self.ap, self.mid, self.far):
            sh(f"ip netns del {ns}", check=False)

    def capture(self, ns: str, port: str) -> "Capture":
        path = self.folder / f"{ns}-{port}"
        self.processes.append(python(ns, CAPTURE, port, path))
        return Capture(path)

    def flow(self, v6: bool = False) -> tuple[str, str]:
        """A transfer from the server to the station that goes on until the end; both ends as `ap-exporter rwnd` wants
        them."""
        client, server = ("fd96::1", "fd96::2") if v6 else ("10.96.0.1", "10.96.0.2")
        self.processes.append(python(self.far, SERVER, server, BYTES_ON_THE_WAY))
        self.processes.append(python(self.sta, CLIENT, client, server))
        return tuple(f"[{a}]:{p}" if v6 else f"{a}:{p}" for a, p in ((client, 5000), (server, 443)))

    def upload(self) -> tuple[str, str]:
        """A transfer from the station to the server that goes on until the end; both ends."""
        self.processes.append(python(self.far, SINK, "10.96.0.2"))
        self.processes.append(python(self.sta, SOURCE, "10.96.0.1", "10.96.0.2", BYTES_ON_THE_WAY))
        return "10.96.0.1:5000", "10.96.0.2:443"

    def filters(self, hook: str = "ingress") -> str:
        return sh(f"tc filter show dev wifi0 {hook}", self.ap)


class Hand:
    """`ap-exporter rwnd` on the AP's Wi-Fi port."""

    def __init__(self, air: Air, *options: str, env: dict | None = None):
        self.env = env
        self.command = [
            "ip",
            "netns",
            "exec",
            air.ap,
            str(BINARY),
            "rwnd",
            "--backend",
            "bpf",
            "--interface",
            "wifi0",
            "--kill-file",
            str(air.folder / "kill"),
            *options,
        ]

    def __enter__(self) -> "Hand":
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(self.env or {})},
        )
        self.backend = json.loads(self.process.stdout.readline())["backend"]
        self.lock = threading.Lock()
        return self

    def ask(self, line: str) -> dict:
        with self.lock:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def stats(self) -> dict:
        return self.ask("stats")["stats"]

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.stdin.close()  # its end is the end of the session
            self.process.wait(20)
        self.process.stdout.close()


class Held:
    """A clamp that is set again and again until the end of the block. Without `scale` the backend's own knowledge
    counts. A set that came so late that the clamp may have ended by its time makes the test Busy."""

    TTL_S = 1.0

    def __init__(self, hand: Hand, ends: tuple[str, str], size: int, scale: int | None = None):
        self.hand, self.over, self.errors = hand, threading.Event(), []
        self.asked = self.longest = 0.0  # when it was last set; the longest time between two sets
        self.line = f"set {ends[0]} {ends[1]} {size} {self.TTL_S * 1000:.0f}" + (""
                                                                                 if scale is None else f" {scale} 1448")

    def __enter__(self) -> dict:
        self.asked = time.monotonic()
        first = self.hand.ask(self.line)
        assert first["ok"], first
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        return first

    def work(self) -> None:
        while not self.over.wait(0.2):
            asked = time.monotonic()
            answer = self.hand.ask(self.line)
            self.longest = max(self.longest, time.monotonic() - self.asked)
            self.asked = asked
            if not answer["ok"]:
                self.errors.append(answer)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.longest = max(self.longest, time.monotonic() - self.asked)
        if self.longest >= self.TTL_S:
            raise Busy(f"{self.longest:.1f} s between two sets")
        assert not self.errors, self.errors


class Packet:
    """A TCP packet of a capture."""

    def __init__(self, t: float, frame: bytes):
        self.t = t
        v6 = frame[12:14] == b"\x86\xdd"
        self.ecn = frame[15] >> (4 if v6 else 0) & 3
        at = 54 if v6 else 14 + (frame[14] & 15) * 4
        total = 40 + int.from_bytes(frame[18:20]) if v6 else int.from_bytes(frame[16:18])
        tcp = frame[at:14 + total]
        addresses = frame[22:54] if v6 else frame[26:34]
        words = addresses + struct.pack(">II", len(tcp), 6) + tcp + bytes(len(tcp) % 2)
        total = sum(struct.unpack(f">{len(words) // 2}H", words))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        self.checksum_right = total == 0xFFFF
        self.port, _, self.seq, self.ack, offset, self.flags, self.window = struct.unpack(">HHIIBBH", tcp[:16])
        self.payload = len(tcp) - (offset >> 4) * 4
        self.options = tcp[20:(offset >> 4) * 4]
        self.source = str(ipaddress.ip_address(addresses[:len(addresses) // 2]))
        self.up, self.syn, self.rst = self.port in CLIENT_PORTS, bool(self.flags & 2), bool(self.flags & 4)

    def scale(self) -> int:
        at = 0
        while at < len(self.options) and self.options[at]:
            if self.options[at] == 3:
                return self.options[at + 2]
            at += 1 if self.options[at] == 1 else self.options[at + 1]
        return 0


class Capture:
    """What a port saw of TCP. Its file is read on from where it was read to: tests ask for its packets all the time."""

    def __init__(self, path: Path):
        self.path, self.rest, self.found = path, b"", []
        self.file = open(path, "rb")

    def packets(self) -> list[Packet]:
        data, at = self.rest + self.file.read(), 0
        while at + 20 <= len(data):
            seconds, ns, size = struct.unpack("<qqI", data[at:at + 20])
            if at + 20 + size > len(data):
                break
            frame = data[at + 20:at + 20 + size]
            at += 20 + size
            if frame[12:14] == b"\x88\x64" and frame[20:22] == b"\x00\x21":  # IPv4 in a session of PPPoE
                frame = frame[:12] + b"\x08\x00" + frame[22:]
            if frame[12:14] == b"\x08\x00" and frame[23] == 6 or frame[12:14] == b"\x86\xdd" and frame[20] == 6:
                self.found.append(Packet(seconds + ns / 1e9, frame))
        self.rest = data[at:]
        return self.found.copy()

    def scale(self) -> int:
        """What the client's SYN offers, once it has come by."""
        return until(lambda: next((p for p in self.packets() if p.up and p.syn), None), "a SYN").scale()

    def ups(self) -> list[Packet]:
        """Packets of the client, without SYN and RST."""
        return [p for p in self.packets() if p.up and not p.syn and not p.rst]

    def newer(self, packets: int) -> list[Packet]:
        """The client's packets from now on: this many at least."""
        before = len(self.ups())
        return until(
            lambda: len(now := self.ups()) >= before + packets and now, f"{packets} more packets of the client"
        )[before:]


def in_flight(packets: list[Packet], since: float) -> list[tuple[float, int]]:
    """Times after `since` at which the bytes on their way changed, and how many there were from then on."""
    acked = sent = None
    flights = []
    for p in packets:
        if p.up and p.flags & 16 and (acked is None or (p.ack - acked) % 2**32 < 2**31):
            acked = p.ack
        elif not p.up and p.payload:
            end = (p.seq + p.payload) % 2**32
            sent = end if sent is None or (end - sent) % 2**32 < 2**31 else sent
        if p.t > since and acked is not None and sent is not None:
            flights.append((p.t, (sent - acked) % 2**32))
    return flights


def clamped_transfer(v6: bool, offload: bool) -> None:
    with Folder() as folder, Air(folder, offload) as air, Hand(air) as hand:
        sender = air.capture(air.far, "eth0")
        ends = air.flow(v6)
        plain = max(p.window for p in sender.newer(50))
        scale = sender.scale()
        for size in (65536, 24000, 12000):
            assert plain << scale > size
            with Held(hand, ends, size):
                settled = until(
                    lambda: (now := sender.ups()) and now[-1].window << scale <= size and now[-1].t,
                    "a lowered window arrives",
                )
                # Segments that were under way before the window went down may still be, until they are acknowledged.
                steady = until(
                    lambda: next((t for t, n in in_flight(sender.packets(), settled) if n <= size), None),
                    "what was under way is acknowledged",
                )
                packets = until(
                    lambda: (now := sender.packets())[-1].t > steady + 30 * DELAY_MS / 1000
                    and len(in_flight(now, steady)) > 100
                    and now,
                    "fifteen round trips and a hundred changes under the lowered window",
                )
                ups = [p for p in packets if p.up and not p.syn and not p.rst and p.t > settled]
            assert all(p.window == size >> scale for p in ups), {p.window << scale for p in ups}
            flights = in_flight(packets, steady)
            assert max(n for _, n in flights) <= size, (size, max(n for _, n in flights))
            span = flights[-1][0] - flights[0][0]
            mean = sum(n * (later - t) for (t, n), (later, _) in zip(flights, flights[1:])) / span
            assert (
                mean > 0.6 * size
            ), f"{mean:.0f} bytes on their way with a window of {size}: something else limits the sender"
            rate = sum(p.payload for p in packets if not p.up and p.t > steady) / span
            most = size / (
                2 * DELAY_MS / 1000
            )  # the round trip takes this long at least; what is sent at once at both ends of the span comes on top
            assert rate < 1.2 * most, f"{rate:.0f} bytes/s, which is more than window/RTT, {most:.0f}"
        hand.ask(f"release {ends[0]} {ends[1]}")
        until(lambda: sender.ups()[-1].window << scale > 65536, "the client's own window is back")
        packets = sender.packets()
        wrong = [p for p in packets if not p.checksum_right and p.up]
        assert not wrong, f"{len(wrong)} of {len(packets)} checksums are wrong"
        stats = hand.stats()
        assert (
            stats["acks_clamped"] > 60 and stats["packets"]["failed"] == 0 and stats["packets"]["unknown_scale"] == 0
        ), stats
        assert stats["acks_seen"] == stats["acks_clamped"] + stats["acks_skipped"], stats


def t_ipv4():
    """IPv4: at the sender windows are as set, checksums right, no more than the window under way, and hardly less, so
    the rate is window/RTT"""
    clamped_transfer(v6=False, offload=False)


def t_upload():
    """an upload: the server's ACKs reach the station lowered in the server's scale, which the program learned from its
    SYN-ACK, with right checksums; the client's own pass; released, the server's window is back"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        station, far = air.capture(air.sta, "eth0"), air.capture(air.far, "eth0")
        ends = air.upload()

        def downs() -> list[Packet]:
            return [p for p in station.packets() if not p.up and not p.syn and not p.rst]

        until(lambda: len(downs()) > 50, "ACKs of the server")
        scale = next(p for p in station.packets() if not p.up and p.syn).scale()
        assert max(p.window for p in downs()) << scale > 24000
        assert hand.ask(f"set {ends[0]} {ends[1]} 24000 1000 down")["ok"]
        lowered = until(lambda: [p for p in downs() if p.window == 24000 >> scale], "a lowered window arrives")
        assert all(p.checksum_right for p in lowered)
        until(lambda: hand.stats()["down"]["acks_clamped"] > 5, "they are counted as of the way down")
        hand.ask(f"release {ends[0]} {ends[1]} down")
        until(lambda: downs()[-1].window << scale > 24000, "the server's own window is back")
        stats = hand.stats()
        assert stats["up"]["acks_seen"] == 0 and stats["down"]["clamps"] == 0, stats
        ups = {p.window for p in far.ups()}
        assert ups and ups <= {p.window for p in station.ups()}, "the client's windows are its own"


def t_ipv6():
    """IPv6: the same"""
    clamped_transfer(v6=True, offload=False)


def t_offload():
    """with checksum and segmentation offload and GRO on the Wi-Fi side: the same, with checksums that the AP's wired
    port makes"""
    clamped_transfer(v6=False, offload=True)


def t_offload_ipv6():
    """IPv6 with offload: the same"""
    clamped_transfer(v6=True, offload=True)


def kill_clamped(hand: Hand, line: str, at_ap: Capture, scale: int, most_s: float) -> None:
    """Kills the exporter just after `line` set a window of 12000 bytes, which `at_ap` saw before; it must not leave
    the AP later than `most_s` after that."""
    last = hand.ask(line)
    hand.process.send_signal(signal.SIGKILL)
    hand.process.wait()
    until(lambda: at_ap.ups()[-1].window << scale > 12000, "the client's own window is back")
    assert not [p for p in at_ap.newer(50) if p.window << scale <= 12000]
    late = max(p.t for p in at_ap.ups() if p.window << scale <= 12000) - last["t_us"] / 1e6
    assert late <= most_s, f"a lowered window left {late:.3f} s after the last set"


def t_killed():
    """killed while it clamps: no lowered window leaves the AP after the deadline, and the next exporter takes the port
    over"""
    with Folder() as folder, Air(folder) as air:
        at_ap = air.capture(air.ap, "lan0")
        with Hand(air) as hand:
            ends = air.flow()
            at_ap.newer(20)
            scale, line = at_ap.scale(), f"set {ends[0]} {ends[1]} 12000 1000"
            with Held(hand, ends, 12000):  # fifty packets may take longer than one set lasts
                until(lambda: at_ap.ups()[-1].window << scale <= 12000, "windows are lowered")
                assert all(p.window << scale <= 12000 for p in at_ap.newer(50))
            kill_clamped(hand, line, at_ap, scale, 1.0)
        assert "rwnd_up" in air.filters()  # what it left behind
        with Hand(air):
            assert air.filters().count("handle 0xa1") == 1, air.filters()
        assert "rwnd" not in air.filters() + air.filters("egress")


def t_other_filters_stay():
    """filters of others on the port stay as they are, before and after ours; ours end with the session"""
    with Folder() as folder, Air(folder) as air:
        sh("tc qdisc add dev wifi0 clsact", air.ap)
        for pref in (5, 50):
            sh(f"tc filter add dev wifi0 ingress pref {pref} u32 match u32 0 0", air.ap)
        before = air.filters()
        with Hand(air):
            lines = [line for line in air.filters().splitlines() if "fh 8" not in line or "rwnd" in line]
            assert any("pref 11 " in line and "rwnd_up" in line for line in lines), lines
        assert air.filters() == before


def t_port_goes_and_comes():
    """a Wi-Fi port that goes is said to be away, and the programs are on it again when it is back"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        assert hand.stats()["ready"]
        sh("ip link del wifi0", air.ap)
        until(lambda: not hand.stats()["ready"], "the port is away")
        assert "away" in hand.ask("set 10.96.0.1:5000 10.96.0.2:443 20000 1000")["error"]
        air.plug_station()
        until(lambda: hand.stats()["ready"], "the port is back")
        assert "rwnd_up" in air.filters() and "rwnd_down" in air.filters("egress")
        sender = air.capture(air.far, "eth0")
        ends = air.flow()
        with Held(hand, ends, 12000):
            until(lambda: hand.stats()["acks_clamped"] > 20, "windows are lowered again")
        sh("tc qdisc del dev wifi0 clsact", air.ap)  # somebody takes the filters away
        until(lambda: "rwnd_up" in air.filters(), "they are put back")
        assert sender.packets()


def t_two_exporters():
    """a second exporter on a port takes it over; the first says so, and goes on when the second ends"""
    with Folder() as folder, Air(folder) as air, Hand(air) as first:
        with Hand(air) as second:
            until(lambda: not first.stats()["ready"], "the first lost the port")
            assert "another ap-exporter" in first.stats()["last_error"] and second.stats()["ready"]
        until(lambda: first.stats()["ready"], "the first has it again")
        assert air.filters().count("handle 0xa1") == 1


def t_ingress_qdisc():
    """on a port whose old ingress qdisc is somebody else's, windows are lowered; SYN-ACKs are not heard, and the
    status says so"""
    with Folder() as folder, Air(folder) as air:
        sh("tc qdisc add dev wifi0 ingress", air.ap, check=False)
        assert "ingress" in sh("tc qdisc show dev wifi0", air.ap)
        with Hand(air) as hand:
            assert hand.stats()["ports"][0] == {"interface": "wifi0", "attached": True, "syn_acks": False, "losses": 0}
            ends = air.flow()
            until(lambda: hand.stats()["packets"]["no_clamp"] > 20, "ACKs go by")
            assert hand.ask(f"set {ends[0]} {ends[1]} 12000 1000")["ok"]  # the scale of an offer alone is not sure
            until(lambda: hand.stats()["packets"]["unknown_scale"] > 5, "they are left alone")


def t_kill_file():
    """while the kill file exists nothing is clamped, and a set says so; without it clamps are taken again"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        ends = air.flow()
        until(lambda: hand.stats()["packets"]["no_clamp"] > 20, "ACKs go by")
        hand.ask(f"set {ends[0]} {ends[1]} 12000 1000")
        until(lambda: hand.stats()["acks_clamped"] > 0, "they are clamped")
        (folder / "kill").touch()
        until(lambda: hand.stats()["clamps"] == 0, "the clamp is released")
        answer = hand.ask(f"set {ends[0]} {ends[1]} 12000 1000")
        assert not answer["ok"] and "kill" in answer["error"]
        clamped = hand.stats()["acks_clamped"]
        free = hand.stats()["packets"]["no_clamp"]
        until(lambda: hand.stats()["packets"]["no_clamp"] > free + 20, "ACKs go by")
        assert hand.stats()["acks_clamped"] == clamped
        (folder / "kill").unlink()
        until(lambda: hand.ask(f"set {ends[0]} {ends[1]} 12000 1000")["ok"], "clamps are taken again")


def t_answers():
    """each command has one answer: what was set as it came out, errors with what to do, the end at the end"""
    with Folder() as folder, Air(folder) as air, Hand(air, "--max-flows", "2") as hand:
        assert hand.backend == "bpf"
        assert hand.ask("set 10.96.0.1:1 10.96.0.2:2 1 500 7 1448")["window_raw"] == 46
        assert hand.ask("set [fd96::1]:1 [fd96::2]:2 65536 500")["bytes"] == 65536
        assert "full" in hand.ask("set 10.96.0.1:3 10.96.0.2:2 65536 500")["error"]
        assert hand.ask("release all")["ok"] and hand.stats()["clamps"] == 0
        for bad in ("foo", "set 10.96.0.1:1 10.96.0.2:2 1 500 15", "set 10.96.0.1:1 10.96.0.2:2 1 2000", "x" * 2000):
            answer = hand.ask(bad)
            assert not answer["ok"] and answer["error"], (bad, answer)
        assert hand.ask("sleep 30")["ok"] and hand.ask("quit")["ok"]
        assert hand.process.wait(20) == 0


def t_no_allocation():
    """setting, renewing, releasing, running out and the status allocate nothing: the daemon does them within ticks"""
    with Folder() as folder, Air(folder) as air:
        allocations = Allocations(folder)
        value = allocations.count
        with Hand(air, env=allocations.env) as hand:
            # The news of the start, its own filters among it, is looked at within a second.
            until(
                lambda: (hand.stats(), value())[1] == (hand.ask("sleep 1200"), hand.stats(), value())[2],
                "the start is over",
            )
            before = value()
            for port in range(1, 100):
                assert hand.ask(f"set 10.96.0.1:{port} 10.96.0.2:443 20000 30 7 1448")["ok"]
                assert hand.ask(f"set 10.96.0.1:{port} 10.96.0.2:443 30000 30 7 1448")["ok"]
            assert hand.ask("release 10.96.0.1:99 10.96.0.2:443")["ok"] and hand.ask("sleep 100")["ok"]
            assert hand.stats()["expired"] > 50
            assert value() == before, f"{value() - before} allocations"


def refusal(command: list[str]) -> str:
    """What an exporter says that does not start; empty: it did."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)
    return done.stderr.strip() if done.returncode else ""


def t_missing_port():
    """a backend that cannot work says what to do: no port named, a section missing, a backend that is none"""
    rwnd = [str(BINARY), "rwnd"]
    assert "option 'interface'" in refusal([*rwnd, "--backend", "bpf"])
    assert "rwnd" in refusal([*rwnd, "--backend", "foo", "--interface", "wifi0"])
    assert "at most" in refusal([*rwnd, "--backend", "bpf", "--interface", ",".join(f"wifi{i}" for i in range(20))])
    with Folder() as folder:
        (folder / "config").write_text(
            f"config exporter\n option ap_id a1\nconfig qdisc\n option interface lo\nconfig file\n option "
            f"path {folder}/c\n"
        )
        assert "no section 'rwnd'" in refusal([*rwnd, "-c", str(folder / "config")])


def bpf_refused() -> str:
    """Why the kernel takes no tc programs, or nothing."""
    with Folder() as folder, Air(folder) as air:
        return refusal(Hand(air).command)


if __name__ == "__main__":
    if os.geteuid() == 0 and (why := bpf_refused()):
        if "kernel refuses" not in why:
            sys.exit(f"# {why}\nnot ok the kernel says why it takes no tc programs\n# 0 passed, 1 failed")
        sys.exit(skip_all(why))
    sys.exit(run_here(globals()))
