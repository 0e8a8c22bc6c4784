#!/usr/bin/env python3
"""The real daemon from outside: real namespaces, real TCP, real signals; its own output compared.

Each function named t_… is a test, its docstring the sentence it proves. usage: tests/outside.py [BINARY
COUNT_MALLOC_SO [NAME…]]
Needs root (namespaces). Prints "ok …" / "not ok …" lines and "# N passed, N failed".
"""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from itertools import count
from pathlib import Path

from sentences import Sum, run_tests, skip_all, tests_of

BUILD = Path(__file__).resolve().parent.parent / "build"
BINARY, COUNT_MALLOC = (
    Path(a).resolve() for a in (sys.argv[1:3] or (BUILD / "ap-exporter", BUILD / "count_malloc.so"))
)
TAGS = (f"oal{os.getpid()}n{i}" for i in count())  # names of namespaces: each scene has its own
AT_ONCE = 4  # they mostly wait
PATIENCE_S = 30


def sh(command: str, ns: str | None = None, check: bool = True) -> str:
    done = subprocess.run((["ip", "netns", "exec", ns] if ns else []) + command.split(), capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def until(condition, what: str, patience_s: float = PATIENCE_S):
    """Polls for a condition; its value once it is true."""
    give_up = time.monotonic() + patience_s
    while time.monotonic() < give_up:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {patience_s} s: {what}")


class Folder:
    """A temporary folder, gone at the end."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix="ap-exporter-"))
        self.path.chmod(0o755)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Allocations:
    """Counts what the main thread of a program allocates that is started with `env`."""

    def __init__(self, folder: Path):
        self.file = folder / "counter"
        self.file.write_bytes(bytes(8))
        self.file.chmod(0o666)
        self.env = {"LD_PRELOAD": str(COUNT_MALLOC), "COUNT_MALLOC_FILE": str(self.file)}

    def count(self) -> int:
        """Since its start, which allocates itself."""
        counted = struct.unpack("=Q", self.file.read_bytes())[0]
        assert counted > 10, "the counter counts what the start allocates"
        return counted


class Daemon:
    """One exporter under a configuration; `ns` is its network namespace."""

    def __init__(self, folder: Path, text: str, ns: str | None = None, env: dict | None = None, file_sink: bool = True,
                 under: tuple[str, ...] = ()):
        """`under`: a command that runs the daemon, such as a tracer."""
        self.folder, self.ns, self.env, self.under = folder, ns, env, under
        self.config, self.socket, self.capture, self.log = (
            folder / n for n in ("config", "socket", "capture.oalcap", "log")
        )
        self.file_sink = file_sink
        self.write(text)

    def write(self, text: str) -> None:
        sink = f"config file\n\toption path '{self.capture}'\n" if self.file_sink else ""
        self.config.write_text(
            text.replace(
                "@exporter", f"config exporter\n\toption ap_id 'ap-test'\n\toption status_socket '{self.socket}'"
            )
            + "\n"
            + sink
        )

    def __enter__(self) -> "Daemon":
        command = (["ip", "netns", "exec", self.ns] if self.ns else []) + [
            *self.under, str(BINARY), "run", "-c", str(self.config)
        ]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(self.env or {})})
        until(
            lambda: self.process.poll() is not None or self.status(), f"the daemon answers; log: {self.log.read_text()}"
        )
        assert self.process.poll() is None, self.log.read_text()
        shown = subprocess.run([str(BINARY), "status", "-s", str(self.socket)], capture_output=True, text=True)
        assert shown.returncode == 0 and json.loads(shown.stdout).keys() == self.status().keys(), shown
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            if self.under:  # whoever is traced outlives a tracer that is killed
                os.kill(self.traced(), signal.SIGKILL)
            self.process.kill()
            self.process.wait()

    def traced(self) -> int:
        """The daemon's own process, under a tracer."""
        tracer = self.process.pid
        return int(Path(f"/proc/{tracer}/task/{tracer}/children").read_text().split()[0])

    def status(self) -> dict | None:
        """What the command `status` prints, read from the socket itself: tests ask thousands of times."""
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(PATIENCE_S)
                s.connect(str(self.socket))
                text = b"".join(iter(lambda: s.recv(65536), b""))
        except OSError:
            return None
        return json.loads(text) if text else None

    def answer(self) -> dict:
        """What it says of itself. On a busy machine one that plays many access points may let a question pass; one
        that has ended is an error, with its log."""
        def asked() -> dict | None:
            status = self.status()
            if not status and self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}: {self.log.read_text()[-4000:]}")
            return status

        return until(asked, "it answers")

    def settle(self) -> None:
        """Returns when 100 ticks have gone by: what was on the wire before is in the daemon by then."""
        ticks = self.status()["ticks"]
        until(lambda: self.status()["ticks"] > ticks + 100, "100 more ticks")

    def stop(self) -> int:
        """Ends it as procd does; its exit status. What it wrote last is shown where that is not 0."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        if status:
            print(f"# exit status {status}; the log ends with\n{self.log.read_text()[-4000:]}", flush=True)
        return status

    def count(self) -> int:
        """Batches of all topics in the capture."""
        counted = json.loads(
            subprocess.run([str(BINARY), "count", str(self.capture)], capture_output=True, text=True, check=True).stdout
        )
        assert not any(counted["refused"].values()) and not counted["damaged_places"], counted
        return sum(counted["batches"].values())

    def rows(self, table: str) -> list[dict]:
        """Rows of a table in the capture, as `ap-exporter dump` gives them."""
        text = subprocess.run(
            [str(BINARY), "dump", str(self.capture)], capture_output=True, text=True, check=True
        ).stdout
        return [row for row in map(json.loads, text.splitlines()) if row.get("table") == table]


class Wire:
    """Two namespaces joined by a veth pair: `ap` (port lan0) and `far` (port eth0)."""

    def __enter__(self) -> "Wire":
        self.retransmitted = 0  # segments, of the last transfer, as the sender's kernel counts them
        self.tag = next(TAGS)
        self.ap, self.far, self.sta = f"{self.tag}ap", f"{self.tag}far", None
        for ns in (self.ap, self.far):
            sh(f"ip netns add {ns}")
            sh("ip link set lo up", ns)
        self.plug()
        return self

    def plug(self) -> None:
        sh(f"ip link add lan0 netns {self.ap} type veth peer name eth0 netns {self.far}")
        for ns, port, host in ((self.ap, "lan0", 1), (self.far, "eth0", 2)):
            if shutil.which("ethtool"):
                sh(f"ethtool -K {port} tso off gso off gro off tx off rx off", ns)
            sh(f"ip addr add 10.99.0.{host}/24 dev {port}", ns)
            sh(f"ip addr add fd99::{host}/64 dev {port} nodad", ns)
            sh(f"ip link set {port} up", ns)

    def unplug(self) -> None:
        sh("ip link del lan0", self.ap)

    def __exit__(self, *_):
        for ns in filter(None, (self.ap, self.far, self.sta)):
            sh(f"ip netns del {ns}", check=False)

    def add_station(self) -> str:
        """A namespace `sta` behind port wifi0 of `ap`, which routes: the MAC address of the station."""
        self.sta = f"{self.tag}sta"
        sh(f"ip netns add {self.sta}")
        sh(f"ip link add wifi0 netns {self.ap} type veth peer name eth0 netns {self.sta}")
        for ns, port, host in ((self.ap, "wifi0", 1), (self.sta, "eth0", 2)):
            sh(f"ip addr add 10.97.0.{host}/24 dev {port}", ns)
            sh(f"ip link set {port} up", ns)
        sh("ip route add default via 10.97.0.1", self.sta)
        sh("ip route add 10.97.0.0/24 via 10.99.0.1", self.far)
        sh("sysctl -qw net.ipv4.ip_forward=1", self.ap)
        return json.loads(sh("ip -j link show eth0", self.sta))[0]["address"]

    def transfer(self, address: str, size: int, source: str | None = None) -> int:
        """TCP from `ap` (or the namespace `source`) to `far`: `size` bytes there and 1000 back. Returns the client's
        port."""
        code = (
            "import socket,sys\na,n=sys.argv[1],int(sys.argv[2])\nf=socket.AF_INET6 if ':' in a else socket.AF_INET\n"
            "s=socket.create_server((a,5201),family=f)\nprint('ready',flush=True)\nc,_=s.accept()\ngot=0\n"
            "while got<n: got+=len(c.recv(65536))\nc.sendall(b'r'*1000)\nc.shutdown(1)\nc.recv(1)\nc.close()\n"
        )
        client = (
            "import socket,sys\na,n=sys.argv[1],int(sys.argv[2])\n"
            "c=socket.create_connection((a,5201),timeout=20)\nprint(c.getsockname()[1],flush=True)\n"
            "c.sendall(b'x'*n)\ngot=0\nwhile got<1000: got+=len(c.recv(65536))\n"
            "print(int.from_bytes(c.getsockopt(6,11,104)[100:104],sys.byteorder))\nc.close()\n"
        )  # TCP_INFO: tcpi_total_retrans
        args = [sys.executable, "-c"]
        server = subprocess.Popen(
            ["ip", "netns", "exec", self.far, *args, code, address, str(size)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout.readline() == "ready\n"
            done = subprocess.run(
                ["ip", "netns", "exec", source or self.ap, *args, client, address, str(size)],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            assert server.wait(20) == 0
        finally:
            server.kill()
            server.stdout.close()
        port, self.retransmitted = map(int, done.stdout.split())
        return port

    def talk(self) -> subprocess.Popen:
        """A TCP connection from `ap` to `far` that stays open: each line written to this process is a kilobyte there
        and back, and comes back itself."""
        server = ("import socket\ns=socket.create_server(('10.99.0.2',5202))\nprint('ready',flush=True)\n"
                  "c,_=s.accept()\nwhile b:=c.recv(65536): c.sendall(b)\n")
        client = ("import socket,sys\nc=socket.create_connection(('10.99.0.2',5202),timeout=20)\n"
                  "for line in sys.stdin:\n c.sendall(b'x'*1000)\n got=0\n while got<1000: got+=len(c.recv(65536))\n"
                  " print(line,end='',flush=True)\n")
        far = subprocess.Popen(
            ["ip", "netns", "exec", self.far, sys.executable, "-c", server], stdout=subprocess.PIPE, text=True
        )
        assert far.stdout.readline() == "ready\n"
        return subprocess.Popen(
            ["ip", "netns", "exec", self.ap, sys.executable, "-c", client],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def send_tagged(self, tags: bytes, port: int, segments: int) -> None:
        """Raw TCP segments of 500 bytes from `far`, behind VLAN tags: not every kernel has VLAN devices, each takes
        such frames in."""
        code = ("import socket,sys,struct\ntags,port,n=bytes.fromhex(sys.argv[1]),int(sys.argv[2]),int(sys.argv[3])\n"
                "s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('eth0',0))\n"
                "for i in range(n):\n"
                " ip=struct.pack('>BBHHHBBH4s4s',0x45,0,540,i,0,64,6,0,bytes([10,98,0,2]),bytes([10,98,0,1]))\n"
                " tcp=struct.pack('>HHIIBBHHH',port,5201,1000+500*i,1,0x50,0x10,1000,0,0)\n"
                " s.send(bytes(range(2,8))+bytes(range(8,14))+tags+b'\\x08\\x00'+ip+tcp+bytes(500))\n")
        subprocess.run(
            ["ip", "netns", "exec", self.far, sys.executable, "-c", code, tags.hex(), str(port), str(segments)],
            check=True,
        )


PACKET = "@exporter\nconfig packet\n\toption interface lan0\nconfig qdisc\n\toption interface lan0\n"
QDISC_LO = "@exporter\nconfig qdisc\n\toption interface lo\n"


def refused(text: str) -> str:
    with Folder() as folder:
        config = folder / "config"
        config.write_text(text)
        done = subprocess.run([str(BINARY), "check-config", "-c", str(config)], capture_output=True, text=True)
        assert done.returncode == 1, done
        run = subprocess.run([str(BINARY), "-c", str(config)], capture_output=True, text=True, timeout=20)
        assert run.returncode == 1 and run.stderr.strip().endswith(done.stderr.strip().split("error: ")[1]), (run, done)
        return done.stderr


def t_bad_configuration():
    """a bad configuration is refused with file, line and option, by check-config and by run alike"""
    message = refused("config exporter\n\toption ap_id x\n\nconfig qdisc\n\toption interfce lo\n")
    assert "config: line 5: unknown option 'interfce'" in message, message


def t_missing_files():
    """TLS files that are not there are named"""
    message = refused(
        "config qdisc\n\toption interface lo\nconfig kafka\n\toption brokers x:1\n\toption ca /no/ca\n"
        "\toption certificate /no/c\n\toption key /no/k\n"
    )
    assert "/no/ca" in message, message


def t_check_config_says_good():
    """check-config and --check-config accept a good file"""
    with Folder() as folder:
        (folder / "config").write_text(
            f"config exporter\n option ap_id a1\nconfig qdisc\n option interface lo\nconfig file\n option "
            f"path {folder}/c\n"
        )
        for form in ("check-config", "--check-config"):
            done = subprocess.run([str(BINARY), form, "-c", str(folder / "config")], capture_output=True, text=True)
            assert done.returncode == 0 and "a1" in done.stdout, done
        assert not (folder / "c").exists()


def t_options_are_documented():
    """README.md lists every option with its default"""
    text = subprocess.run([str(BINARY), "options"], capture_output=True, text=True, check=True).stdout
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    section, missing = "", []
    for line in text.splitlines():
        if m := re.match(r"config (\w+)", line):
            section = m[1]
        elif m := re.match(r"  (\w+) +(.*)", line):
            default = m[2].split()[0]
            if (
                not re.search(rf"^\| `{section}` \| `{m[1]}` \| {re.escape(default)} ", readme, re.M)
                and m[1] != "enabled"
            ):
                missing.append(f"{section}.{m[1]} (default {default})")
    assert not missing, f"README.md lacks, or has another default for: {missing}"


def t_packets_behind_vlan_tags():
    """segments behind one and two VLAN tags are captured, and other protocols behind them are not"""
    with Wire() as wire, Folder() as folder, Daemon(folder, PACKET, wire.ap) as daemon:
        wire.send_tagged(bytes.fromhex("81000007"), 4001, 50)
        wire.send_tagged(bytes.fromhex("88a8000581000007"), 4002, 40)
        wire.send_tagged(bytes.fromhex("8100000786dd"), 4003, 30)  # IPv6 that is none
        until(lambda: daemon.status()["packets"] >= 90, "packets are captured")
        daemon.settle()
        assert daemon.stop() == 0
        for port, segments in ((4001, 50), (4002, 40), (4003, 0)):
            packets = [p for p in daemon.rows("packet") if port in (p["flow"]["client_port"], p["flow"]["server_port"])]
            assert sorted((p["seq"], p["payload_bytes"], p["direction"]) for p in packets) == [
                (1000 + 500 * i, 500, 0) for i in range(segments)
            ], packets


def t_packets_of_tcp():
    """every TCP segment of a transfer is captured once, both directions, over IPv4 and IPv6"""
    with Wire() as wire, Folder() as folder:
        for address, size in (("10.99.0.2", 300_000), ("fd99::2", 200_000)):
            with Daemon(folder, PACKET, wire.ap) as daemon:
                port = wire.transfer(address, size)
                until(lambda: daemon.status()["packets"] > size // 1500, "packets are captured")
                daemon.settle()
                assert daemon.stop() == 0
                packets = [
                    p for p in daemon.rows("packet") if port in (p["flow"]["client_port"], p["flow"]["server_port"])
                ]
                assert packets, "no packet row of the transfer"
                there = [p for p in packets if p["payload_bytes"] and p["direction"] == 1]  # what leaves lan0 goes up
                back = [p for p in packets if p["payload_bytes"] and p["direction"] == 0]
                first = next(p["seq"] for p in packets if p["flags"] & 2 and p["direction"] == 1) + 1
                seen = set()
                for p in there:
                    offset = (p["seq"] - first) % 2**32
                    seen.update(range(offset, offset + p["payload_bytes"]))
                assert seen == set(range(size)), (address, len(seen))
                repeated = sum(p["payload_bytes"] for p in there) - size
                assert (
                    repeated <= 1500 * wire.retransmitted
                ), f"{repeated} bytes twice with {wire.retransmitted} retransmissions"
                assert sum(p["payload_bytes"] for p in back) == 1000
                syn = [p for p in packets if p["flags"] & 2]
                assert len(syn) >= 2 and all(p["mss_bytes"] > 1000 and p["syn_options"] == 7 for p in syn), syn


def t_qdisc_counters():
    """queue rows carry the counters that tc shows"""
    with Wire() as wire, Folder() as folder:
        sh("tc qdisc add dev lan0 root handle 1: tbf rate 20mbit burst 10k limit 60000", wire.ap)
        with Daemon(folder, PACKET, wire.ap) as daemon:
            wire.transfer("10.99.0.2", 1_600_000)  # 640 ms of 20 Mbit/s: also a busy machine looks at a full queue
            until(lambda: daemon.status()["table_rows"]["queue"] > 5, "queue rows")
            shown = json.loads(sh("tc -s -j qdisc show dev lan0", wire.ap))[0]
            daemon.settle()
            assert daemon.stop() == 0
            rows = [r for r in daemon.rows("queue") if r["handle"] == 0x10000]
            assert all((r["kind"], r["device"]) == ("tbf", "lan0") for r in rows)
            columns = (("bytes", "bytes"), ("pkts", "packets"), ("drops", "drops"), ("overlimits", "overlimits"))
            # Not always the last row: the kernel's own neighbour discovery may send once more.
            assert any(all(r[column] == shown[name] for column, name in columns) for r in rows), (rows[-1], shown)
            last = rows[-1]
            assert last["pkts"] > 250 and max(r["backlog_bytes"] for r in rows) > 0
            assert all(a["bytes"] <= b["bytes"] for a, b in zip(rows, rows[1:]))


def t_ring_that_overflows():
    """packets that the ring lost while the daemon could not run are counted, and shipped in a header"""
    with Wire() as wire, Folder() as folder, Daemon(
        folder, PACKET.replace("config packet\n", "config packet\n\toption ring_kb 64\n"), wire.ap
    ) as daemon:
        wire.transfer("10.99.0.2", 50_000)
        until(lambda: daemon.status()["packets"] > 30, "packets before")
        assert daemon.status()["ring_drops"] == 0
        daemon.process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            wire.transfer("10.99.0.2", 1_000_000)
        daemon.process.send_signal(signal.SIGCONT)
        drops = until(lambda: daemon.status()["ring_drops"], "drops are counted")
        until(lambda: daemon.status()["ticks_missed"] > 10, "so are the ticks")
        daemon.settle()
        assert daemon.stop() == 0
        assert drops > 500
        counted = json.loads(
            subprocess.run(
                [str(BINARY), "count", str(daemon.capture)], capture_output=True, text=True, check=True
            ).stdout
        )
        assert counted["ring_drops"] == drops, (counted, drops)


def t_station_of_a_routed_ap():
    """on an AP that routes, the neighbour table says whose flow it is"""
    with Wire() as wire, Folder() as folder:
        mac = wire.add_station()
        with Daemon(
            folder, PACKET + "config neigh\n\toption interface wifi0\n\toption interval_ms 100\n", wire.ap
        ) as daemon:
            wire.transfer("10.99.0.2", 10_000, wire.sta)  # fills the neighbour table
            daemon.settle()
            port = wire.transfer("10.99.0.2", 50_000, wire.sta)
            daemon.settle()
            assert daemon.stop() == 0
            flows = [p["flow"] for p in daemon.rows("packet") if p["flow"]["client_port"] == port]
            assert flows and all(
                (f["client"], f["server"], f["station"]) == ("10.97.0.2", "10.99.0.2", mac) for f in flows
            ), (mac, flows[:1])


def t_replay_as_several_aps():
    """a pcap is played once as three APs, the daemon ends with it, and a key hides the addresses"""
    pcap = Path(__file__).parent / "data" / "nl" / "sample.pcap"
    with Folder() as folder:
        (folder / "key").write_bytes(bytes(range(16)))
        seen = {}
        for name, key in (("plain", ""), ("hidden", f"\n\toption pseudonym_key {folder}/key")):
            daemon = Daemon(
                folder,
                f"@exporter{key}\nconfig replay\n\toption file {pcap}\n\toption loop 0\n\toption aps 3\n"
                f"\toption ap_prefix lab\n",
            )
            done = subprocess.run([str(BINARY), "-c", str(daemon.config)], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done
            rows = daemon.rows("packet")
            assert {r["ap_id"] for r in rows} == {"lab-0001", "lab-0002", "lab-0003"}
            seen[name] = [
                [(r["seq"], (r["flow"]["client"], r["flow"]["server"])) for r in rows if r["ap_id"] == ap]
                for ap in ("lab-0001", "lab-0002", "lab-0003")
            ]
        plain, hidden = seen["plain"], seen["hidden"]
        assert len(plain[0]) > 300 and len({len(rows) for rows in plain + hidden}) == 1
        assert [s for s, _ in plain[0]] == [s for s, _ in hidden[0]]
        assert not {a for _, a in plain[0]} & {a for _, a in hidden[0]}
        assert len({a for _, a in plain[0]}) == len({a for _, a in hidden[0]}) > 1


def t_hot_unplug():
    """an interface that goes away and comes back is lost, found again, and sampled again"""
    with Wire() as wire, Folder() as folder:
        with Daemon(folder, PACKET, wire.ap) as daemon:
            wire.transfer("10.99.0.2", 50_000)
            until(lambda: daemon.status()["packets"] > 30, "packets before")
            wire.unplug()
            until(lambda: daemon.status()["interface_losses"] >= 2, "both collectors lost it")
            before = daemon.status()
            wire.plug()
            until(
                lambda: "packet: interface lan0 is back" in daemon.log.read_text()
                and "qdisc: interface lan0 is back" in daemon.log.read_text(),
                "it is back",
            )
            wire.transfer("10.99.0.2", 50_000)
            until(lambda: daemon.status()["packets"] > before["packets"] + 30, "packets after")
            assert daemon.status()["interface_losses"] == 2
            assert daemon.stop() == 0


def t_interface_that_comes_late():
    """an interface that is not there yet is waited for"""
    with Wire() as wire, Folder() as folder:
        wire.unplug()
        with Daemon(folder, PACKET, wire.ap) as daemon:
            until(lambda: "interface lan0 is not there" in daemon.log.read_text(), "its absence is logged")
            wire.plug()
            until(lambda: "packet: interface lan0 is back" in daemon.log.read_text(), "it is found")
            wire.transfer("10.99.0.2", 50_000)
            until(lambda: daemon.status()["packets"] > 30, "packets")


def t_reload():
    """SIGHUP takes a good configuration, and refuses a bad one while the old one goes on"""
    with Folder() as folder, Daemon(folder, QDISC_LO) as daemon:
        boot = daemon.status()["boot_id"]
        daemon.write("@exporter\nconfig qdisc\n\toption interfac lo\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads_refused"] == 1, "the bad one is refused")
        assert "reload refused, the old configuration goes on" in daemon.log.read_text()
        assert "line 5: unknown option 'interfac'" in daemon.log.read_text(), daemon.log.read_text()
        ticks = daemon.status()["ticks"]
        until(lambda: daemon.status()["ticks"] > ticks + 50, "it goes on")
        assert daemon.status()["boot_id"] == boot
        daemon.write(QDISC_LO + "config qdisc\n\toption interface lo2\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads"] == 1, "the good one is taken")
        assert daemon.status()["collectors"] == ["qdisc", "qdisc"]
        assert daemon.status()["boot_id"] != boot
        until(lambda: daemon.status()["batches"] > 4, "it samples")
        assert daemon.stop() == 0
        assert daemon.count() > 4


def t_reload_amid_a_flow():
    """a flow that runs over a reload keeps its window scale, which only its SYN said"""
    with Wire() as wire, Folder() as folder, Daemon(folder, PACKET, wire.ap) as daemon:
        talk = wire.talk()

        def say(times: int) -> None:
            for _ in range(times):
                talk.stdin.write("hello\n")
                talk.stdin.flush()
                assert talk.stdout.readline() == "hello\n"

        say(3)
        until(lambda: daemon.status()["packets"] >= 9, "the flow is seen")
        boot = daemon.status()["boot_id"]
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.status()["reloads"] == 1 and daemon.status()["boot_id"] != boot, "reloaded")
        say(3)
        until(lambda: daemon.status()["packets"] >= 6, "it goes on")
        daemon.settle()
        talk.stdin.close()
        assert talk.wait(20) == 0
        talk.stdout.close()
        assert daemon.stop() == 0
        after = [row for row in daemon.rows("flow") if row["boot_id"] != str(boot) and row["direction"] == 1]
        assert after and after[-1]["sent_bytes"] == 3000, after
        assert after[-1]["rwnd_bytes"] and after[-1]["rwnd_bytes"] > 65535, after[-1]


def t_disk_full():
    """a full disk is counted, the daemon goes on, and what is in the capture is whole"""
    with Wire() as wire, Folder() as folder:
        small = folder / "small"
        small.mkdir()
        sh(f"mount -t tmpfs -o size=64k tmpfs {small}")
        try:
            daemon = Daemon(folder, PACKET, wire.ap, file_sink=False)
            daemon.capture = small / "capture.oalcap"
            daemon.file_sink = True
            daemon.write(PACKET)
            with daemon:
                while not daemon.status()["sinks"]["file"]["errors"]:
                    wire.transfer("10.99.0.2", 500_000)
                seen = daemon.status()
                assert "No space left" in seen["sinks"]["file"]["last_error"], seen
                until(lambda: daemon.status()["ticks"] > seen["ticks"] + 100, "it goes on")
                last = daemon.status()["sinks"]["file"]
                assert last["let_go"] > 0
                assert daemon.stop() == 0
                assert daemon.count() >= last["delivered"] > 0
        finally:
            sh(f"umount {small}")


def t_kafka_away():
    """without Kafka the newest are kept within the buffer, the others counted, and the end is bounded"""
    with Wire() as wire, Folder() as folder:
        kafka = (
            "config kafka\n\toption brokers 127.0.0.1:1\n\toption plaintext 1\n\toption buffer_kb 64\n\toption "
            "inflight_kb 32\n\toption flush_ms 500\n"
        )
        with Daemon(folder, PACKET + kafka, wire.ap) as daemon:
            while not daemon.status()["sinks"]["kafka"]["let_go"]:
                wire.transfer("10.99.0.2", 500_000)
            s = daemon.status()["sinks"]["kafka"]
            assert s["delivered"] == 0 and s["queued_bytes"] < 160_000 and s["errors"] > 0, s
            assert "127.0.0.1:1" in s["last_error"], s
            assert daemon.status()["sinks"]["file"]["let_go"] == 0
            assert daemon.stop() == 0
            counted = daemon.count()
            told = re.search(r"kafka: (\d+) batches delivered, (\d+) let go", daemon.log.read_text())
            assert (int(told[1]), int(told[2])) == (0, counted), (told[0], counted)


def rights(pid: int) -> list[dict[str, str]]:
    """What each thread of a process may, as the kernel says it."""
    return [
        dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]


def nothing_left(pid: int) -> None:
    """No thread has a capability, can get one, or may make any system call it likes."""
    for thread in rights(pid):
        assert all(int(thread[f"Cap{name}"], 16) == 0 for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")), thread
        assert thread["NoNewPrivs"].strip() == "1" and thread["Seccomp"].strip() == "2", thread


def t_privileges():
    """the daemon keeps no capability in any thread and few system calls, as another user or not, and goes on capturing
    and sampling; at a reload it has the packet sockets of its start and gets no other"""
    for user in ("nobody", ""):
        text = PACKET.replace("@exporter", f"@exporter\n\toption user '{user}'")
        with Wire() as wire, Folder() as folder:
            folder.chmod(0o755)
            sh("tc qdisc add dev lan0 root pfifo limit 1000", wire.ap)
            with Daemon(folder, text, wire.ap) as daemon:
                until(lambda: "running" in daemon.log.read_text(), "it runs")
                pid = daemon.process.pid
                until(lambda: all(t["Seccomp"].strip() == "2" for t in rights(pid)), "the start is over")
                nothing_left(pid)
                assert len(rights(pid)) > 2, "a sampler and a writer have threads of their own"
                assert {t["Uid"].split()[0] == "0" for t in rights(pid)} == {not user}
                wire.transfer("10.99.0.2", 50_000)
                until(lambda: daemon.status()["packets"] > 30, "packets")
                until(lambda: daemon.status()["table_rows"]["queue"] > 0, "samples")
                daemon.write(text)
                daemon.process.send_signal(signal.SIGHUP)
                until(lambda: daemon.status()["reloads"] == 1, f"a reload; log: {daemon.log.read_text()}")
                before = daemon.status()["packets"]
                wire.transfer("10.99.0.2", 50_000)
                until(lambda: daemon.status()["packets"] > before + 30, "packets after the reload")
                nothing_left(pid)
                daemon.write(text + "config packet\n\toption interface lo\n")
                daemon.process.send_signal(signal.SIGHUP)
                until(lambda: daemon.status()["reloads_refused"] == 1, "another packet socket is refused")
                assert "restart" in daemon.log.read_text().splitlines()[-1], daemon.log.read_text()
                assert daemon.stop() == 0


def t_ubus_object():
    """as rpcd asks: the methods are listed, each answers with its parts of the status, `kill` makes and removes the
    kill file and says how it is, and what is none of these is refused"""
    with Wire() as wire, Folder() as folder:
        kill = folder / "kill"
        text = PACKET + f"config rwnd\n\toption interface lan0\n\toption kill_file '{kill}'\n"
        with Daemon(folder, text, wire.ap) as daemon:
            def rpcd(*args: str, given: str = "{}") -> subprocess.CompletedProcess:
                return subprocess.run([str(BINARY), "-c", str(daemon.config), "rpcd", *args], input=given, text=True,
                                      capture_output=True, timeout=20)

            def call(method: str, given: str = "{}") -> dict:
                done = rpcd("call", method, given=given)
                assert done.returncode == 0, done
                return json.loads(done.stdout)
            listed = json.loads(rpcd("list").stdout)
            assert listed == {"status": {}, "stations": {}, "flows": {}, "policy": {}, "kill": {"on": True}}, listed
            whole = daemon.status()
            assert call("status").keys() == whole.keys()
            assert call("stations").keys() == {"samplers", "taps", "table_rows", "entities_refused"}
            assert call("flows")["packets"] >= whole["packets"] and "ring_drops" in call("flows")
            assert "alarms" in call("policy") and "taps" not in call("policy")
            assert call("kill") == {"kill_file": str(kill), "killed": False} and not kill.exists()
            assert call("kill", '{"on": true}')["killed"] and kill.exists()
            assert call("kill", '{"ubus_rpc_session": "0", "on": true}')["killed"]  # it stays
            assert call("kill", "{}")["killed"]
            assert not call("kill", '{"on":false}\n')["killed"] and not kill.exists()
            assert not call("kill", '{"on": false}')["killed"]
            kill.symlink_to(folder / "elsewhere")
            assert rpcd("call", "kill", given='{"on": true}').returncode == 1 and not (folder / "elsewhere").exists()
            kill.unlink()
            for method, given in (("reboot", "{}"), ("kill", '{"on": 1}'), ("kill", "on"), ("kill", '{"on": "true"}')):
                done = rpcd("call", method, given=given)
                assert done.returncode == 1 and not done.stdout and not kill.exists(), (method, given, done)
            assert daemon.stop() == 0
            assert rpcd("call", "status").returncode == 1


def t_one_at_a_time():
    """a second exporter on the same status socket is refused, and a dead one's socket is replaced"""
    with Folder() as folder, Daemon(folder, QDISC_LO) as daemon:
        second = subprocess.run([str(BINARY), "-c", str(daemon.config)], capture_output=True, text=True, timeout=20)
        assert second.returncode == 1 and "another ap-exporter answers" in second.stderr, second
        daemon.process.kill()
        daemon.process.wait()
        assert daemon.socket.exists()
        with Daemon(folder, QDISC_LO) as third:
            assert third.stop() == 0


