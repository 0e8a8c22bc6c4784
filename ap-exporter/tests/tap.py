#!/usr/bin/env python3
"""The tap at the Wi-Fi port, from outside: a station behind an AP of namespaces that masquerades, the daemon with its
agent and control, and captures at the server.

usage: tests/tap.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py. Needs root and nft. Where the kernel refuses
BPF the tests are skipped, and say why. Finds the Python of schema/requirements.txt by itself.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
VENV = subprocess.run(
    ["bash", TOP / "platform" / "setup" / "venv", TOP / "schema" / "requirements.txt"],
    stdout=subprocess.PIPE,
    text=True,
    check=True,
).stdout.strip()
if sys.prefix != VENV:
    os.execv(f"{VENV}/bin/python", [f"{VENV}/bin/python", *sys.argv])

from outside import (  # noqa: E402
    BINARY,
    TAGS,
    Allocations,
    Daemon,
    Folder,
    nothing_left,
    rights,
    run_here,
    sh,
    until,
)
from push_service import Authority, Maker, policies  # noqa: E402
from rwnd import CAPTURE, Capture, python  # noqa: E402
from sentences import skip_all  # noqa: E402

CLAMP = 30_000  # bytes: what the law `direct` of the tests' policies sets for class 3
PLAIN = 90_000  # bytes: less than what a client announces whom nobody clamps
CLIENT, SERVER = "10.96.0.1", "10.98.0.2"

SERVE = """
import socket, sys, threading

def send(c):
    c.setsockopt(socket.SOL_SOCKET, 47, 1_000_000)  # SO_MAX_PACING_RATE: bytes a second, so that the machine has rest
    try:
        while True:
            c.sendall(bytes(16384))
    except OSError:
        c.close()

s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 443))
s.listen()
print("ready", flush=True)
while True:
    threading.Thread(target=send, args=s.accept()[:1], daemon=True).start()
"""

FETCH = """
import socket, sys
source, address, port = sys.argv[1:]
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 21)  # SO_RCVBUFFORCE: it announces far more than what it is clamped to
s.bind((source, int(port)))
s.connect((address, 443))
print("ready", flush=True)
while s.recv(1 << 16):
    pass
