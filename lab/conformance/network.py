"""The network of a case: a client behind the AP's Wi-Fi port, the server behind a delay, and between them the bridge of
the backend under test.

  client netns sta0 eth0 ── wifi0 [AP: br-lan] lan0 ── wan0 [delay netns] wan1 ── eth0 server netns

The Wi-Fi port is a veth, or wlan0 of mac80211 with hostapd. Half of the delay lies each way; the way down also has a
rate and a queue, and the way up too where a case uploads: without one the ACKs of an upload would overflow the way
down. Captures are taken at the client's port, before the AP, and at the server's, after it: one kernel, one clock.
"""
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from guest import wifi
from guest.namespace import inside
from guest.net import Wired, address
from guest.offloads import switch_off
from guest.sh import batch, run, start

STATION_NS, STATION_HOST, RADIO = "sta0", 10, 1
SERVER6, CLIENT6 = "fd20::1", "fd20::10"
BRIDGE = "br-lan"
MEDIUM = {"freq_mhz": 5180, "width_mhz": 20}
CAPTURE_QUIET_S = 1.5  # tcpdump's ring hands over a block that is not full only after its timer


@dataclass(frozen=True)
class Shape:
    """What a case needs of its network."""
    rtt_ms: float = 20
    rate_mbit: int = 60
    queue_pkts: int = 150
    up_mbit: int = 0  # of the way up, with a queue of the same length; 0: as fast as it goes
    loss: str = ""  # of the way down, in netem's words; with "ecn" it marks instead
    tags: int = 0  # VLAN tags on every frame, outermost 802.1ad where there are two
    offloads: bool = False  # GRO, TSO and checksums left to the ports, everywhere but on the server's own port
    wifi: bool = False
    link_kbps: int = 65_000  # of the air


class Way(Wired):
    """The wired side, with the bridge of the backend."""

    def __init__(self, shape: Shape, switch):
        self.shape, self.switch = shape, switch
        super().__init__(0, None, switch.kind, {"delay_ms": shape.rtt_ms})

    def set_delay(self, delay_ms: float) -> None:
        s = self.shape
        batch(
            "tc",
            [
                f"qdisc replace dev wan0 root netem delay {delay_ms / 2}ms rate {s.rate_mbit}mbit limit"
                f" {s.queue_pkts + int(delay_ms * s.rate_mbit / 24)}"
                + (f" loss {s.loss}" if s.loss else ""),
                f"qdisc replace dev wan1 root netem delay {delay_ms / 2}ms "
                + (f"rate {s.up_mbit}mbit limit {s.queue_pkts + int(delay_ms * s.up_mbit / 24)}"
                   if s.up_mbit else "limit 20000"),
            ],
            self.delay_ns,
        )

    def make_bridge(self) -> None:
        self.switch.make(BRIDGE, ["lan0"])


