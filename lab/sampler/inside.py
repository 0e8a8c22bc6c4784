"""The guest's main program: plays the steps one after another, and leaves what it saw in /run/out/sampler.json."""
import collections
import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import time

from guest import play, wifi
from guest.exporter import section
from guest.netlink import NL80211_ATTR_IFINDEX, NL80211_ATTR_MAC, Nl80211, attr
from guest.play import HOST, OUT, wait
from guest.sh import batch, run, start, write

from .device import DEVICE, Device

AP, MEDIUM, CLIENTS = "wlan0", {"freq_mhz": 5180, "width_mhz": 20}, (1, 2)
NL80211_CMD_NEW_STATION, NL80211_CMD_DEL_STATION = 19, 20
ATTR_AID, ATTR_LISTEN_INTERVAL, ATTR_SUPPORTED_RATES, ATTR_FLAGS2 = 16, 18, 19, 67
SOURCES = ("nl80211", "auto")
#: Added by hand, so that there are 512; and those that all have traffic while system calls are counted.
ADDED, BUSY = 510, 8
TRACED_S = 3
QUIET_S = 2.5  # longer than a station counts as active, by what a busy machine delays the last of it


class Exporter:
    """One that takes its stations from `source`."""

    def __init__(self, binary: str, source: str):
        self.binary, self.socket = binary, f"/run/lab/{source}.sock"
        write(
            f"/run/lab/{source}",
            section("exporter", {"ap_id": source, "status_socket": self.socket, "max_stations": 512,
                                 "sampling_cpu_percent": 100})
            + section("nl80211", {"interface": AP, "stations": source})
            + section("file", {"path": f"{OUT}/{source}.oalcap"}))
        self.process = start([binary, "run", "-c", f"/run/lab/{source}"], f"{OUT}/{source}.log")

    def status(self) -> dict:
        return play.status(self.binary, self.socket, self.process)

    def stations(self) -> dict:
        return next(iter(self.status().get("stations", [])), {})

    def reads(self, source: str) -> bool:
        return self.stations().get("source") == source

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


class Play:
    def __init__(self, plan: dict):
        self.plan, self.facts, self.added = plan, {}, []
        self.binary, self.module = HOST + plan["exporter"], HOST + plan["module"]
        self.nl80211 = None

    def index(self) -> int:
        return socket.if_nametoindex(AP)

    def add_station(self, number: int) -> None:
        """One that is only in the AP's list, authorized."""
        self.nl80211.do(
            NL80211_CMD_NEW_STATION, attr(NL80211_ATTR_IFINDEX, struct.pack("=I", self.index())),
            attr(NL80211_ATTR_MAC, mac(number)), attr(ATTR_LISTEN_INTERVAL, struct.pack("=H", 10)),
            attr(ATTR_SUPPORTED_RATES, bytes((0x8c, 0x12, 0x98, 0x24))),
            attr(ATTR_AID, struct.pack("=H", 100 + number)),
            attr(ATTR_FLAGS2, struct.pack("=II", 0b10100010, 0b10100010)))

    def remove_station(self, number: int) -> None:
        self.nl80211.do(NL80211_CMD_DEL_STATION, attr(NL80211_ATTR_IFINDEX, struct.pack("=I", self.index())),
                        attr(NL80211_ATTR_MAC, mac(number)))

    def mark(self, name: str) -> None:
        """A moment at which nothing moves: rows from both sources have to say the same."""
        time.sleep(QUIET_S)
        self.facts.setdefault("marks", {})[name] = time.time_ns() // 1000
        time.sleep(QUIET_S)


def mac(number: int) -> bytes:
    return bytes((2, 0, 0, 7, number >> 8, number & 255))


def load(it: Play) -> None:
    if not os.path.exists(DEVICE):
        run(f"insmod {it.module}")
    wait(lambda: os.path.exists(DEVICE), "device")
    it.facts["mode"] = oct(os.stat(DEVICE).st_mode & 0o777)


def access_point(it: Play) -> None:
    it.freq_mhz = MEDIUM["freq_mhz"]
    wifi.start_ap(MEDIUM, AP, "lab0", None, None, "open")
    batch("ip", [f"addr replace 10.0.0.1/24 dev {AP}"])