"""

# Raw TCP segments without payload, behind VLAN tags, from a port: not every kernel has VLAN devices.
SEGMENTS = """
import socket, struct, sys
tags, v6, port, n = bytes.fromhex(sys.argv[1]), sys.argv[2] == "6", int(sys.argv[3]), int(sys.argv[4])
options = bytes.fromhex(sys.argv[5])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
mac = s.getsockname()[4]
a, b = (bytes([0xfd] + [0] * 14 + [k]) if v6 else bytes([10, 97, 0, k]) for k in (1, 2))
size = 20 + len(options)
for i in range(n):
    if v6:
        ip = struct.pack(">IHBB", 6 << 28, size, 6, 64) + a + b
    else:
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + size, i & 0xffff, 0, 64, 6, 0) + a + b
    flags = 2 if options else 16
    tcp = struct.pack(">HHIIBBHHH", port, 443, 1000 + i, 1, size // 4 << 4, flags, 1000, 0, 0)
    s.send(bytes([2, 0, 0, 0, 0, 9]) + mac + tags + (b"\\x86\\xdd" if v6 else b"\\x08\\x00") + ip + tcp + options)
"""
# MSS, SACK permitted, timestamps, NOP, scale 7: a SYN as Linux sends it, with the scale last
SYN = "020405b40402080a0000000100000000" + "01030307"


# Frames of a device on another, both ways: `dsa`, a TAP as the user port of a switch, whose frames carry MediaTek's tag
# of four bytes on the conduit; `pppoe`, a TUN as the line, whose packets are in a session of PPPoE on that port. It
# stands in for drivers that this kernel may not have (the lab's router has them); the session has been negotiated.
UPLINK = """
import fcntl, os, select, socket, struct, sys
kind, lower, upper, peer = sys.argv[1:]
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", upper.encode(), 0x1000 | (2 if kind == "dsa" else 1)))
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((lower, 0))
s.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
addresses = bytes.fromhex(peer.replace(":", "")) + s.getsockname()[4]
print("ready", flush=True)
while True:
    for ready in select.select([tun, s], [], [])[0]:
        if ready is s:
            frame = s.recv(65536)
            if kind == "dsa":
                os.write(tun, frame[:12] + frame[16:])
            elif frame[12:14] == b"\\x88\\x64" and frame[20:22] == b"\\x00\\x21":
                os.write(tun, frame[22:20 + int.from_bytes(frame[18:20])])
        else:
            sent = os.read(tun, 65536)
            if kind == "dsa":
                s.send(sent[:12] + bytes((0, 1, 0, 0)) + sent[12:])
            elif sent[0] >> 4 == 4:
                s.send(addresses + struct.pack(">HBBHHH", 0x8864, 0x11, 0, 1, len(sent) + 2, 0x21) + sent)
"""


class Home:
    """Station — AP that routes and masquerades, its Wi-Fi port in a bridge — server."""

    OUT, AT_SERVER = "wan", "eth0"  # where the AP masquerades; what the server captures

    def __init__(self, folder: Path):
        self.folder, self.processes, tag = folder, [], next(TAGS)
        self.sta, self.ap, self.far = (f"{tag}{n}" for n in ("sta", "ap", "far"))

    def __enter__(self) -> "Home":
        try:
            for ns in (self.sta, self.ap, self.far):
                sh(f"ip netns add {ns}")
                # The kernel's own multicast reports have a hop-by-hop header: the tap reads these, and tests count.
                sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1", ns)
                sh("ip link set lo up", ns)
            sh("ip link add br-lan type bridge", self.ap)
            sh("ip link set br-lan up", self.ap)
            sh("ip addr add 10.96.0.254/24 dev br-lan", self.ap)
            self.plug_station()
            self.connect()
            sh("sysctl -qw net.ipv4.ip_forward=1", self.ap)
            sh("nft add table ip nat", self.ap)
            sh("nft add chain ip nat post { type nat hook postrouting priority 100 ; }", self.ap)
            sh(f"nft add rule ip nat post oifname {self.OUT} masquerade", self.ap)
        except BaseException:
            self.__exit__()
            raise
        return self

    def connect(self) -> None:
        """The way to the server."""
        self.join("wan", self.far)
        sh("ip addr add 10.98.0.1/24 dev wan", self.ap)
        sh(f"ip addr add {SERVER}/24 dev eth0", self.far)

    def join(self, port: str, other: str) -> None:
        sh(f"ip link add {port} netns {self.ap} type veth peer name eth0 netns {other}")
        for ns, name in ((self.ap, port), (other, "eth0")):
            sh(f"ethtool -K {name} tx off rx off tso off gso off gro off", ns)
            sh(f"ip link set {name} up", ns)

    def plug_station(self) -> None:
        self.join("wifi0", self.sta)
        sh("ip link set wifi0 master br-lan", self.ap)
        sh(f"ip addr add {CLIENT}/24 dev eth0", self.sta)
        sh("ip route add default via 10.96.0.254", self.sta)

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
            process.stdout.close()
        for ns in (self.sta, self.ap, self.far):
            sh(f"ip netns del {ns}", check=False)

    def capture(self) -> Capture:
        """At the server."""
        path = self.folder / "at-server"
        self.processes.append(python(self.far, CAPTURE, self.AT_SERVER, path))
        return Capture(path)

    def serve(self) -> None:
        self.processes.append(python(self.far, SERVE, SERVER))

    def fetch(self, port: int = 5000) -> subprocess.Popen:
        """A transfer from the server to the station that goes on until the end."""
        self.processes.append(python(self.sta, FETCH, CLIENT, SERVER, port))
        return self.processes[-1]

    def segments(self, port: int, n: int, tags: str = "", v6: bool = False, options: str = "") -> None:
        """Raw segments of the station."""
        subprocess.run(
            ["ip", "netns", "exec", self.sta, sys.executable, "-c", SEGMENTS, tags, "6" if v6 else "4", str(port),
             str(n), options],
            check=True,
        )

    def tc(self) -> str:
        """Everything of traffic control at the Wi-Fi port but its own queue."""
        shown = [sh(f"tc filter show dev wifi0 {hook}", self.ap) for hook in ("ingress", "egress")]
        qdiscs = sh("tc qdisc show dev wifi0", self.ap).splitlines()
        return "".join(shown + [line for line in qdiscs if "clsact" in line])


class Switched(Home):
    """Its wired port is one of a switch, and has tags on the conduit eth1."""

    AT_SERVER = "wire"

    def connect(self) -> None:
        self.join("eth1", self.far)
        for ns, lower, upper in ((self.ap, "eth1", "wan"), (self.far, "eth0", "wire")):
            sh(f"ip link set {lower} mtu 1504", ns)
            self.uplink(ns, "dsa", lower, upper)
        self.address("wan", "wire")

    def uplink(self, ns: str, kind: str, lower: str, upper: str, peer: str = "") -> None:
        self.processes.append(python(ns, UPLINK, kind, lower, upper, peer))
        sh(f"ip link set {upper} up", ns)

    def address(self, port: str, at_server: str) -> None:
        sh(f"ip addr add 10.98.0.1 peer {SERVER} dev {port}", self.ap)
        sh(f"ip addr add {SERVER} peer 10.98.0.1 dev {at_server}", self.far)


class Dialled(Switched):
    """It has a session of PPPoE over that port."""

    OUT = "pppoe-wan"

    def address(self, port: str, at_server: str) -> None:
        macs = [sh(f"cat /sys/class/net/{name}/address", ns).strip() for ns, name in ((self.ap, port),
                                                                                      (self.far, at_server))]
        for ns, lower, upper, peer in ((self.ap, port, self.OUT, macs[1]), (self.far, at_server, "ppp0", macs[0])):
            self.uplink(ns, "pppoe", lower, upper, peer)
            sh(f"ip link set {upper} mtu 1492", ns)
        super().address(self.OUT, "ppp0")


TAP = "@exporter\nconfig tap\n\toption interface wifi0\n"
WIRED = "@exporter\nconfig packet\n\toption interface wan\n"


def enforcing(folder: Path, collector: str) -> str:
    """Configuration of an AP that enforces. Its policy is on flash already, as after a restart: every flow that has a
    known scale gets CLAMP, at every instant."""
    maker, authority = Maker(), Authority(folder)
    authority.issue("ap-test")
    maker.trusted(folder / "trusted")
    (folder / "state").mkdir()
    policy = policies.make("clamp-all", 1, policies.ENFORCE)
    (folder / "state" / "ap-test@clamp-all.bundle").write_bytes(
        maker.good(of_policy="clamp-all", policy=policy, classes=(3, 3))
    )
    agent = {
        "url": "https://127.0.0.1:9/", "ca": authority.path, "cert": f"{folder}/%s.pem", "key": f"{folder}/%s.key",
        "trusted_keys": folder / "trusted", "state_dir": folder / "state",
    }
    rwnd = {"mode": "enforce", "backend": "bpf", "interface": "wifi0", "kill_file": folder / "kill"}
    return collector + "".join(
        f"config {name}\n" + "".join(f"\toption {k} '{v}'\n" for k, v in section.items())
        for name, section in (("agent", agent), ("rwnd", rwnd))
    )


def tap(daemon: Daemon) -> dict:
    (only,) = daemon.status()["taps"]
    return only


def windows(capture: Capture, packets: int = 50) -> list[int]:
    """Bytes that the next ACKs of the client announce at the server, this many of them at least."""
    scale = capture.scale()
    return [p.window << scale for p in capture.newer(packets)]


def lowered(capture: Capture) -> None:
    until(lambda: max(windows(capture, 20)) <= CLAMP, "windows are lowered at the server")
    seen = windows(capture, 100)
    assert max(seen) <= CLAMP and min(seen) > 0.8 * CLAMP, (min(seen), max(seen))
    assert all(p.checksum_right for p in capture.ups())


def plain(capture: Capture) -> None:
    until(lambda: min(windows(capture, 20)) > PLAIN, "windows are as the client announces them")


def ports_of(daemon: Daemon) -> dict[int, list[dict]]:
    """Rows of packets by their client's port."""
    found: dict[int, list[dict]] = {}
    for row in daemon.rows("packet"):
        found.setdefault(row["flow"]["client_port"], []).append(row)
    return found


def t_nat_at_the_wired_port():
    """behind NAT, with headers of the wired port, clamps are set and not one ACK meets them: windows stay as they are
    at the server, and status and log say that control acts on nothing"""
    with Folder() as folder, Home(folder) as home:
        capture = home.capture()
        home.serve()
        with Daemon(folder, enforcing(folder, WIRED), home.ap) as daemon:
            home.fetch()
            until(lambda: daemon.status()["control"]["clamps"] > 0, "a clamp is set")
            plain(capture)
            sets = daemon.status()["control"]["sets"]
            until(lambda: daemon.status()["control"]["sets"] > sets + 5, "it is renewed")
            plain(capture)
            path = daemon.status()["control"]["data_path"]
            assert path["acks_seen"] == 0 and path["clamps"] > 0 and path["packets"]["no_clamp"] > 50, path
            (alarm,) = until(lambda: daemon.status()["alarms"], "there is alarm")
            assert re.search(r"control acts on nothing: \d+ clamps .* not one ACK .* Behind NAT .* 'tap'", alarm), alarm
            assert "alarm: control acts on nothing" in daemon.log.read_text()
            assert daemon.stop() == 0
            assert {r["flow"]["client"] for r in ports_of(daemon)[5000]} == {"10.98.0.1"}  # the AP's own


def t_nat_at_the_wifi_port():
    """behind NAT, with headers of the Wi-Fi port, flows have their station's address and windows are lowered at the
    server; with the kill file they are plain, and nothing is left on the port at the end"""
    with Folder() as folder, Home(folder) as home:
        capture = home.capture()
        home.serve()
        with Daemon(folder, enforcing(folder, TAP), home.ap) as daemon:
            home.fetch()
            until(lambda: daemon.status()["control"]["clamps"] > 0, "a clamp is set")
            lowered(capture)
            shown, path = tap(daemon), daemon.status()["control"]["data_path"]
            assert (shown["tap"], shown["interface"], shown["attached"], shown["overruns"]) == ("bpf", "wifi0", True, 0)
            assert shown["frames"] >= shown["packets"] > 50 and path["acks_clamped"] > 50, (shown, path)
            assert all(name in home.tc() for name in ("rwnd_up", "rwnd_down", "tap_up", "tap_down")), home.tc()
            assert daemon.status()["alarms"] == []
            (folder / "kill").touch()
            until(lambda: daemon.status()["control"]["killed"], "the kill file is seen")
            plain(capture)
            (folder / "kill").unlink()
            lowered(capture)
            assert daemon.stop() == 0
            plain(capture)
            assert home.tc() == "", home.tc()
            rows = ports_of(daemon)[5000]
            assert {(r["flow"]["client"], r["flow"]["server"], r["flow"]["server_port"]) for r in rows} == {
                (CLIENT, SERVER, 443)
            }
            assert {r["direction"] for r in rows if r["payload_bytes"]} == {0}  # data goes down
            # Rows say what leaves for the server, as those of a wired port do.
            ups = [r for r in rows if r["direction"] == 1 and not r["flags"] & 2]
            scale = next(r["wscale"] for r in rows if r["direction"] == 1 and r["flags"] & 2)
            assert sum(r["window_raw"] << scale <= CLAMP for r in ups) > 50


def t_nat_over_a_switch_and_pppoe():
    """behind NAT whose way out is a port of a switch, then a session of PPPoE over it, windows are lowered at the
    server and plain with the kill file; what is on the wire are tags and sessions"""
    for home_of, frame in ((Switched, b"\0\x01\0\0\x08\0"), (Dialled, b"\0\x01\0\0\x88\x64")):
        with Folder() as folder, home_of(folder) as home:
            capture, conduit = home.capture(), folder / "conduit"
            home.processes.append(python(home.ap, CAPTURE, "eth1", conduit))
            home.serve()
            with Daemon(folder, enforcing(folder, TAP), home.ap) as daemon:
                home.fetch()
                lowered(capture)
                assert {p.source for p in capture.ups()} == {"10.98.0.1"}
                assert daemon.status()["alarms"] == [] and tap(daemon)["tap"] == "bpf"
                (folder / "kill").touch()
                until(lambda: daemon.status()["control"]["killed"], "the kill file is seen")
                plain(capture)
                assert daemon.stop() == 0
                assert {r["flow"]["client"] for r in ports_of(daemon)[5000]} == {CLIENT}
            # bytes 12 to 17 of most frames: the tag and what is behind it
            data = conduit.read_bytes()
            assert data.count(frame) > 100, (home_of.__name__, data.count(frame))


def t_nat_rule_changed():
    """the rule of NAT changes while flows run: these go on as they were, a new one has the other address, and all of
    them are lowered at the server"""
    with Folder() as folder, Home(folder) as home:
        sh("ip addr add 10.98.0.9/24 dev wan", home.ap)
        capture = home.capture()
        home.serve()
        with Daemon(folder, enforcing(folder, TAP), home.ap) as daemon:
            home.fetch()
            lowered(capture)
            # In one transaction, as a firewall does: without a rule that needs it there is no tracking of connections.
            rules = "flush chain ip nat post\nadd rule ip nat post oifname wan snat to 10.98.0.9\n"
            (folder / "rules").write_text(rules)
            sh(f"nft -f {folder}/rules", home.ap)
            lowered(capture)
            home.fetch(port=5001)
            until(lambda: daemon.status()["control"]["clamps"] == 2, "both are clamped")
            lowered(capture)
            ups, scale = capture.newer(200), capture.scale()
            for address, port in (("10.98.0.1", 5000), ("10.98.0.9", 5001)):
                seen = [p.window << scale for p in ups if (p.source, p.port) == (address, port)]
                assert len(seen) > 20 and max(seen) <= CLAMP, (address, seen, {(p.source, p.port) for p in ups})
            assert daemon.status()["alarms"] == [] and daemon.stop() == 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def t_privileges():
    """the daemon that lowers windows has no capability; its helper has two, as the same user; both may make few system
    calls, and after a reload it is still so"""
    net_admin, bpf = 1 << 12, 1 << 39
    with Folder() as folder, Home(folder) as home:
        folder.chmod(0o777)
        capture = home.capture()
        home.serve()
        text = enforcing(folder, TAP.replace("@exporter", "@exporter\n\toption user nobody"))
        for path in folder.rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o644)
        with Daemon(folder, text, home.ap) as daemon:
            home.fetch()
            lowered(capture)
            pid = daemon.process.pid
            nothing_left(pid)
            (helper,) = children(pid)
            (only,) = rights(helper)
            assert [int(only[f"Cap{name}"], 16) for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")] == [
                0, net_admin | bpf, net_admin | bpf, 0, 0
            ], only
            assert only["Seccomp"].strip() == "2" and only["NoNewPrivs"].strip() == "1", only
            assert only["Uid"] == rights(pid)[0]["Uid"] and only["Uid"].split()[0] != "0", only
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda: daemon.status()["reloads"] == 1, f"it is reloaded; log: {daemon.log.read_text()}")
            lowered(capture)
            nothing_left(pid)
            assert children(pid) == [helper]
            daemon.write(text.replace("mode 'enforce'", "mode 'shadow'"))
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda: daemon.status()["reloads"] == 2, "shadow")
            plain(capture)
            daemon.write(text)
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda: daemon.status()["reloads"] == 3, "enforce")
            lowered(capture)
            daemon.write(text.replace("interface wifi0", "interface wan"))
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda: daemon.status()["reloads_refused"] == 1, "a port that the start did not name is refused")
            refused = [line for line in daemon.log.read_text().splitlines() if "reload refused" in line]
            assert refused and "restart" in refused[-1], daemon.log.read_text()
            lowered(capture)
            assert daemon.stop() == 0
            assert home.tc() == "", home.tc()


