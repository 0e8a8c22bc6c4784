"""The guest's main program: python3 -m guest PLAN.json. Builds the network, plays the scenario, leaves results in
/run/out.
"""
import contextlib
import copy
import json
import sys
import time

from . import clamp, exporter, live, quic, record, sender, tap, wifi
from .counters import Counters
from .flows import Flow, Traffic
from .losses import Losses
from .namespace import inside
from .net import Wired, address
from .offloads import switch_off
from .sh import batch, run, start, write
from .steps import Steps
from .truth import Truth

OUT = "/run/out"
HOST = "/run/host"


class Ap:
    """One access point with its stations, wired path and flows."""

    def __init__(self, plan: dict, number: int, stations: list[dict]):
        self.plan, self.number, self.stations = plan, number, stations
        self.ns = None if number == 0 else f"ap{number}"
        self.name = plan["name"] if number == 0 else f"{plan['name']}-{number}"
        self.ap_id = plan["ap_id"] or self.name
        self.initial = copy.deepcopy({"stations": stations, "medium": plan["medium"], "wired": plan["wired"]})
        self.wlan, self.ssid = f"wlan{number}", f"lab{number}"

    def build(self) -> None:
        plan, queue = self.plan, self.plan["ap"]["queue"]
        if self.ns:
            batch("ip", [f"netns add {self.ns}"])
            batch("ip", ["link set lo up"], self.ns)
            wifi.move(self.number, self.ns)
        switch_off(self.wlan, self.ns, ("tso", "gso", "gro"))
        self.wired = Wired(self.number, self.ns, plan["ap"]["bridge"], plan["wired"])
        bridged = "br-lan" if plan["ap"]["bridge"] == "linux" else None
        wifi.start_ap(plan["medium"], self.wlan, self.ssid, self.ns, bridged, plan["ap"]["security"])
        if not bridged:
            self.wired.add_wlan(self.wlan)
        if queue["mode"] == "qdisc":
            batch("tc", [f"qdisc replace dev {self.wlan} root {queue['kind']}"], self.ns)
        else:
            write(f"/sys/kernel/debug/ieee80211/phy{self.number}/aqm", f"fq_limit {queue['limit']}")
            write("/sys/module/mac80211/parameters/codel_ce_us", str(queue["ce_us"]))

    def join(self) -> None:
        """The stations, once every AP beacons: a station that scans too early looks again only seconds later."""
        plan = self.plan
        batch("ip", [f"netns add {s['ns']}" for s in self.stations])
        write("/sys/module/tcp_output/parameters/scalable_ect1", str(int(plan["ect1"])))
        for control in (name for name in ("oal_lc", "oal_ecn") if plan[name]):
            with open(f"/proc/{control}_model", "wb") as f:
                f.write(bytes.fromhex(plan[control]))
        for ns in (self.wired.server_ns, *(s["ns"] for s in self.stations)) if plan["ecn"] else ():
            with inside(ns):
                write("/proc/sys/net/ipv4/tcp_ecn", "1")
        for s in self.stations:
            self.set_link(s)
            wifi.start_station(s["radio"], s["ns"], self.ssid, plan["medium"]["freq_mhz"], plan["ap"]["security"],
                               [f"{address(self.number, s['host'])}/24"])
        wifi.wait_associated(self.wlan, self.ns, len(self.stations), self.rejoin)
        # of each: an ARP request is a group frame, which nobody repeats when it is lost, and then a flow would begin
        # seconds late or not at all
        for s in self.stations:
            self.wait_path(address(self.number, s["host"]))

    def joined(self) -> set[str]:
        return set(self.counters.stations())

    def rejoin(self, joined: set[str], names: list[str] | None = None) -> None:
        """An open BSS: ask again; wpa_supplicant does so by itself. names: of whom it is expected (None: all)."""
        for s in self.stations if self.plan["ap"]["security"] == "open" else []:
            if wifi.radio_mac(s["radio"]) not in joined and (names is None or s["name"] in names):
                with contextlib.suppress(OSError):  # it is at it
                    wifi.join(s["radio"], s["ns"], self.ssid, self.plan["medium"]["freq_mhz"], "open")

    def wait_path(self, host: str) -> None:
        """Until a packet goes from the server to a station and back."""
        for _ in range(20):
            if "bytes from" in run(f"ping -c 1 -W 1 {host}", self.wired.server_ns, check=False):
                return
        raise SystemExit(f"guest: {self.wired.server_ns} does not reach {host} through {self.wlan}")

    def set_link(self, station: dict) -> None:
        """Put the station's rate, loss and signal on the air; rates follow the scenario's medium scale."""
        scaled = int(station["rate_kbps"] * self.plan["medium"]["scale"])
        wifi.set_link(wifi.radio_mac(station["radio"]), scaled, station["loss_permille"], station["signal_dbm"])

    def apply(self, change: dict) -> None:
        """One entry of the scenario's changes (see lab/scenarios/README.md)."""
        medium = self.plan["medium"]
        names = change.get("stations", [])
        for s in self.stations:
            if s["name"] not in names:
                continue
            s.update({key: change[key] for key in ("rate_kbps", "loss_permille", "signal_dbm") if key in change})
            self.set_link(s)
            if change.get("leave"):
                wifi.leave(s["radio"], s["ns"], self.plan["ap"]["security"])
            if change.get("join"):
                wifi.join(s["radio"], s["ns"], self.ssid, medium["freq_mhz"], self.plan["ap"]["security"])
        if "scale" in change:
            medium["scale"] = change["scale"]
            for s in self.stations:
                self.set_link(s)
        if "foreign_permille" in change or "noise_dbm" in change:
            medium.update({key: change[key] for key in ("foreign_permille", "noise_dbm") if key in change})
            set_channel(medium)
        if "delay_ms" in change:
            self.wired.set_delay(change["delay_ms"])

    def restore(self) -> None:
        """A period begins again: links, medium and delay as in the scenario's first second."""
        first = copy.deepcopy(self.initial)
        self.plan["medium"].update(first["medium"])
        set_channel(self.plan["medium"])
        for s, was in zip(self.stations, first["stations"]):
            s.update(was)
            self.set_link(s)
        self.wired.set_delay(first["wired"]["delay_ms"])

    def begin(self, losses: Losses) -> None:
        """Counters, exporter and capture first; flows after."""
        with inside(self.ns):
            self.counters = Counters(self.wlan, self.wired.lan)
            self.recorder = record.Recorder(self.wlan, f"{OUT}/{self.name}.nl") if self.plan["record_ms"] else None
        self.exporter = None
        if self.plan["exporter"] and not self.plan["clamp"]:
            config = f"/run/lab/{self.name}.uci"
            sinks = [{"kind": "file", "path": f"{OUT}/{self.name}.oalcap"}] + live.sinks(
                self.plan, HOST) + exporter.own_sections(self.plan, self.ap_id, HOST)
            exporter.configure(config, self.ap_id, self.plan["site"], self.wlan, self.wired.lan, sinks,
                               self.plan["neighbours"]["count"] > 0)
            self.exporter = exporter.begin(HOST + self.plan["exporter"], config, f"{OUT}/{self.name}.exporter.log",
                                           self.ns)
            time.sleep(0.5)
        self.tcpdump = start(
            ["tcpdump", "-i", self.wired.lan, "-s", "96", "-B", "32768", "-w", f"{OUT}/{self.name}.pcap", "tcp"],
            f"/run/lab/{self.name}.tcpdump.log", self.ns) if self.plan["pcap"] else None
        mine = {s["name"]: s for s in self.stations}
        self.specs = [spec for spec in self.plan["flows"] if spec["station"] in mine]
        self.traffic = Traffic([
            Flow(spec, mine[spec["station"]], self.number, self.plan["period_s"], self.plan["looked"])
            for spec in self.specs if spec["cc"] != quic.CC
        ])
        over_quic = [spec for spec in self.specs if spec["cc"] == quic.CC]
        self.quic = quic.Quic(self.plan, self.number, self.name, over_quic, mine, HOST) if over_quic else None
        time.sleep(0.5)
        self.sender = sender.Sender(self.plan, self.number, self.name, self.ap_id, self.ns, self.wired.server_ns, OUT,
                                    HOST) if self.plan["sniff_hz"] else None
        self.clamp = clamp.Clamp(self.plan, self.ns, self.wlan, self.traffic.flows, f"{OUT}/{self.name}.clamp.log",
                                 HOST) if self.plan["clamp"] else None
        self.truth = Truth(self.counters, self.wired.server_ns, [s["ns"] for s in self.stations], losses, self.wlan)

    def begin_flows(self) -> None:
        self.begin_ns = time.time_ns()
        self.traffic.begin()
        if self.quic:
            self.quic.begin()

    def end_flows(self) -> list[dict]:
        """Figures of all flows, in the plan's order."""
        over_tcp, over_quic = iter(self.traffic.end()), iter(self.quic.end() if self.quic else [])
        return [next(over_quic if spec["cc"] == quic.CC else over_tcp) for spec in self.specs]

    def end(self) -> int:
        """Stop everything; a number of problems (0: none)."""
        problems = self.clamp.end() if self.clamp else 0
        flows = self.end_flows()
        self.truth.finish(
            f"{OUT}/{self.name}.truth.json", flows,
            {"scenario": self.plan["name"], "ap": self.name, "channel": channel_totals(), "begin_ns": self.begin_ns,
             "oal_lc": counts_of("oal_lc"),
             "oal_ecn": counts_of("oal_ecn")})
        if self.tcpdump:
            self.tcpdump.terminate()
            self.tcpdump.wait(timeout=10)
        if self.sender:
            status = self.sender.end()
            print(f"guest: oal-sniffer of {self.name} ended with {status}")
            problems += status != 0
        if self.exporter:
            status = exporter.end(self.exporter)
            print(f"guest: ap-exporter of {self.name} ended with {status}")
            problems += status != 0
        return problems


