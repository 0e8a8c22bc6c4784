"""The guest's main program: builds the router, plays the steps, and leaves what it saw in /run/out/router.json.

  internet's namespace            chip's            the router                                 station's namespace
  eth0 203.0.113.2 ────────────── port cpu ══════════ eth0 ┄ wan (DSA) [┄ pppoe-wan] NAT br-lan.10 ─ phy0-ap0 ~~ wlan1
"""
import contextlib
import os
import signal
import subprocess
import sys
import time

from guest import play, wifi
from guest.exporter import begin, section
from guest.offloads import switch_off
from guest.play import HOST, OUT, wait
from guest.sh import batch, run, start, write

RADIO, CLIENT_RADIO, MEDIUM = "phy0-ap0", 1, {"freq_mhz": 5180, "width_mhz": 20}
#: Of the switch, as its driver names it, and as OpenWrt does.
PORT, WAN, PPP = 1, "wan", "pppoe-wan"
VLAN, CLIENT, GATEWAY = 10, "192.168.10.2", "192.168.10.1"
SERVER, ROUTER, OTHER, DIALLED = "203.0.113.2", "203.0.113.1", "203.0.113.9", "203.0.113.77"
OFFLOADS = ("tso", "gso", "gro", "sg", "tx", "rx")
AP, FOLDER, KILL = "router", "/run/lab/ap", "/run/lab/kill"
#: A span in which windows are judged; flows last longer than the steps that they are in.
SPAN_S, FLOW_S = 1.0, 60
#: The exporter's tick thread may rest so long: what status says of ticks is as old.
REST_S = .1


def ready(words: list[str], log: str, ns: str | None) -> subprocess.Popen:
    """A program of this folder, once it says that it is ready."""
    process = start([sys.executable, *words], f"{OUT}/{log}.log", ns)
    wait(lambda: "ready" in open(f"{OUT}/{log}.log").read(), log)
    return process


