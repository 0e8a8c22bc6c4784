"""The wired side of one access point.

  station netns ~~ wlan0 [AP: bridge br-lan] lan0 -- wan0 [delay netns: bridge] wan1 -- eth0 [server netns]

Half of the delay is on wan0 (towards the AP), half on wan1 (towards the server), and so is half of the jitter; loss,
rate and limit are those of each. Neither is a queue of the AP. Offloads are off everywhere, so that what is captured on
lan0 are the packets of the wire with their real checksums.
"""
import os
import time

from .offloads import switch_off
from .sh import batch, run

OFFLOADS = ("tso", "gso", "gro", "sg", "tx", "rx")


AP_HOST = 2


def address(ap: int, host: int) -> str:
    """Host 1 is the server, 2 the AP's bridge, 10+n station n."""
    return f"10.20.{ap}.{host}"


def netem(wired: dict) -> str:
    """Arguments of netem for one way of the path. Without more than delay they are what they always were."""
    delay_ms, jitter_ms = wired["delay_ms"] / 2, wired["jitter_ms"] / 2
    words = [f"delay {delay_ms}ms" + (f" {jitter_ms}ms" if jitter_ms else "")]
    if wired["loss"]:
        words.append(f"loss {100 * wired['loss']:.6g}%")
    if wired["rate_mbps"]:
        words.append(f"rate {round(wired['rate_mbps'] * 1e6)}bit")
    return " ".join((*words, f"limit {int(wired['limit_pkts'])}"))


class Wired:
    def __init__(self, ap: int, ns: str | None, bridge: str, wired: dict):
        self.path, self.ap_ns, self.bridge = dict(wired), ns, bridge
        self.delay_ns, self.server_ns = f"delay{ap}", f"server{ap}"
        self.lan = "lan0"
        batch("ip", [f"netns add {self.delay_ns}", f"netns add {self.server_ns}"])
        batch("ip", [f"link add lan0 type veth peer name wan0 netns {self.delay_ns}"], ns)
        batch("ip", [
            "link set lo up", f"link add wan1 type veth peer name eth0 netns {self.server_ns}",
            "link add br0 type bridge", "link set wan0 master br0 up", "link set wan1 master br0 up", "link set br0 up"
        ], self.delay_ns)
        batch("ip", ["link set lo up", f"addr add {address(ap, 1)}/24 dev eth0", "link set eth0 up"], self.server_ns)
        for port, where in (("wan0", self.delay_ns), ("wan1", self.delay_ns), ("lan0", ns), ("eth0", self.server_ns)):
            switch_off(port, where, OFFLOADS)
        batch("tc", ["qdisc add dev lan0 root fq_codel"], ns)
        batch("ip", ["link set lan0 up"], ns)
        self.set_delay(wired["delay_ms"])
        self.make_bridge()
        batch("ip", [f"addr add {address(ap, AP_HOST)}/24 dev br-lan"], ns)

    def set_delay(self, delay_ms: float) -> None:
        """Round-trip delay of the wired path; what else it has stays."""
        self.path["delay_ms"] = delay_ms
        batch("tc", [f"qdisc replace dev {port} root netem {netem(self.path)}" for port in ("wan0", "wan1")],
              self.delay_ns)

    def make_bridge(self) -> None:
        if self.bridge == "linux":
            batch("ip", ["link add br-lan type bridge", "link set lan0 master br-lan", "link set br-lan up"],
                  self.ap_ns)
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
    # OVS 3.1 counts the CPUs every 10 s from time 0 on: started earlier after boot it believes in none and handles no
    # packet
    time.sleep(max(0.0, 10.5 - time.monotonic()))
    os.environ.update(OVS_RUNDIR="/run/lab", OVS_DBDIR="/run/lab", OVS_LOGDIR="/run/lab", OVS_SYSCONFDIR="/run/lab")
    run("ovsdb-tool create /run/lab/ovs.db /usr/share/openvswitch/vswitch.ovsschema")
    run(
        "ovsdb-server /run/lab/ovs.db --remote=punix:/run/lab/ovsdb.sock --pidfile --detach"
        " --log-file=/run/lab/ovsdb.log"
    )
    run("ovs-vsctl --db=unix:/run/lab/ovsdb.sock --no-wait init")
    run("ovs-vswitchd unix:/run/lab/ovsdb.sock --pidfile --detach --log-file=/run/lab/vswitchd.log")
