#!/usr/bin/env python3
"""Congestion controls of a host's connections, from outside: `oal-host congestion` on a cgroup of its own, and real
connections between namespaces.

usage: tests/congestion.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py; BINARY is build/host/oal-host. Needs
root, and a kernel with cgroup2, BTF, and struct_ops by links (Linux 6.4). Elsewhere the tests are skipped, and say why.
"""

import atexit
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from outside import TAGS, run_here, sh, until
from sentences import skip_all

BINARY = Path(__file__).resolve().parent.parent / "build/host/oal-host"


def cgroups() -> list[Path]:
    """Where cgroup2 is mounted; a place of ours if nowhere, which is taken off at the end."""
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = [Path(line[1]) for line in lines if line[2] == "cgroup2"]
    if found or os.geteuid():
        return found
    place = tempfile.mkdtemp(prefix="oal-cgroup-")
    if subprocess.run(["mount", "-t", "cgroup2", "none", place], capture_output=True).returncode:
        os.rmdir(place)
        return []
    atexit.register(lambda: (subprocess.run(["umount", place], check=False), os.rmdir(place)))
    return [Path(place)]


CGROUPS = cgroups()
MODEL = struct.Struct("=Q16q2I2I")  # struct oal_lc_model of policies/loss-cause/ca.h
#: No fit: whatever the round trip, a loss is one of the air; no limit of windows kept one after the other.
ALWAYS_AIR = MODEL.pack(0, 0, 0, 0, 0, 1, 1 << 16, 0, 0, 0, 0, 0, 0, 0, 1 << 28, 0, 0, 2, 1, 255, 0).hex()

#: The same with a shift that no product may have.
TOO_FAR = MODEL.pack(0, -(1 << 63), *MODEL.unpack(bytes.fromhex(ALWAYS_AIR))[2:]).hex()

# The host: listens, accepts connections, sends without end to those that ask for it; connects where it is told to.
# Answers each line with the congestion control of a connection, or what it has sent.
HOST = """
import socket, sys, threading
def control(s):
    return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\\0")[0].decode()
listeners, accepted, sent = {}, [], {}
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, 26, 1)
    s.bind((address, 5201))
    s.listen()
    listeners[family] = s
def push(n, s):
    while True:
        sent[n] = sent.get(n, 0) + s.send(bytes(65536))
print("ready", flush=True)
for line in sys.stdin:
    verb, *words = line.split()
    if verb == "accept":
        s, _ = listeners[socket.AF_INET6 if words[0] == "6" else socket.AF_INET].accept()
        accepted.append(s)
        print(control(s), flush=True)
    elif verb == "connect":
        s = socket.create_connection((words[0], 5202), 20)
        accepted.append(s)
        print(control(s), flush=True)
    elif verb == "push":
        n = int(words[0]) if words else len(accepted) - 1
        threading.Thread(target=push, args=(n, accepted[n]), daemon=True).start()
        print(n, flush=True)
    elif verb == "sent":
        print(sent.get(int(words[0]), 0), flush=True)
    elif verb == "control":
        print(control(accepted[int(words[0])]), flush=True)
"""

# The peer: a listener that takes and drops what comes, and connections that do.
PEER = """
import socket, sys, threading
def drain(s):
    try:
        while s.recv(1 << 20):
            pass
    except OSError:
        pass
l = socket.socket(socket.AF_INET6)
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.setsockopt(socket.IPPROTO_IPV6, 26, 0)
l.bind(("::", 5202))
l.listen()
def take():
    while True:
        s, _ = l.accept()
        threading.Thread(target=drain, args=(s,), daemon=True).start()
threading.Thread(target=take, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    s = socket.create_connection((line.strip(), 5201), 20)
    threading.Thread(target=drain, args=(s,), daemon=True).start()
"""


