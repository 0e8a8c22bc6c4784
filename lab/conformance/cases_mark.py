"""Marks: CE only on packets with ECT, when it was asked for, and until its deadline; judged by captures of datagrams
at both ends. By the tc program, also at a port of Open vSwitch, and by Open vSwitch itself.
"""
import os

from .case import Case, Result
from .cases_failure import DEAD_MAN_US, OVS
from .marker import Datagrams, Marker
from .marks import AT_ONCE, CE, ECT0, ECT1, NOT_ECT, Marked, datagrams, judge
from .network import Shape
from .rewriter import now_us
from .segment import OPTION_SCALE, SYN, Segment
from .timeline import Rules

KILL_FILE = "/run/lab/mark.kill"
INTERVAL_US = 50_000


def most_marks(after_us: int) -> float:
    """How many packets with ECT(0) may have CE so long after the first set: the first at once, the next interval/√n
    after the n-th. The sum of 1/√k up to n is more than 2√(n + 1) − 2.
    """
    return (max(0, after_us) / INTERVAL_US / 2 + 1) ** 2 + 1


class Marks(Case):
    """Base: numbered datagrams with each ECN field, IPv4 and IPv6, while marks are set by hand."""
    on = ("bpf", "ovs-native")  # of Open vSwitch: at a port of its bridge
    quick = ("bpf", "ovs-native")
    rewriter = False
    by = "bpf"  # the backend

    def play(self, p) -> None:
        sent, marker = Datagrams(p), Marker(p, self.by, KILL_FILE)
        try:
            p.run(0.5)
            self.act(p, marker)
        finally:
            sent.close()
            marker.close()

    def keep(self, p, marker: Marker, marks: int, seconds: float, interval_us: int = INTERVAL_US) -> None:
        """Renewed as an agent does."""
        for _ in range(int(seconds / 0.2)):
            marker.set(marks, 600, interval_us)
            p.run(0.2)

    def rules(self, r: Result) -> Rules:
        """The tc program's map is read by the next packet, whatever bridge its port is in."""
        return AT_ONCE if self.by == "bpf" else r.rules()

    def verdict(self, r: Result) -> Marked:
        sent, received = (list(datagrams(r.folder / f"{r.case.name}.{end}.pcap")) for end in ("sender", "client"))
        found = judge(sent, received, r.events, self.rules(r))
        r.complaints += found.complaints[:5]
        for ecn in (NOT_ECT, CE):
            r.expect(found.plain(ecn) >= 100, f"only {found.plain(ecn)} datagrams that may not be touched")
        r.expect(found.plain(ECT1) >= 50, f"only {found.plain(ECT1)} datagrams with ECT(1) outside of marks")
        return found


class MarkEcn(Marks):
    name, about = "mark-ecn", "ECT(1) each, ECT(0) spaced, Not-ECT and CE never; TCP with ECN hears of it"

    def prepare(self, p) -> None:
        for ns in (p.server_ns, "sta0"):
            p.network.sysctl(ns, "tcp_ecn", "1")

    def act(self, p, marker: Marker) -> None:
        p.flow("flow")
        self.keep(p, marker, 1, 2.0)
        marker.release()
        p.run(0.5)
        self.keep(p, marker, 2, 3.0)
        marker.release()
        p.run(0.5)
        p.facts["stats"] = marker.stats()

    def check(self, r: Result) -> None:
        found = self.verdict(r)
        step, spaced = found.marked(ECT1), found.marked(ECT0)
        r.expect(len(step) >= 50, f"only {len(step)} datagrams with ECT(1) were marked")
        first = next(e["t_us"] for e in r.events if e["what"] == "mark set" and e["marks"] == 2)
        r.expect(len(spaced) >= 5, f"only {len(spaced)} datagrams with ECT(0) were marked")
        r.expect(all(n <= most_marks(t - first) for n, t in enumerate(sorted(spaced), 1)),
                 "ECT(0) was marked more often than its spacing allows")
        # The flow's own data is spaced with the datagrams; its receiver says ECE to what it got.
        echoes = sum(bool(s.flags & 0x40) and not s.flags & 2 for s in r.sender if s.sport > 40000)
        r.expect(echoes > 0, "the TCP sender heard of no mark")
        stats = r.facts["stats"]
        r.expect(stats["errors"] == 0 and not stats.get("packets", {}).get("failed"), f"marks that failed: {stats}")
        r.figure(f"{len(step)} ECT(1) and {len(spaced)} ECT(0) datagrams marked; {echoes} ACKs with ECE")