def join(it: Play, clients: tuple[int, ...] = CLIENTS) -> None:
    def again(joined: set[str]) -> None:
        for radio in clients:
            if wifi.radio_mac(radio) not in joined:
                with contextlib.suppress(OSError):  # it still tries
                    wifi.join(radio, f"sta{radio}", "lab0", it.freq_mhz, "open")

    again(set())
    wifi.wait_associated(AP, None, len(CLIENTS), again)


def associate(it: Play) -> None:
    access_point(it)
    for radio in CLIENTS:
        batch("ip", [f"netns add sta{radio}"])
        if os.path.exists(wifi.LINKS):
            wifi.set_link(wifi.radio_mac(radio), 65_000, 0, -55)
        wifi.move(radio, f"sta{radio}")
        batch("ip", ["link set lo up", f"link set wlan{radio} up", f"addr add 10.0.0.{10 + radio}/24 dev wlan{radio}",
                     f"neigh replace 10.0.0.1 lladdr {wifi.radio_mac(0)} dev wlan{radio} nud permanent"], f"sta{radio}")
    join(it)
    neighbours()


def neighbours() -> None:
    batch("ip", [f"neigh replace 10.0.0.{10 + radio} lladdr {wifi.radio_mac(radio)} dev {AP} nud permanent"
                 for radio in CLIENTS])


def refusals(it: Play) -> None:
    device = Device()
    it.facts["refused"] = {
        "version": errno.errorcode.get(device.start(it.index(), version=2)),
        "loopback": errno.errorcode.get(device.start(socket.if_nametoindex("lo"))),
        "no interface": errno.errorcode.get(device.start(9999)),
        "ring": errno.errorcode.get(device.start(it.index(), ring=12345)),
        "stations": errno.errorcode.get(device.start(it.index(), stations=513)),
        "tick": errno.errorcode.get(device.start(it.index(), tick_ns=1000)),
    }
    it.facts["refused"]["none"] = device.start(it.index())
    it.facts["refused"]["other size"] = errno.errorcode.get(device.start(it.index(), ring=1 << 15))
    device.close()


def exporters(it: Play) -> None:
    it.exporters = {source: Exporter(it.binary, source) for source in SOURCES}
    for source in SOURCES:
        wait(it.exporters[source].status, f"answer of {source}")
    wait(lambda: it.exporters["auto"].reads("module"), "exporter that takes the module")
    it.facts["nl80211"] = it.exporters["nl80211"].stations()


def traffic(it: Play) -> None:
    for radio in CLIENTS:
        run(f"ping -c 20 -i 0.02 -s {100 * radio} 10.0.0.{10 + radio}")
        run(f"ping -c 10 -i 0.02 -Q 0xb8 10.0.0.{10 + radio}")  # voice
    it.mark("traffic")


def backlog(it: Play) -> None:
    """Frames wait: while a channel switch is announced the AP may not send."""
    run(f"hostapd_cli -p /run/lab/hostapd-ap -i {AP} chan_switch 80 5200 ht blocktx")
    time.sleep(0.2)
    it.facts["unanswered"] = run("ping -c 7 -i 0.02 -s 500 -W 1 10.0.0.11", check=False)
    it.mark("backlog")
    it.freq_mhz = 5200
    wait(lambda: f"({it.freq_mhz} MHz)" in run(f"iw dev {AP} info"), "AP on the other channel")


def leave(it: Play) -> None:
    run(f"hostapd_cli -p /run/lab/hostapd-ap -i {AP} deauthenticate {wifi.radio_mac(2)}")
    wait(lambda: run(f"iw dev {AP} station dump").count("Station ") == 1, "AP that has forgotten it")
    it.mark("left")
    join(it, (2,))
    it.mark("back")


def unload(it: Play) -> None:
    """While it is mapped."""
    it.facts["unload"] = subprocess.run(["rmmod", "oal_sampler"], capture_output=True, text=True).stderr
    time.sleep(1)
    it.facts["after unload"] = it.exporters["auto"].stations()


def interface(it: Play) -> None:
    """It goes away and comes back."""
    run("killall hostapd")
    run(f"iw dev {AP} del")
    wait(lambda: it.exporters["auto"].reads("nl80211"), "exporter that sees that the interface is gone")
    it.facts["gone"] = it.exporters["auto"].stations()
    run(f"iw phy phy0 interface add {AP} type managed")
    access_point(it)
    neighbours()
    join(it)
    wait(lambda: it.exporters["auto"].reads("module"), "module again")
    it.mark("interface back")