def t_helper_killed():
    """when the helper dies clamps run out, windows are plain, status and log say so, and telemetry goes on"""
    with Folder() as folder, Home(folder) as home:
        capture = home.capture()
        home.serve()
        with Daemon(folder, enforcing(folder, TAP), home.ap) as daemon:
            home.fetch()
            lowered(capture)
            (helper,) = children(daemon.process.pid)
            os.kill(helper, signal.SIGKILL)
            plain(capture)
            (alarm,) = until(lambda: [a for a in daemon.status()["alarms"] if "helper" in a], "there is alarm")
            assert "restart" in alarm, alarm
            assert "the helper has ended" in daemon.log.read_text()
            assert not daemon.status()["control"]["data_path"]["ready"]
            ticks = daemon.status()["ticks"]
            until(lambda: daemon.status()["ticks"] > ticks + 300, "it goes on")
            assert daemon.stop() == 0
        with Daemon(folder, TAP, home.ap) as daemon:
            found = re.findall(r"pref 12 .*handle 0xa1", home.tc())
            assert len(found) == 2, home.tc()  # in place of what was left behind
            assert daemon.stop() == 0


def t_daemon_killed():
    """when the daemon dies the helper takes all programs off the ports, and ends"""
    with Folder() as folder, Home(folder) as home:
        capture = home.capture()
        home.serve()
        with Daemon(folder, enforcing(folder, TAP), home.ap) as daemon:
            home.fetch()
            lowered(capture)
            (helper,) = children(daemon.process.pid)
            daemon.process.kill()
            daemon.process.wait()
            plain(capture)
            until(lambda: home.tc() == "", "nothing is left on the port")
            until(lambda: not Path(f"/proc/{helper}/cmdline").exists()
                  or not Path(f"/proc/{helper}/cmdline").read_text(), "the helper ends")