class Play:
    def __init__(self, plan: dict):
        self.plan, self.binary = plan, HOST + plan["exporter"]
        self.facts: dict = {"spans": {}, "status": {}}
        self.flows: list[subprocess.Popen] = []

    def status(self) -> dict:
        return play.status(self.binary, f"{FOLDER}/sock", self.exporter)

    def path(self) -> dict:
        """Of control: what met clamps."""
        return self.status()["control"]["data_path"]["packets"]

    def fetch(self) -> None:
        """A flow from the server to the station, from now on."""
        self.flows.append(ready(["router/serve.py", "fetch", SERVER, str(FLOW_S)], f"fetch{len(self.flows)}", "sta"))

    def lowered(self, name: str) -> None:
        """A span in which every ACK has to be lowered."""
        before = self.path()["clamped"]
        wait(lambda: self.path()["clamped"] > before + 20, f"lowered ACK: {name}")
        self.span(name)

    def span(self, name: str) -> None:
        began = time.time_ns() // 1000
        time.sleep(SPAN_S)
        self.facts["spans"][name] = (began, time.time_ns() // 1000)
        self.facts["status"][name] = self.status()


def switch(it: Play) -> None:
    """eth0 is the conduit of a DSA switch; behind its port is the internet."""
    batch("ip", ["netns add chip", "netns add internet", "netns add sta",
                 "link add eth0 type veth peer name cpu netns chip", "link set eth0 up"])
    batch("ip", ["link add wire type veth peer name eth0 netns internet", "link set cpu mtu 1504 up",
                 "link set wire up"], "chip")
    for port, ns in (("eth0", None), ("cpu", "chip"), ("wire", "chip"), ("eth0", "internet")):
        switch_off(port, ns, OFFLOADS)
        run(f"sysctl -qw net.ipv6.conf.{port}.disable_ipv6=1", ns)  # no frames of its own, which would have no tag
    if not os.path.exists("/sys/class/net/lan1"):
        write("/sys/bus/mdio_bus/drivers/dsa-loop/bind", "fixed-0:1f")
    wait(lambda: os.path.exists("/sys/class/net/lan1"), "port of the switch")
    with open("/sys/class/net/eth0/dsa/tagging") as f:
        it.facts["tagging"] = f.read().strip()
    ready(["router/chip.py", "cpu", "wire", str(PORT - 1)], "chip", "chip")
    batch("ip", [f"link set lan{PORT} name {WAN}", f"addr add {ROUTER}/24 dev {WAN}", f"link set {WAN} up"])
    batch("ip", ["link set lo up", f"addr add {SERVER}/24 dev eth0", f"addr add {OTHER}/32 dev lo", "link set eth0 up"],
          "internet")
    batch("ip", [f"addr del {OTHER}/32 dev lo"], "internet")


def wifi_and_bridge(it: Play) -> None:
    """A bridge whose Wi-Fi port is in a VLAN, as OpenWrt's with vlan_filtering."""
    batch("ip", [f"link set wlan0 name {RADIO}", "link add br-lan type bridge vlan_filtering 1", "link set br-lan up"])
    wifi.start_ap(MEDIUM, RADIO, "lab0", None, "br-lan", "open")
    batch("bridge", [f"vlan add vid {VLAN} dev {RADIO} pvid untagged", f"vlan add vid {VLAN} dev br-lan self"])
    batch("ip", [f"link add link br-lan name br-lan.{VLAN} type vlan id {VLAN}", f"link set br-lan.{VLAN} up",
                 f"addr add {GATEWAY}/24 dev br-lan.{VLAN}"])
    wifi.start_station(CLIENT_RADIO, "sta", "lab0", MEDIUM["freq_mhz"], "open", [f"{CLIENT}/24"])

    def again(_: set[str]) -> None:
        with contextlib.suppress(OSError):  # it still tries
            wifi.join(CLIENT_RADIO, "sta", "lab0", MEDIUM["freq_mhz"], "open")

    wifi.wait_associated(RADIO, None, 1, again)
    batch("ip", [f"route add default via {GATEWAY}"], "sta")
    reach(GATEWAY)


def reach(address: str) -> None:
    wait(lambda: "bytes from" in run(f"ping -c 1 -W 1 {address}", "sta", check=False), f"path to {address}")


def masquerade(out: str, to: str = "masquerade") -> None:
    write("/run/lab/nft", f"flush ruleset\nadd table ip nat\n"
                          f"add chain ip nat post {{ type nat hook postrouting priority 100; }}\n"
                          f"add rule ip nat post oifname {out} {to}\n")
    run("nft -f /run/lab/nft")


def nat(it: Play) -> None:
    write("/proc/sys/net/ipv4/ip_forward", "1")
    masquerade(WAN)
    reach(SERVER)
    for name, port, ns in (("server", "eth0", "internet"), ("conduit", "eth0", None)):
        log = f"/run/lab/{name}.tcpdump"
        it.flows.append(start(["tcpdump", "-U", "-i", port, "-s", "128", "-w", f"{OUT}/{name}.pcap"], log, ns))
        wait(lambda log=log: "listening on" in open(log).read(), f"capture: {name}")
    ready(["router/serve.py", "serve", SERVER], "serve", "internet")


def exporter(it: Play) -> None:
    """As the package's configuration has it, with control; its policy is on flash as after a restart."""
    os.mkdir(FOLDER)
    subprocess.run([it.plan["python"], "router/bundle.py", FOLDER, AP], check=True)
    agent = {"url": "https://127.0.0.1:9/", "ca": f"{FOLDER}/test-ca.pem", "cert": f"{FOLDER}/%s.pem",
             "key": f"{FOLDER}/%s.key", "trusted_keys": f"{FOLDER}/trusted", "state_dir": f"{FOLDER}/state"}
    text = section("exporter", {"ap_id": AP, "site": "lab", "status_socket": f"{FOLDER}/sock"})
    text += section("nl80211", {"interface": RADIO}) + section("tap", {"interface": RADIO})
    text += section("qdisc", {"interface": RADIO}) + section("agent", agent)
    text += section("rwnd", {"mode": "enforce", "kill_file": KILL})
    text += section("file", {"path": f"{OUT}/router.oalcap"})
    write(f"{FOLDER}/uci", text)
    it.exporter = begin(it.binary, f"{FOLDER}/uci", f"{OUT}/exporter.log", None)
    wait(it.status, "exporter that answers")


def behind_nat(it: Play) -> None:
    """Over the port of the switch."""
    it.fetch()
    it.lowered("nat")


def rule_changed(it: Play) -> None:
    """Another rule of NAT while the flow runs: it goes on as it was, a new one has the other address."""
    batch("ip", [f"addr add {OTHER}/24 dev {WAN}"])
    masquerade(WAN, f"snat to {OTHER}")
    it.fetch()
    it.lowered("other rule")


def killed(it: Play) -> None:
    write(KILL, "")
    wait(lambda: it.status()["control"]["clamps"] == 0, "end of all clamps")
    it.span("killed")
    os.remove(KILL)
    it.lowered("not killed")


def dial(it: Play) -> None:
    """PPPoE over the same port: negotiation, session and addresses by pppd and pppoe-server."""
    write("/run/lab/server-options", "noauth\nlcp-echo-interval 0\nnodetach\ndebug\n")
    start(["pppoe-server", "-F", "-I", "eth0", "-L", SERVER, "-R", DIALLED, "-N", "1", "-O", "/run/lab/server-options"],
          f"{OUT}/pppoe-server.log", "internet")
    batch("ip", [f"addr flush dev {WAN}"])
    batch("ip", ["addr flush dev eth0"], "internet")
    start(["pppd", "plugin", "pppoe.so", f"nic-{WAN}", "ifname", PPP, "nodetach", "noauth", "noipdefault",
           "defaultroute", "mtu", "1492", "mru", "1492", "debug"], f"{OUT}/pppd.log", None)
    wait(lambda: DIALLED in run(f"ip addr show dev {PPP}", check=False), "address of the dialled line")
    masquerade(PPP)
    reach(SERVER)


def over_pppoe(it: Play) -> None:
    it.fetch()
    it.lowered("pppoe")
    write(KILL, "")
    wait(lambda: it.status()["control"]["clamps"] == 0, "end of all clamps")
    it.span("pppoe killed")


def clock_steps(it: Play) -> None:
    """An hour back, at a moment at which a reload is asked for and so the agent writes to flash, and forth again."""
    os.remove(KILL)
    it.lowered("before the steps")
    it.facts["steps of the clock"] = []
    for step_s in (-3600, 3600):
        before = it.status()
        time.clock_settime(time.CLOCK_REALTIME, time.time() + step_s)
        it.exporter.send_signal(signal.SIGHUP)
        wait(lambda before=before: it.status()["reloads"] > before["reloads"], "reload", 10)
        wait(lambda before=before: it.status()["clock"]["steps"] > before["clock"]["steps"], "step that is noticed", 10)
        clamped = wait(lambda: it.path()["clamped"], "status of the new configuration")
        wait(lambda clamped=clamped: it.path()["clamped"] > clamped + 20, "lowered ACK after a step", 10)
        it.facts["steps of the clock"].append((before, it.status()))


def slow_driver(it: Play) -> None:
    """Another exporter on the same radio, to whose questions the kernel takes 50 ms each (by strace)."""
    socket = f"{FOLDER}/slow"
    write(
        f"{FOLDER}/slow.uci",
        section("exporter", {"ap_id": "slow", "status_socket": socket})
        + section("nl80211", {"interface": RADIO, "stations": "nl80211"}) + section("qdisc", {"interface": RADIO})
        + section("file", {"path": f"{OUT}/slow.oalcap"}))
    # recvmmsg() is how answers are read, and used for nothing else
    slow = start(["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=recvmmsg", "-e",
                  "inject=recvmmsg:delay_exit=50000:when=20+", it.binary, "run", "-c", f"{FOLDER}/slow.uci"],
                 f"{OUT}/slow.log")

    def status() -> dict:
        return play.status(it.binary, socket)

    wait(lambda: (s := status()) and all(one["skipped"] > 100 for one in s["samplers"]), "samplers that wait")
    before = status()
    time.sleep(5 * SPAN_S + REST_S)
    it.facts["slow driver"] = (before, status())
    run(f"pkill -TERM -P {slow.pid}")
    slow.wait(timeout=60)


def end(it: Play) -> None:
    it.exporter.send_signal(signal.SIGTERM)
    it.facts["ended"] = it.exporter.wait(timeout=60)
    for process in it.flows:
        process.terminate()
        process.wait()
    it.facts["filters"] = run(f"tc filter show dev {RADIO} ingress")


STEPS = (switch, wifi_and_bridge, nat, exporter, behind_nat, rule_changed, killed, dial, over_pppoe, clock_steps,
         slow_driver, end)


if __name__ == "__main__":
    sys.exit(play.main("router", Play, STEPS, ("pppd.log", "pppoe-server.log", "exporter.log")))