def busy(it: Play) -> None:
    """Ten stations, all with traffic: system calls of each exporter."""
    it.nl80211 = Nl80211()
    for number in range(BUSY):
        it.add_station(number)
    batch("ip", [f"neigh replace 10.0.0.{100 + n} lladdr {mac(n).hex(':')} dev {AP} nud permanent"
                 for n in range(BUSY)])
    sender, ends = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic() + TRACED_S + 3
    hosts = [100 + n for n in range(BUSY)] + [10 + r for r in CLIENTS]
    traces = {}
    began = time.monotonic()
    while time.monotonic() < ends:
        for host in hosts:
            sender.sendto(b"x" * 200, (f"10.0.0.{host}", 9))
        time.sleep(0.02)
        if time.monotonic() > began + 1 and not traces:
            traces = {
                source: start([
                    "timeout", "-s", "INT", str(TRACED_S), "strace", "-f", "-q", "-o", f"{OUT}/{source}.calls",
                    "-e", "trace=!clock_gettime,gettimeofday", "-p", str(it.exporters[source].process.pid)
                ], f"{OUT}/{source}.strace")
                for source in SOURCES
            }
    for trace in traces.values():
        trace.wait()
    it.facts["calls"] = {source: calls(source, it.exporters[source].process.pid) for source in SOURCES}
    it.facts["status"] = {source: it.exporters[source].status() for source in SOURCES}


def calls(source: str, main: int) -> dict[str, dict[str, float]]:
    """System calls a second, by their names, of the tick thread, of the one that asks netlink (by recvmmsg() alone),
    and of the others. Reading the clock is none: it is one in this guest alone.
    """
    with open(f"{OUT}/{source}.calls") as f:
        lines = [line.split(None, 1) for line in f if "resumed>" not in line and "+++" not in line]
    sampler = {thread for thread, call in lines if call.startswith("recvmmsg(")} - {str(main)}
    found = {"tick": collections.Counter(), "sampler": collections.Counter(), "others": collections.Counter()}
    for thread, call in lines:
        who = "tick" if thread == str(main) else "sampler" if thread in sampler else "others"
        found[who][call.split("(")[0]] += 1
    return {who: {name: n / TRACED_S for name, n in counts.most_common()} for who, counts in found.items()}


def many(it: Play) -> None:
    """As many as there can be; and a reader that lets its ring overrun."""
    idle = Device()
    idle.start(it.index())
    for number in range(BUSY, ADDED):
        it.add_station(number)
    it.mark("many")
    it.facts["idle reader"] = idle.header()
    idle.write_tail(0x12345677)  # of a reader that has lost its mind: nothing is written any more
    time.sleep(1)
    it.facts["mad reader"] = idle.header()
    idle.close()


def churn(it: Play) -> None:
    """Stations leave and come while they are read."""
    for n in range(300):
        number = (n * 37) % ADDED
        it.remove_station(number)
        if n % 3 == 0:
            time.sleep(0.001)
        it.add_station(number)


def overrun(it: Play) -> None:
    """The exporter stands still for longer than its ring holds."""
    exporter = it.exporters["auto"]
    exporter.process.send_signal(signal.SIGSTOP)
    time.sleep(8)
    exporter.process.send_signal(signal.SIGCONT)
    it.facts["overrun"] = wait(lambda: exporter.reads("nl80211") and exporter.stations(), "overrun")
    it.facts["after overrun"] = wait(lambda: exporter.reads("module") and exporter.stations(), "module again")
    it.mark("after overrun")


def end(it: Play) -> None:
    it.facts["ended"] = {source: exporter.end() for source, exporter in it.exporters.items()}
    it.facts["unload at last"] = subprocess.run(["rmmod", "oal_sampler"], capture_output=True, text=True).stderr
    it.facts["still there"] = os.path.exists(DEVICE)


STEPS = (load, associate, refusals, exporters, traffic, backlog, leave, unload, interface, busy, many, churn, overrun,
         end)


if __name__ == "__main__":
    sys.exit(play.main("sampler", Play, STEPS))