def t_tags_and_ipv6():
    """segments of IPv4 and IPv6 behind none, one and two VLAN tags are read, each once, a SYN with the scale that
    stands last; other protocols are not"""
    with Folder() as folder, Home(folder) as home, Daemon(folder, TAP, home.ap) as daemon:
        tags = ("", "81000007", "88a8000581000007")
        cases = [(4000 + 10 * v6 + i, tag, v6) for v6 in (0, 1) for i, tag in enumerate(tags)]
        for port, tag, v6 in cases:
            home.segments(port, 40, tag, bool(v6))
            home.segments(port + 100, 1, tag, bool(v6), SYN)
        home.segments(4999, 30, "8100000788cc")  # neither
        until(lambda: tap(daemon)["packets"] >= 41 * len(cases), "they are read")
        daemon.settle()
        frames, overruns = tap(daemon)["frames"], tap(daemon)["overruns"]
        assert frames >= 41 * len(cases) + 30 and not overruns, (frames, overruns)
        assert daemon.stop() == 0
        rows = ports_of(daemon)
        assert 4999 not in rows
        for port, _, v6 in cases:
            assert [(r["seq"], r["direction"]) for r in rows[port]] == [(1000 + i, 1) for i in range(40)], rows[port]
            assert rows[port][0]["flow"]["client"] == ("fd00::1" if v6 else "10.97.0.1"), rows[port][0]
            (syn,) = rows[port + 100]
            assert (syn["wscale"], syn["mss_bytes"], syn["syn_options"], syn["ts_val"]) == (7, 1460, 7, 1), syn