class Network:
    """Built for a case, taken down after it."""

    def __init__(self, shape: Shape, switch):
        self.shape, self.switch = shape, switch
        self.port, self.client_port = ("wlan0", f"wlan{RADIO}") if shape.wifi else ("wifi0", "eth0")
        self.captures: list = []

    def build(self) -> None:
        self.path = Way(self.shape, self.switch)
        batch("ip", [f"netns add {STATION_NS}"])
        if self.shape.wifi:
            self.associate()
        else:
            batch("ip",
                  [f"link add {self.port} type veth peer name eth0 netns {STATION_NS}", f"link set {self.port} up"])
            batch("ip", ["link set lo up", "link set eth0 up"], STATION_NS)
            self.switch.add(BRIDGE, self.port)
            if not self.shape.offloads:
                for port, ns in ((self.port, None), ("eth0", STATION_NS)):
                    switch_off(port, ns, ("tso", "gso", "gro", "sg", "tx", "rx"))
            batch("ip", [f"addr add {address(0, STATION_HOST)}/24 dev eth0", f"addr add {CLIENT6}/64 dev eth0 nodad"],
                  STATION_NS)
        batch("ip", [f"addr add {SERVER6}/64 dev eth0 nodad"], self.path.server_ns)
        if self.shape.offloads:
            for port, ns in (("lan0", None), ("wan0", self.path.delay_ns)):
                run(f"ethtool -K {port} tx on sg on tso on gso on gro on", ns)
        if self.shape.tags:
            self.tag(STATION_NS, "eth0", f"{address(0, STATION_HOST)}/24", f"{CLIENT6}/64")
            self.tag(self.path.server_ns, "eth0", f"{address(0, 1)}/24", f"{SERVER6}/64")
        self.wait()

    def associate(self) -> None:
        """hostapd and a station on hwsim radios."""
        bridged = BRIDGE if self.switch.kind == "linux" else None
        wifi.start_ap(MEDIUM, self.port, "lab0", None, bridged, "wpa2")
        if not bridged:
            self.switch.add(BRIDGE, self.port)
        set_noise(-92)
        wifi.set_link(wifi.radio_mac(RADIO), self.shape.link_kbps, 0, -55)
        wifi.start_station(RADIO, STATION_NS, "lab0", MEDIUM["freq_mhz"], "wpa2",
                           [f"{address(0, STATION_HOST)}/24", f"{CLIENT6}/64"])
        wifi.wait_associated(self.port, None, 1, lambda joined: None)

    def tag(self, ns: str, port: str, *addresses: str) -> None:
        lines, on = [f"addr flush dev {port}"], port
        if self.shape.tags == 2:
            lines += [f"link add link {on} name outer type vlan proto 802.1ad id 20", "link set outer mtu 1496 up"]
            on = "outer"
        lines += [f"link add link {on} name tagged type vlan id 10", "link set tagged mtu 1492 up"]
        batch("ip", lines + [f"addr add {a} dev tagged" + (" nodad" if ":" in a else "") for a in addresses], ns)

    def wait(self) -> None:
        """Until packets go both ways, over IPv4 and IPv6."""
        for host in (address(0, STATION_HOST), CLIENT6):
            for _ in range(40):
                if "bytes from" in run(f"ping -c 1 -W 1 {host}", self.path.server_ns, check=False):
                    break
            else:
                raise SystemExit(f"conformance: the server does not reach {host}: {self.switch.describe()}")

    def addresses(self, family: int) -> tuple[str, str]:
        """Of client and server."""
        return (address(0, STATION_HOST), address(0, 1)) if family == 4 else (CLIENT6, SERVER6)

    def capture(self, folder: str, case: str, snaplen: int, at_port: bool = False) -> None:
        places = [("client", STATION_NS, self.client_port), ("sender", self.path.server_ns, "eth0")]
        for where, ns, port in places + [("port", None, self.port)] * at_port:
            log = Path(folder) / f"{case}.{where}.log"
            self.captures.append(
                start([
                    "tcpdump", "-Z", "root", "-i", port, "-s",
                    str(snaplen), "-B", "65536", "-w", f"{folder}/{case}.{where}.pcap", "-n"
                ], str(log), ns))
            wait_while(lambda: "listening on" not in log.read_text(), f"tcpdump on {port} has not begun")

    def end_capture(self) -> None:
        time.sleep(CAPTURE_QUIET_S)
        for process in self.captures:
            process.terminate()
        for process in self.captures:
            process.wait(timeout=20)
        self.captures = []

    def sysctl(self, ns: str, name: str, value: str) -> None:
        """A setting of net.ipv4 in a namespace."""
        with inside(ns), open(f"/proc/sys/net/ipv4/{name}", "w") as f:
            f.write(value)

    def remove(self) -> None:
        """Also what was built by half."""
        if self.shape.wifi:
            end_processes("hostapd", "wpa_supplicant")
        self.switch.remove(BRIDGE)
        for words in ("link del lan0", f"link del {self.port}", *(f"netns del {ns}"
                                                                  for ns in (STATION_NS, "delay0", "server0"))):
            run(f"ip {words}", check=False)
        if self.shape.wifi:
            wait_while(lambda: not os.path.exists(f"/sys/class/net/{self.client_port}"),
                       "the client's radio is away with its namespace")


def set_noise(dbm: int) -> None:
    """Of the air's channel, on which nobody else is."""
    wifi.set_channel(MEDIUM["freq_mhz"], 0, 1500, 0, dbm)


def end_processes(*names: str) -> None:
    """All of that name; the guest is ours alone."""
    def running() -> list[int]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "comm").read_text().strip() in names and "State:\tZ" not in (folder
                                                                                          / "status").read_text():
                    found.append(int(folder.name))
        return found

    for pid in running():
        os.kill(pid, signal.SIGTERM)
    wait_while(running, " and ".join(names))


def wait_while(still: Callable[[], object], what: str) -> None:
    for _ in range(500):
        if not still():
            return
        time.sleep(0.02)
    raise SystemExit(f"conformance: after 10 s there is still this: {what}")