def t_no_allocation_in_ticks():
    """once started, the main thread allocates nothing, whatever it samples and captures"""
    with Wire() as wire, Folder() as folder:
        sh("tc qdisc add dev lan0 root pfifo limit 1000", wire.ap)
        allocations = Allocations(folder)
        with Daemon(folder, PACKET + "config neigh\n\toption interface lan0\n", wire.ap, env=allocations.env) as daemon:
            wire.transfer("10.99.0.2", 100_000)
            until(lambda: daemon.status()["table_rows"]["health"] >= 1, "the first second is over")
            before, ticks = allocations.count(), daemon.status()["ticks"]
            wire.transfer("10.99.0.2", 200_000)
            wire.transfer("fd99::2", 100_000)
            until(
                lambda: daemon.status()["ticks"] > ticks + 750 and daemon.status()["table_rows"]["health"] > 2,
                "three seconds, and their health rows",
            )
            s = daemon.status()
            assert s["packets"] > 200 and s["table_rows"]["queue"] > 0
            assert (
                allocations.count() == before
            ), f"{allocations.count() - before} allocations in {s['ticks'] - ticks} ticks"


def netlink_calls(trace: Path) -> dict[int, int]:
    """Calls on netlink sockets by thread, out of a trace of `strace -f -yy`."""
    found = re.findall(r"^(\d+) +\w+\(\d+<NETLINK:", trace.read_text(errors="replace"), re.M)
    return {int(thread): found.count(thread) for thread in set(found)}