class MarkDeadline(Marks):
    name, about = "mark-deadline", "marks that nobody renews end by their time; a release ends them at once"

    def act(self, p, marker: Marker) -> None:
        for ttl_ms in (100, 400, 1000):
            marker.set(1, ttl_ms)
            p.run(ttl_ms / 1000 + 0.4)
        marker.set(1, 1000)
        p.run(0.3)
        marker.release()
        p.run(0.5)

    def check(self, r: Result) -> None:
        found = self.verdict(r)
        r.expect(len(found.marked(ECT1)) >= 50, f"only {len(found.marked(ECT1))} datagrams were marked")
        r.figure(f"{len(found.marked(ECT1))} marked, {found.plain(ECT1)} plain")


class MarkAgentKilled(Marks):
    name, about = "mark-agent-killed", "SIGKILL while marking: no mark after a second"

    def act(self, p, marker: Marker) -> None:
        self.keep(p, marker, 1, 1.0)
        marker.set(1, 1000)  # the longest that there is, set at the last moment
        marker.kill()
        p.run(2.0)

    def check(self, r: Result) -> None:
        found, killed = self.verdict(r), r.event("mark killed")["t_us"]
        marked = found.marked(ECT1)
        late = (marked[-1] - killed) if marked else DEAD_MAN_US
        r.expect(bool(marked) and late <= DEAD_MAN_US + self.rules(r).late_us,
                 f"a mark {late} µs after the agent's death")
        plain = found.plain(ECT1, killed + DEAD_MAN_US)
        r.expect(plain >= 20, f"only {plain} plain datagrams after that second")
        r.figure(f"last mark {late / 1000:.0f} ms after SIGKILL, {plain} plain ones after 1 s")
        self.beyond(r, found, killed)

    def beyond(self, r: Result, found: Marked, killed: int) -> None:
        """What a case expects besides."""


class MarkKillFile(Marks):
    name, about = "mark-kill-file", "the kill file ends marks, and none can be set while it is there"
    within_us = 50_000

    def act(self, p, marker: Marker) -> None:
        self.keep(p, marker, 1, 1.0)
        marker.set(1, 1000)
        p.run(0.2)
        open(KILL_FILE, "w").close()
        p.facts["off_us"] = now_us()
        p.run(self.within_us / 1e6)
        marker.note("off", p.facts["off_us"])
        marker.set(1, 1000, ok=False)
        p.run(0.5)
        os.unlink(KILL_FILE)
        p.run(0.2)
        self.keep(p, marker, 1, 0.6)

    def check(self, r: Result) -> None:
        found, off = self.verdict(r), r.facts["off_us"]
        last = max((t for t in found.marked(ECT1) if t < off + 500_000), default=off)
        r.expect(len(found.marked(ECT1, off + 700_000)) >= 20, "marks did not come back")
        r.figure(f"last mark {max(0, last - off) / 1000:.1f} ms after the kill file")


class ByBridge:
    """The same, by Open vSwitch's action mark_ce: in the kernel's data path, by way of vswitchd, and in vswitchd's own
    data path.
    """
    on = OVS
    quick = ("ovs-native", "ovs-slow")
    by = "ovs"