class Scene:
    """A host and a peer in namespaces, the host's process in a cgroup of its own; and `oal-host congestion` on that."""

    def __init__(self):
        self.lock = open(Path(tempfile.gettempdir()) / "oal-congestion-tests.lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)  # of oal_lc a kernel has one
        self.host_ns, self.peer_ns = next(TAGS), next(TAGS)
        self.cgroup = CGROUPS[0] / self.host_ns
        self.processes: list[subprocess.Popen] = []
        self.agent: subprocess.Popen | None = None

    def __enter__(self) -> "Scene":
        self.cgroup.mkdir()
        for ns in (self.host_ns, self.peer_ns):
            sh(f"ip netns add {ns}")
            sh("ip link set lo up", ns)
        sh(f"ip link add eth0 netns {self.host_ns} type veth peer name eth0 netns {self.peer_ns}")
        for ns, n in ((self.host_ns, 1), (self.peer_ns, 2)):
            for address in (f"10.97.0.{n}/24", f"fd97::{n}/64 nodad", f"10.98.0.{n}/24"):
                sh(f"ip addr add {address} dev eth0", ns)
            sh("ip link set eth0 up", ns)
        self.host, self.peer = self.python(self.host_ns, HOST, self.cgroup), self.python(self.peer_ns, PEER)
        self.default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
        self.other = next(name for name in ("reno", "cubic") if name != self.default)
        self.start()
        return self

    def python(self, ns: str, program: str, cgroup: Path | None = None) -> subprocess.Popen:
        into = (lambda: (cgroup / "cgroup.procs").write_text("0")) if cgroup else None
        process = subprocess.Popen(["ip", "netns", "exec", ns, sys.executable, "-c", program], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, preexec_fn=into)
        self.processes.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    def start(self) -> None:
        self.agent = subprocess.Popen([BINARY, "congestion", str(self.cgroup)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(self.agent)
        first = self.agent.stdout.readline()
        assert first and json.loads(first)["ok"], self.agent.stderr.read()

    def ask(self, line: str, ok: bool = True) -> dict:
        self.agent.stdin.write(line + "\n")
        self.agent.stdin.flush()
        answer = json.loads(self.agent.stdout.readline())
        assert answer["ok"] == ok, (line, answer)
        return answer

    def stats(self) -> dict:
        return self.ask("stats")["stats"]

    def tell(self, line: str) -> str:
        self.host.stdin.write(line + "\n")
        self.host.stdin.flush()
        return self.host.stdout.readline().strip()

    def connected(self, to: str) -> str:
        """The congestion control of a connection that the host opens."""
        return self.tell(f"connect {to}")

    def accepted(self, at: str) -> str:
        """That of one that the peer opens to the host's address, which the peer has the same prefix as."""
        self.peer.stdin.write(at + "\n")
        self.peer.stdin.flush()
        return self.tell("accept 6" if ":" in at else "accept 4")

    def __exit__(self, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        for ns in (self.host_ns, self.peer_ns):
            sh(f"ip netns del {ns}", check=False)
        until(lambda: not (self.cgroup / "cgroup.procs").read_text(), "its processes are gone")
        self.cgroup.rmdir()
        self.lock.close()


def t_chosen():
    """connections that begin to a prefix have what was chosen for it, those opened and those accepted, over IPv4 and
    IPv6; others have the system's; the longest prefix counts; a release ends it"""
    with Scene() as scene:
        assert scene.connected("10.97.0.2") == scene.default
        scene.ask(f"choose 10.97.0.0/24 {scene.other} 60000")
        scene.ask(f"choose fd97::/64 {scene.other} 60000")
        for to, at in (("10.97.0.2", "10.97.0.1"), ("fd97::2", "fd97::1")):
            assert scene.connected(to) == scene.other, to
            assert scene.accepted(at) == scene.other, at
        assert scene.connected("10.98.0.2") == scene.default
        assert scene.accepted("10.98.0.1") == scene.default
        scene.ask(f"choose 10.97.0.2 {scene.default} 60000")
        assert scene.connected("10.97.0.2") == scene.default
        scene.ask("release 10.97.0.2")
        assert scene.connected("10.97.0.2") == scene.other
        scene.ask("release all")
        assert scene.connected("10.97.0.2") == scene.default and scene.connected("fd97::2") == scene.default
        seen = scene.stats()
        assert (seen["choices"], seen["connections"]["set"], seen["connections"]["failed"]) == (0, 6, 0), seen


def t_ends():
    """a choice ends by its time to live, though nobody ends it; a connection that has it keeps it"""
    with Scene() as scene:
        scene.ask(f"choose 10.97.0.0/16 {scene.other} 300")
        if scene.connected("10.97.0.2") == scene.other:  # else the machine was slower than that
            assert scene.tell("control 0") == scene.other
        until(lambda: scene.connected("10.97.0.2") == scene.default, "the choice is over")
        assert scene.stats()["connections"]["expired"] >= 1


def lossy(scene: Scene, percent: int) -> None:
    """The peer loses so much of what the host sends."""
    for rule in ("add table inet t", "add chain inet t c { type filter hook input priority 0 ; }",
                 f"add rule inet t c tcp dport 5202 numgen random mod 100 < {percent} drop"):
        sh(f"nft {rule}", scene.peer_ns)


def t_loss():
    """oal_lc keeps its window after losses where a model says that they are the air's, and lowers it where there is no
    model, or no longer one"""
    with Scene() as scene:
        lossy(scene, 2)
        scene.ask("choose 10.97.0.0/24 oal_lc 60000")
        assert scene.connected("10.97.0.2") == "oal_lc"
        scene.tell("push")
        until(lambda: scene.stats()["losses"]["no_model"] > 3, "windows are lowered without a model")
        assert scene.stats()["losses"]["kept"] == 0
        scene.ask(f"model 10.97.0.0/24 {ALWAYS_AIR} 60000")
        until(lambda: scene.stats()["losses"]["kept"] > 3, "windows are kept")
        scene.ask(f"model 10.97.0.0/24 {ALWAYS_AIR} 1")
        until(lambda: scene.stats()["losses"]["expired"] > 3, "windows are lowered once the model is over")


def t_killed():
    """killed while connections run: they go on, new ones have the system's congestion control, and the kernel has no
    oal_lc for them; the next agent registers it again"""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    with Scene() as scene:
        scene.ask("choose 10.97.0.0/24 oal_lc 60000")
        scene.ask(f"model 10.97.0.0/24 {ALWAYS_AIR} 60000")
        lossy(scene, 1)
        assert scene.connected("10.97.0.2") == "oal_lc"
        n = scene.tell("push")
        until(lambda: int(scene.tell(f"sent {n}")) > 1_000_000, "it sends")
        scene.agent.send_signal(signal.SIGKILL)
        scene.agent.wait()
        until(lambda: "oal_lc" not in available.read_text().split(), "oal_lc is no longer offered")
        assert scene.connected("10.97.0.2") == scene.default
        before = int(scene.tell(f"sent {n}"))
        until(lambda: int(scene.tell(f"sent {n}")) > before + 1_000_000, "the connection goes on")
        assert scene.tell(f"control {n}") == "oal_lc"
        scene.start()
        scene.ask("choose 10.97.0.0/24 oal_lc 60000")
        assert scene.connected("10.97.0.2") == "oal_lc"


def t_commands():
    """what is no command, prefix, model, time or congestion control is refused with what there is, and changes nothing;
    a second agent is told why it cannot"""
    with Scene() as scene:
        for line in ("choose", "choose 10.0.0.0/8 reno", "choose 10.0.0.0/8 reno 0", "choose 10.0.0.0/8 reno 60001",
                     "choose 10.0.0.1/8 reno 1000", "choose 10.0.0.0/33 reno 1000", "choose fd97::/129 reno 1000",
                     "choose 10.0.0.0/8 nothing 1000", "choose x reno 1000", "model 10.0.0.0/8 00 1000",
                     f"model 10.0.0.0/8 {'00' * MODEL.size} 1000", f"model 10.0.0.0/8 {ALWAYS_AIR}0 1000",
                     f"model 10.0.0.0/8 {TOO_FAR} 1000", "release",
                     "choose 10.0.0.0/8 reno 1000 more", "stats now"):
            assert scene.ask(line, ok=False)["error"], line
        seen = scene.stats()
        assert (seen["choices"], seen["models"]) == (0, 0), seen
        done = subprocess.run([BINARY, "congestion", str(scene.cgroup)], input="", capture_output=True, text=True)
        assert done.returncode == 1 and "another process has registered oal_lc" in done.stderr, done.stderr


def refusal() -> str:
    """Why none of this works here, or nothing."""
    if os.geteuid():
        return "needs root"
    if not CGROUPS:
        return "this kernel has no cgroup2"
    done = subprocess.run([BINARY, "congestion", str(CGROUPS[0])], input="", capture_output=True, text=True)
    return done.stderr.strip() if done.returncode and "needs Linux" in done.stderr else ""


if __name__ == "__main__":
    if why := refusal():
        sys.exit(skip_all(why))
    sys.exit(run_here(globals()))