def t_queues_by_themselves():
    """of an interface's queues each is asked for by itself, and all of every interface once a second alone"""
    with Wire() as wire, Folder() as folder:
        sh("tc qdisc add dev lan0 root handle 1: tbf rate 20mbit burst 10k limit 60000", wire.ap)
        trace = folder / "trace"
        traced = ("strace", "-f", "-yy", "--seccomp-bpf", "-o", str(trace), "-e", "trace=sendto,sendmsg")
        with Daemon(folder, PACKET, wire.ap, under=traced) as daemon:
            until(lambda: trace.read_text(errors="replace").count(" sendmsg(") > 500, "single requests, by sendmsg()")
            wire.transfer("10.99.0.2", 100_000)
            shown = json.loads(sh("tc -s -j qdisc show dev lan0", wire.ap))[0]
            daemon.settle()
            seconds = daemon.status()["uptime_us"] / 1e6
            dumps = re.findall(r"sendto\(\d+<NETLINK", trace.read_text(errors="replace"))
            assert len(dumps) < 2 * seconds + 5, len(dumps)
            os.kill(daemon.traced(), signal.SIGTERM)
            assert daemon.process.wait(PATIENCE_S) == 0
            assert any(r["bytes"] == shown["bytes"] and r["kind"] == "tbf" for r in daemon.rows("queue")), shown


