"""The wired side of one access point.

  station netns ~~ wlan0 [AP: bridge br-lan] lan0 -- wan0 [delay netns: bridge] wan1 -- eth0 [server netns]

Half of the delay is on wan0 (towards the AP), half on wan1 (towards the server): neither is a queue of the AP. Offloads are off
everywhere, so that what is captured on lan0 are the packets of the wire with their real checksums.
"""
import os
import time

from .sh import run

OFFLOADS = "tso off gso off gro off sg off tx off rx off"


AP_HOST = 2


def address(ap: int, host: int) -> str:
    """Host 1 is the server, 2 the AP's bridge, 10+n station n."""
    return f"10.20.{ap}.{host}"


class Wired:
    def __init__(self, ap: int, ns: str | None, bridge: str, delay_ms: float):
        self.ap_ns, self.bridge = ns, bridge
        self.delay_ns, self.server_ns = f"delay{ap}", f"server{ap}"
        self.lan = "lan0"
        for name in (self.delay_ns, self.server_ns):
            run(f"ip netns add {name}")
            run("ip link set lo up", name)
        run(f"ip link add lan0 type veth peer name wan0 netns {self.delay_ns}", ns)
        run(f"ip link add wan1 type veth peer name eth0 netns {self.server_ns}", self.delay_ns)
        run("ip link add br0 type bridge", self.delay_ns)
        for port in ("wan0", "wan1"):
            run(f"ethtool -K {port} {OFFLOADS}", self.delay_ns)
            run(f"ip link set {port} master br0 up", self.delay_ns)
        run("ip link set br0 up", self.delay_ns)
        run(f"ethtool -K lan0 {OFFLOADS}", ns)
        run("tc qdisc add dev lan0 root fq_codel", ns)
        run("ip link set lan0 up", ns)
        run(f"ethtool -K eth0 {OFFLOADS}", self.server_ns)
        run(f"ip addr add {address(ap, 1)}/24 dev eth0", self.server_ns)
        run("ip link set eth0 up", self.server_ns)
        self.set_delay(delay_ms)
        self.make_bridge()
        run(f"ip addr add {address(ap, AP_HOST)}/24 dev br-lan", ns)

    def set_delay(self, delay_ms: float) -> None:
        """Round-trip delay of the wired path."""
        for port in ("wan0", "wan1"):
            run(f"tc qdisc replace dev {port} root netem delay {delay_ms / 2}ms limit 20000", self.delay_ns)

    def make_bridge(self) -> None:
        if self.bridge == "linux":
            run("ip link add br-lan type bridge", self.ap_ns)
            run("ip link set lan0 master br-lan", self.ap_ns)
            run("ip link set br-lan up", self.ap_ns)
        elif self.bridge == "ovs":
            start_ovs()
            run("ovs-vsctl --db=unix:/run/lab/ovsdb.sock add-br br-lan -- add-port br-lan lan0", self.ap_ns)
            run("ip link set br-lan up", self.ap_ns)
        else:
            raise SystemExit(f"guest: bridge must be linux or ovs, not {self.bridge}")

    def add_wlan(self, iface: str) -> None:
        """hostapd adds wlan to a Linux bridge itself."""
        if self.bridge == "ovs":
            run(f"ovs-vsctl --db=unix:/run/lab/ovsdb.sock add-port br-lan {iface}", self.ap_ns)


def start_ovs() -> None:
    # OVS 3.1 counts the CPUs every 10 s from time 0 on: started earlier after boot it believes in none and handles no packet
    time.sleep(max(0.0, 10.5 - time.monotonic()))
    os.environ.update(OVS_RUNDIR="/run/lab", OVS_DBDIR="/run/lab", OVS_LOGDIR="/run/lab", OVS_SYSCONFDIR="/run/lab")
    run("ovsdb-tool create /run/lab/ovs.db /usr/share/openvswitch/vswitch.ovsschema")
    run("ovsdb-server /run/lab/ovs.db --remote=punix:/run/lab/ovsdb.sock --pidfile --detach --log-file=/run/lab/ovsdb.log")
    run("ovs-vsctl --db=unix:/run/lab/ovsdb.sock --no-wait init")
    run("ovs-vswitchd unix:/run/lab/ovsdb.sock --pidfile --detach --log-file=/run/lab/vswitchd.log")