def t_port_goes_and_comes():
    """a port that goes is said to be away, and the programs are on it again when it is back, also when somebody took
    them away"""
    with Folder() as folder, Home(folder) as home, Daemon(folder, TAP, home.ap) as daemon:
        home.segments(4000, 20)
        until(lambda: tap(daemon)["packets"] >= 20, "they are read")
        sh("ip link del wifi0", home.ap)
        until(lambda: not tap(daemon)["attached"], "the port is away")
        assert daemon.status()["interface_losses"] == 1
        home.plug_station()
        until(lambda: tap(daemon)["attached"], "the port is back")
        before = tap(daemon)["packets"]
        home.segments(4001, 20)
        until(lambda: tap(daemon)["packets"] >= before + 20, "they are read again")
        sh("tc qdisc del dev wifi0 clsact", home.ap)
        until(lambda: "tap_up" in home.tc() and "tap_down" in home.tc(), "the programs are put back")
        before = tap(daemon)["packets"]
        home.segments(4002, 20)
        until(lambda: tap(daemon)["packets"] >= before + 20, "they are read again")
        assert tap(daemon)["losses"] == 1
        assert daemon.stop() == 0
        assert home.tc() == "", home.tc()
        assert {port: len(ports_of(daemon)[port]) for port in (4000, 4001, 4002)} == {4000: 20, 4001: 20, 4002: 20}