def set_channel(medium: dict) -> None:
    wifi.set_channel(medium["freq_mhz"], medium["foreign_permille"], medium["foreign_burst_us"], medium["ext_permille"],
                     medium["noise_dbm"])


def counts_of(control: str) -> dict[str, int]:
    """Why senders with oal_lc kept or lowered their windows, and how often; why packets counted as marked or not with
    oal_ecn.
    """
    with open(f"/proc/{control}_counts") as f:
        return {name: int(n) for name, n in (line.split() for line in f)}


def channel_totals() -> list[dict]:
    """The medium's own totals, by channel."""
    with open(wifi.CHANNELS) as f:
        return [dict((key, int(value)) for key, value in (pair.split("=") for pair in line.split())) for line in f]


def scan(ap: Ap, freq_mhz: int) -> None:
    """Passive scan of the AP's own channel, so that the kernel lists the neighbours' beacons, as usteer and hostapd do.
    """
    run(f"iw dev {ap.wlan} scan trigger freq {freq_mhz} ap-force passive", ap.ns, check=False)


def main() -> int:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    run("mount -t tmpfs lab /run/lab")
    medium = plan["medium"]
    live.connect(plan)
    set_channel(medium)
    aps = [Ap(plan, n, [s for s in plan["stations"] if s["ap"] == n]) for n in range(plan["aps"])]
    for ap in aps:
        ap.build()
    for ap in aps:
        ap.join()
    if plan["neighbours"]["count"]:
        wifi.start_neighbours(medium, plan["aps"] + len(plan["stations"]), plan["neighbours"]["count"],
                              plan["neighbours"]["per_radio"], plan["neighbours"]["signals_dbm"])
    print(f"guest: {len(plan['stations'])} stations joined {plan['aps']} AP(s) at {time.monotonic():.1f} s after boot",
          flush=True)
    taps = tap.Tap(plan, OUT, HOST) if plan["tap"] else None
    losses = Losses(f"{OUT}/{plan['name']}.losses.csv")
    for ap in aps:
        ap.begin(losses)
    start_s = time.monotonic()
    steps = Steps()
    for ap in aps:
        ap.begin_flows()
        if ap.clamp:
            ap.clamp.begin()
        if plan["changes"]:
            steps.at(0, ap.restore)
        for change in plan["changes"]:
            steps.at(change["at_s"], lambda ap=ap, change=change: ap.apply(change))
            if change.get("join") and plan["ap"]["security"] == "open":
                for n in range(1, 4):
                    steps.at(change["at_s"] + n * 0.3,
                             lambda ap=ap, names=change["stations"]: ap.rejoin(ap.joined(), names))
        if plan["neighbours"]["count"]:
            for n in range(int(plan["period_s"] / plan["scan_s"])):
                steps.at(n * plan["scan_s"], lambda ap=ap: scan(ap, medium["freq_mhz"]))
        if ap.recorder:
            steps.at(plan["record_at_s"], lambda ap=ap: ap.recorder.run(plan["record_ms"]))
    steps.run(start_s, plan["duration_s"], plan["period_s"])
    problems = sum(ap.end() for ap in aps)
    losses.end()
    if taps and taps.end():
        print(f"guest: the capture is not whole: {open(taps.log).read().strip()}")
        problems += 1
    print("guest: scenario done", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
