#!/usr/bin/env python3
"""Marks by tc programs, from outside: real packets through an AP of namespaces, `ap-exporter mark`, and what a station
receives of them.

usage: tests/mark.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py. Needs root. Where the kernel refuses BPF the
tests are skipped, and say why.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from outside import BINARY, Folder, run_here, sh, until
from rwnd import Air, python, refusal
from sentences import skip_all

NOT_ECT, ECT1, ECT0, CE = range(4)
NAMES = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")

# Sends a datagram with the ECN field and to the address of each line of its input; its payload is the line.
SENDER = """
import socket, sys
sockets = {4: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 6: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)}
print("ready", flush=True)
for line in sys.stdin:
    address, port, ecn, number = line.split()
    v6 = ":" in address
    s = sockets[6 if v6 else 4]
    s.setsockopt(socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP, 67 if v6 else 1, int(ecn))  # TCLASS, TOS
    s.sendto(number.encode(), (address, int(port)))
"""

# Prints the number and the ECN field of each datagram.
RECEIVER = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, 26, 0)  # V6ONLY
s.setsockopt(socket.IPPROTO_IPV6, 66, 1)  # RECVTCLASS
s.setsockopt(socket.IPPROTO_IP, 13, 1)  # RECVTOS
s.bind(("::", 5000))
print("ready", flush=True)
while True:
    data, anc, _, _ = s.recvmsg(2048, 256)
    print(data.decode(), next(value[0] & 3 for _, kind, value in anc if kind in (1, 67)), flush=True)
"""

# TCP with ECN to the station, for as long as it lives; says now and then how many segments the receiver saw with CE.
TCP_SERVER = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 443))
s.listen()
print("ready", flush=True)
c, _ = s.accept()
while True:
    c.sendall(bytes(65536))
    info = c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    print(struct.unpack_from("<I", info, 196)[0], flush=True)  # delivered_ce
    time.sleep(0.01)
"""

TCP_CLIENT = """
import socket, sys
s = socket.create_connection((sys.argv[1], 443))
print("ready", flush=True)
while s.recv(1 << 20):
    pass
"""


class Hand:
    """`ap-exporter mark` on the AP's Wi-Fi port."""

    def __init__(self, air: Air):
        self.lock = threading.Lock()
        self.command = [
            "ip", "netns", "exec", air.ap, str(BINARY), "mark", "--backend", "bpf", "--interface", "wifi0",
            "--kill-file", str(air.folder / "kill")
        ]

    def __enter__(self) -> "Hand":
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert json.loads(self.process.stdout.readline())["stats"]["ready"]
        return self

    def ask(self, line: str) -> dict:
        with self.lock:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def packets(self) -> dict:
        return self.ask("stats")["stats"]["packets"]

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.stdin.close()  # its end is the end of the session
            self.process.wait(20)
        self.process.stdout.close()


class Datagrams:
    """From the server to the station, and what arrives of them."""

    def __init__(self, air: Air):
        self.receiver = python(air.sta, RECEIVER)
        self.sender = subprocess.Popen(
            ["ip", "netns", "exec", air.far, sys.executable, "-c", SENDER], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True
        )
        assert self.sender.stdout.readline() == "ready\n"
        air.processes += [self.receiver, self.sender]
        self.number = 0

    def through(self, ecn: int, v6: bool = False) -> int:
        """The ECN field that a datagram arrives with."""
        self.number += 1
        address = "fd96::1" if v6 else "10.96.0.1"
        self.sender.stdin.write(f"{address} 5000 {ecn} {self.number}\n")
        self.sender.stdin.flush()
        number, came = self.receiver.stdout.readline().split()
        assert int(number) == self.number, f"datagram {number} came for {self.number}"
        return int(came)


def mac_of(air: Air) -> str:
    return sh("cat /sys/class/net/eth0/address", air.sta).strip()


def set_line(air: Air, marks: int, ttl_ms: int = 1000, *interval: int) -> str:
    return " ".join(map(str, ("set", mac_of(air), marks, ttl_ms, *interval)))