def t_ring_overrun():
    """packets that find the ring full are counted, also in a header, and nothing else is lost: what the ring held and
    what comes later is whole"""
    text = TAP + "\toption ring_kb 64\n"
    with Folder() as folder, Home(folder) as home, Daemon(folder, text, home.ap) as daemon:
        home.segments(4000, 20)
        until(lambda: tap(daemon)["packets"] >= 20, "they are read")
        before = tap(daemon)
        daemon.process.send_signal(signal.SIGSTOP)
        home.segments(4001, 1000)
        daemon.process.send_signal(signal.SIGCONT)
        until(lambda: tap(daemon)["overruns"], "overruns are counted")
        home.segments(4002, 20)
        until(lambda: tap(daemon)["packets"] + tap(daemon)["overruns"] >= before["packets"] + 1020, "all went by")
        daemon.settle()
        shown, drops = tap(daemon), daemon.status()["ring_drops"]
        assert shown["frames"] - before["frames"] >= 1020
        assert daemon.stop() == 0
        held = ports_of(daemon)[4001]
        assert 300 < len(held) < 1000 and drops == shown["overruns"] == 1000 - len(held), (len(held), drops, shown)
        assert [r["seq"] for r in held] == list(range(1000, 1000 + len(held)))
        assert [r["seq"] for r in ports_of(daemon)[4002]] == list(range(1000, 1020))
        counted = json.loads(sh(f"{BINARY} count {daemon.capture}"))
        assert counted["ring_drops"] == drops, (counted, drops)