def t_slow_kernel():
    """a kernel that takes 50 ms for each answer holds up no tick: the tick thread asks it for nothing, by a trace"""
    with Wire() as wire, Folder() as folder:
        sh("tc qdisc add dev lan0 root handle 1: pfifo limit 1000", wire.ap)
        trace = folder / "trace"
        slow = ("strace", "-f", "-yy", "--seccomp-bpf", "-o", str(trace), "-e",
                "trace=sendto,sendmsg,recvfrom,recvmsg,recvmmsg",
                "-e", "inject=sendto,sendmsg:delay_exit=50000:when=20+")
        with Daemon(folder, PACKET + "config neigh\n\toption interface lan0\n", wire.ap, under=slow) as daemon:
            wire.transfer("10.99.0.2", 100_000)
            sampler = until(lambda: next((s for s in daemon.status()["samplers"]
                                          if s["skipped"] > 100 and s["longest_us"] > 50_000), None), "a slow sampler")
            assert sampler["name"] == "kernel"
            main = daemon.traced()
            before, ticks = netlink_calls(trace), daemon.status()["ticks"]
            until(lambda: daemon.status()["ticks"] > ticks + 500, "two seconds of ticks")
            calls = netlink_calls(trace)
            assert calls.get(main, 0) == before.get(main, 0), f"the tick thread asked netlink: {calls}, {before}"
            assert sum(calls.values()) > sum(before.values()), "nothing was asked at all"
            assert daemon.status()["table_rows"]["queue"] > 0
            os.kill(main, signal.SIGTERM)
            assert daemon.process.wait(PATIENCE_S) == 0
            health = daemon.rows("health")[-1]
            assert health["sample_max_us"] > 50_000 and health["samples_late"] > 100, health
            assert health["ticks"] > 500 and health["sampling_permille"] < 1000, health