def t_datagrams():
    """of datagrams to a marked station those with ECT(1) arrive with CE, over IPv4 and IPv6; Not-ECT and CE as they
    were; before and after, all as they were"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        datagrams = Datagrams(air)
        for v6 in (False, True):
            for ecn in range(4):
                assert datagrams.through(ecn, v6) == ecn, f"{NAMES[ecn]} was changed before anything was asked"
            line = set_line(air, 1)
            for ecn in range(4):
                assert hand.ask(line)["ok"]
                want = CE if ecn == ECT1 else ecn
                came = datagrams.through(ecn, v6)
                assert came == want, f"{NAMES[ecn]} over {'IPv6' if v6 else 'IPv4'} came as {NAMES[came]}"
            assert hand.ask("release all")["ok"]
            for ecn in range(4):
                assert datagrams.through(ecn, v6) == ecn, f"{NAMES[ecn]} was changed after the release"
        seen = hand.packets()
        assert (seen["marked_ect1"], seen["failed"], seen["replaced"]) == (2, 0, 0), seen


def spaced(air: Air, hand: Hand) -> None:
    """Datagrams with ECT(0) while marks of them are set again and again."""
    datagrams = Datagrams(air)
    line = set_line(air, 2, 1000, 400_000)
    assert datagrams.through(ECT0) == ECT0  # who is where has been asked by now
    assert hand.ask(line)["ok"]
    first = 0.0

    def marked_at_once() -> bool:
        nonlocal first
        first = time.monotonic()  # no later than the mark
        return datagrams.through(ECT0) == CE

    until(marked_at_once, "the first is marked")
    if datagrams.through(ECT0) == CE and time.monotonic() - first < 0.35:
        raise AssertionError("marked twice within an interval")
    sent = marked = 0
    while marked < 12:
        assert hand.ask(line)["ok"]
        marked += datagrams.through(ECT0) == CE
        sent += 1
        assert sent < 5000, f"{marked} marks of {sent} datagrams"
    assert sent > 3 * marked, f"{marked} marks of {sent} datagrams: not spaced"
    assert datagrams.through(ECT1) == ECT1, "ECT(1) was marked, which nobody asked for"


def t_spaced():
    """datagrams with ECT(0) are marked now and then, the first at once, and more often the longer it lasts"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        spaced(air, hand)


def marks_end(air: Air, hand: Hand, kill_file: Path) -> Datagrams:
    """Marks end by their time, with the kill file, and within a second of the agent's death, which is dead then."""
    datagrams = Datagrams(air)
    asked = time.monotonic()
    assert hand.ask(set_line(air, 1, 300))["ok"]
    assert datagrams.through(ECT1) == CE
    until(lambda: datagrams.through(ECT1) == ECT1, "the marks end")
    assert time.monotonic() - asked >= 0.3, "marks ended before their time"
    assert hand.ask(set_line(air, 1))["ok"] and datagrams.through(ECT1) == CE
    kill_file.touch()
    until(lambda: hand.ask("stats")["killed"], "the kill file is seen")
    assert datagrams.through(ECT1) == ECT1, "marked in spite of the kill file"
    assert not hand.ask(set_line(air, 1))["ok"]
    kill_file.unlink()
    until(lambda: not hand.ask("stats")["killed"], "the kill file is gone")
    assert hand.ask(set_line(air, 1))["ok"] and datagrams.through(ECT1) == CE
    died = time.monotonic()
    hand.process.kill()
    hand.process.wait()
    while datagrams.through(ECT1) == CE:
        assert time.monotonic() - died < 1.5, "marks outlive the agent by more than a second"
    return datagrams


def t_ends():
    """marks end by their time to live while the agent does nothing, with the kill file, and within a second of the
    agent's death"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        datagrams = marks_end(air, hand, folder / "kill")
        assert "mark_down" in sh("tc filter show dev wifi0 egress", air.ap), "it was killed: its program stays"
        with Hand(air):  # the next one replaces what it left
            assert datagrams.through(ECT1) == ECT1
        assert "mark" not in sh("tc filter show dev wifi0 egress", air.ap)


def t_tcp():
    """a TCP sender that speaks ECN hears of the marks, over IPv4 and IPv6, with offloads"""
    for server in ("10.96.0.2", "fd96::2"):
        with Folder() as folder, Air(folder, offload=True) as air, Hand(air) as hand:
            for ns in (air.far, air.sta):
                sh("sysctl -qw net.ipv4.tcp_ecn=1", ns)
            sending = python(air.far, TCP_SERVER, server)
            air.processes += [sending, python(air.sta, TCP_CLIENT, server)]
            heard = int(sending.stdout.readline())
            assert heard == 0, f"{heard} segments with CE before anything was asked"
            line, began = set_line(air, 2, 1000, 20_000), time.monotonic()
            while not heard:
                assert hand.ask(line)["ok"]
                heard = int(sending.stdout.readline())
                assert time.monotonic() - began < 20, f"the sender heard of none: {hand.packets()}"
            assert hand.packets()["marked_ect0"] > 0


def t_other_stations():
    """packets to another station, to a group and up from the station are left as they are"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        datagrams = Datagrams(air)
        assert hand.ask("set 02:00:00:00:00:77 3 1000")["ok"]
        assert datagrams.through(ECT1) == ECT1
        assert not hand.ask("set 01:00:5e:00:00:01 1 1000")["ok"], "a group was taken"
        assert not hand.ask("set ff:ff:ff:ff:ff:ff 1 1000")["ok"], "all were taken"
        seen = hand.packets()
        assert not any(seen.values()), seen


def t_commands():
    """what is no command is refused with what there is, and changes nothing"""
    with Folder() as folder, Air(folder) as air, Hand(air) as hand:
        for line in ("mark", "set", "set 02:00:00:00:00:01", "set 02:00:00:00:00:01 4 1000",
                     "set 02:00:00:00:00:01 1 1001", "set 02:00:00:00:00:01 2 1000 4999", "set x 1 1000",
                     "set 02:00:00:00:00:01 1 1000 1 1", "release", "release x", "stats now"):
            answer = hand.ask(line)
            assert not answer["ok"] and answer["error"], (line, answer)
        assert hand.ask("stats")["stats"]["stations"] == 0


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