class BridgeEcn(ByBridge, MarkEcn):
    name = "mark-ovs-ecn"
    shown = {  # words of one line
        "ovs-native": (["ECN marks", "Yes"], ["actions:mark_ce(marks=1,", "until_ms"]),
        "ovs-slow": (["slow_path(action)"],),
        "ovs-netdev": (["actions:mark_ce(marks=1,", "until_ms"],),
    }

    def keep(self, p, marker: Marker, marks: int, seconds: float, interval_us: int = INTERVAL_US) -> None:
        super().keep(p, marker, marks, seconds, interval_us)
        p.facts.setdefault("shown", p.switch.shown())

    def check(self, r: Result) -> None:
        super().check(r)
        for words in (["table=0, n_packets=", "priority=60001,reg14=0,dl_dst=", "mark_ce(marks=1,ttl_ms="],
                      *self.shown[r.backend]):
            r.expect(any(all(word in line for word in words) for line in r.facts["shown"].splitlines()),
                     f"{' … '.join(words)} is not shown to operators:\n{r.facts['shown']}")


class BridgeDeadline(ByBridge, MarkDeadline):
    name = "mark-ovs-deadline"


class BridgeAgentKilled(ByBridge, MarkAgentKilled):
    name = "mark-ovs-agent-killed"


class BridgeKillFile(ByBridge, MarkKillFile):
    name = "mark-ovs-kill-file"


class BridgeTagged(ByBridge, MarkEcn):
    name, about = "mark-ovs-vlan", "a VLAN tag on every frame: marks as without"
    shape = Shape(tags=1)


class BridgeBothKilled(ByBridge, MarkAgentKilled):
    name, about = (
        "mark-ovs-both-killed",
        "SIGKILL to agent and vswitchd while marking: the kernel's own flows go on, and no mark after a second",
    )
    on = ("ovs-native",)  # slow path and netdev forward nothing without vswitchd
    quick = ("ovs-native",)

    def act(self, p, marker: Marker) -> None:
        self.keep(p, marker, 3, 1.0)
        marker.set(3, 1000, INTERVAL_US)  # the longest that there is
        p.run(0.1)  # until the kernel has it: vswitchd is about to die
        p.switch.kill()
        marker.kill()
        p.run(2.0)
        p.switch.restarted("br-lan")

    def beyond(self, r: Result, found: Marked, killed: int) -> None:
        r.expect(len(found.marked(ECT1, killed)) >= 20, "the kernel alone marked nothing: the case shows nothing")
        spaced = found.marked(ECT0)
        r.expect(len(spaced) >= 5, f"only {len(spaced)} datagrams with ECT(0) were marked")
        r.expect(not spaced or spaced[-1] <= killed + DEAD_MAN_US, "ECT(0) was marked after that second")


class BridgeWithClamp(ByBridge, Marks):
    name, about = (
        "mark-ovs-with-clamp",
        "a window and marks for the same packets, each by a flow of its own: both hold, also when the marks end",
    )
    rewriter = True
    window_bytes = 24_000

    def prepare(self, p) -> None:
        for ns in (p.server_ns, "sta0"):
            p.network.sysctl(ns, "tcp_ecn", "1")

    def act(self, p, marker: Marker) -> None:
        flow = p.flow("flow")
        p.run(0.5)
        p.keep(flow, self.window_bytes, True)
        self.keep(p, marker, 3, 1.6)
        marker.release()
        p.events.append({"what": "marks end", "t_us": now_us()})
        p.run(0.6)
        p.release(flow, True)
        p.run(0.4)

    def check(self, r: Result) -> None:
        self.verdict(r)
        came = [s for s in r.client if s.sport < 40000]  # the server's data, which acknowledges too
        scale = next(s.options()[OPTION_SCALE][0] for s in r.sender if s.sport < 40000 and s.flags & SYN)
        window, end_us = self.window_bytes >> scale, r.event("marks end")["t_us"]

        def both(s: Segment) -> bool:
            return s.frame[15] & 3 == CE and s.window == window

        r.expect(sum(map(both, came)) >= 5, f"only {sum(map(both, came))} segments with a mark and a lowered window")
        clamped = sum(s.window == window for s in came if s.t_us > end_us)
        r.expect(clamped >= 50, f"only {clamped} windows were lowered once the marks were released")
        r.expect(all(s.checksum_right() is not False for s in came), "a checksum is wrong")
        r.figure(f"{sum(map(both, came))} segments with CE and the lowered window; {clamped} lowered without marks")