def t_fallback():
    """without the capabilities for BPF `auto` takes a packet socket on the same port and says why; `bpf` is refused"""
    without = ("setpriv", "--bounding-set", "-bpf,-sys_admin")
    with Folder() as folder, Home(folder) as home, Daemon(folder, TAP, home.ap, under=without) as daemon:
        shown = tap(daemon)
        assert shown["tap"] == "packet" and shown["attached"] and "BPF" in shown["instead"], shown
        assert "by a packet socket: " in daemon.log.read_text()
        home.serve()
        fetch = home.fetch()
        home.segments(4000, 20, "88a8000581000007")
        home.segments(4100, 1, "81000007", True, SYN)
        until(lambda: tap(daemon)["packets"] > 200, "they are read")
        fetch.kill()
        daemon.settle()
        assert daemon.stop() == 0
        rows = ports_of(daemon)
        assert {(r["flow"]["client"], r["flow"]["server"]) for r in rows[5000]} == {(CLIENT, SERVER)}
        assert {r["direction"] for r in rows[5000] if r["payload_bytes"]} == {0}
        assert len(rows[4000]) == 20 and rows[4100][0]["wscale"] == 7
    with Folder() as folder, Home(folder) as home:
        daemon = Daemon(folder, TAP + "\toption tap bpf\n", home.ap)
        done = subprocess.run(
            ["ip", "netns", "exec", home.ap, *without, str(BINARY), "run", "-c", str(daemon.config)],
            capture_output=True, text=True, timeout=30,
        )
        assert done.returncode and "tap on wifi0" in done.stderr, done


