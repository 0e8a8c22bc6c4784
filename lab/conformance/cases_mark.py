"""Marks: CE only on packets with ECT, when it was asked for, and until its deadline; judged by captures of datagrams
at both ends.
"""
import os

from .case import Case, Result
from .cases_failure import DEAD_MAN_US
from .marker import Datagrams, Marker
from .marks import CE, ECT0, ECT1, NOT_ECT, Marked, datagrams, judge
from .rewriter import now_us

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

    def play(self, p) -> None:
        sent, marker = Datagrams(p), Marker(p, KILL_FILE)
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

    def verdict(self, r: Result) -> Marked:
        sent, received = (list(datagrams(r.folder / f"{r.case.name}.{end}.pcap")) for end in ("sender", "client"))
        found = judge(sent, received, r.events)
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
        p.facts["packets"] = marker.packets()

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
        r.expect(r.facts["packets"]["failed"] == 0, f"marks that failed: {r.facts['packets']}")
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
        r.expect(bool(marked) and late <= DEAD_MAN_US + 2000, f"a mark {late} µs after the agent's death")
        plain = found.plain(ECT1, killed + DEAD_MAN_US)
        r.expect(plain >= 20, f"only {plain} plain datagrams after that second")
        r.figure(f"last mark {late / 1000:.0f} ms after SIGKILL, {plain} plain ones after 1 s")


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