def t_rests():
    """where no window may be lowered and no packet is read, the tick thread wakes ten times a second"""
    with Folder() as folder:
        trace = folder / "trace"
        under = ("strace", "-o", str(trace), "-e", "trace=ppoll")
        with Daemon(folder, QDISC_LO, under=under) as daemon:
            def waits() -> int:
                return trace.read_text(errors="replace").count("ppoll(")
            until(lambda: daemon.status()["ticks"] > 250, "the start is over")
            before, first = daemon.status(), waits()
            until(lambda: waits() >= first + 40, "forty rests")
            after = daemon.status()
            assert after["ticks"] - before["ticks"] > 15 * 40, (before["ticks"], after["ticks"])
            os.kill(daemon.traced(), signal.SIGTERM)
            assert daemon.process.wait(PATIENCE_S) == 0


def t_status_is_whole():
    """the status is one JSON document whatever the sinks and names"""
    with Folder() as folder, Daemon(
        folder, QDISC_LO.replace("@exporter", "@exporter\n\toption site 'a \"b\" \\\\'")
    ) as daemon:
        for _ in range(20):
            s = daemon.status()
            assert s["ap_id"] == "ap-test" and s["site"] == 'a "b" \\\\', s
        threads = [threading.Thread(target=daemon.status) for _ in range(8)]
        [t.start() for t in threads], [t.join() for t in threads]
        with socket.socket(socket.AF_UNIX) as rude:  # connects and goes
            rude.connect(str(daemon.socket))
        assert daemon.status()


def run_here(functions: dict, at_once: int = AT_ONCE) -> int:
    """Runs what is named t_… (or on the command line) and prints the result of each; the exit status."""
    if os.geteuid():
        return skip_all("it needs root, to make network namespaces")
    total = Sum()
    run_tests(tests_of(functions, sys.argv[3:]), at_once, total)
    return total.status()


if __name__ == "__main__":
    sys.exit(run_here(globals()))