def t_ingress_qdisc():
    """on a port whose old ingress qdisc is somebody else's no program can be at egress: a packet socket sees both
    directions"""
    with Folder() as folder, Home(folder) as home:
        sh("tc qdisc add dev wifi0 ingress", home.ap)
        with Daemon(folder, TAP, home.ap) as daemon:
            assert tap(daemon)["tap"] == "packet" and "ingress" in tap(daemon)["instead"], tap(daemon)
            assert "tap_up" not in home.tc(), home.tc()
            assert daemon.stop() == 0
        assert "ingress" in sh("tc qdisc show dev wifi0", home.ap)


def t_reload():
    """a reload takes the port over: nothing is lost, and at the end nothing is left"""
    with Folder() as folder, Home(folder) as home, Daemon(folder, TAP, home.ap) as daemon:
        home.segments(4000, 20)
        until(lambda: tap(daemon)["packets"] >= 20, "they are read")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads"] == 1, "it is reloaded")
        assert tap(daemon)["attached"] and home.tc().count("handle 0xa1") == 2, home.tc()
        home.segments(4001, 20)
        until(lambda: tap(daemon)["packets"] >= 20, "they are read")
        assert daemon.stop() == 0
        assert home.tc() == "", home.tc()


def t_cost():
    """reading allocates nothing, and makes no system call for a packet; five ticks take one"""
    with Folder() as folder, Home(folder) as home:
        allocations = Allocations(folder)
        with Daemon(folder, TAP, home.ap, env=allocations.env) as daemon:
            home.segments(4000, 50)
            until(lambda: tap(daemon)["packets"] >= 50, "they are read")
            ticks = daemon.status()["ticks"]
            until(lambda: daemon.status()["ticks"] > ticks + 500, "the start is over")
            before = allocations.count()
            home.segments(4001, 500)
            until(lambda: tap(daemon)["packets"] >= 550, "they are read")
            daemon.settle()
            assert allocations.count() == before, f"{allocations.count() - before} allocations"
    with Folder() as folder, Home(folder) as home:
        trace = folder / "trace"
        with Daemon(folder, TAP + "\toption ring_kb 4096\n", home.ap, under=("strace", "-o", str(trace))) as daemon:
            def calls_and_ticks() -> tuple[int, int]:
                return trace.read_text(errors="replace").count("\n"), daemon.status()["ticks"]
            (calls, ticks), size = calls_and_ticks(), 5000
            until(lambda: daemon.status()["ticks"] > ticks + 500, "two seconds without packets")
            idle_calls, idle_ticks = (b - a for a, b in zip((calls, ticks), calls_and_ticks()))
            # One in five ticks, and a few for each question after the status.
            waits = len(re.findall(r"^(?:ppoll|epoll_p?wait|read)\(", trace.read_text(), re.M))
            so_far = daemon.status()["ticks"]
            assert waits < 0.6 * so_far, f"the tick thread waited {waits} times in {so_far} ticks"
            (calls, ticks), packets = calls_and_ticks(), tap(daemon)["packets"]
            home.segments(4000, size)
            until(lambda: tap(daemon)["packets"] >= packets + size, "they are read")
            busy_calls, busy_ticks = (b - a for a, b in zip((calls, ticks), calls_and_ticks()))
            more = busy_calls - busy_ticks * idle_calls / idle_ticks
            assert more < size / 10, f"{more:.0f} system calls more for {size} packets"
            os.kill(daemon.traced(), signal.SIGTERM)
            assert daemon.process.wait(30) == 0


def missing() -> str:
    """Why the tests cannot be run here, or nothing."""
    with Folder() as folder:
        try:
            with Home(folder) as home, Daemon(folder, TAP, home.ap) as daemon:
                return tap(daemon)["instead"]
        except RuntimeError as why:
            return str(why)


if __name__ == "__main__":
    if os.geteuid() == 0 and (why := missing()):
        if not re.search("nft|refuse|Operation not permitted|Permission denied", why):
            sys.exit(f"# {why}\nnot ok the kernel says why it has no tap\n# 0 passed, 1 failed")
        sys.exit(skip_all(why))
    sys.exit(run_here(globals()))
