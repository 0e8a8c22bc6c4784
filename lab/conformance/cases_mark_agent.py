"""The whole agent marks: the policy `mark` at a push service, a station that waits, and what ends its marks. Judged at
the AP's port: behind it mac80211's own queues mark too.
"""
from .case import Result
from .cases_control import SWITCH_US, Control, DeadMan, KillFile, KillPush
from .cases_failure import DEAD_MAN_US
from .daemon import Exporter, Push
from .marker import Datagrams
from .marks import AT_ONCE, CE, ECT0, ECT1, NOT_ECT, Marked, datagrams, judge
from .rewriter import now_us


class Marking(Control):
    """Base: two flows with ECN over Wi-Fi, whose station waits and is marked, and numbered datagrams beside them."""
    at_port = True
    # marks as soon as anything waits, and for long
    policy = {"target_us": 1000, "target_txop_permille": 100, "hold_us": 100_000}

    def push(self, p) -> Push:
        return Push(p.python, f"{p.folder}/{self.name}.push.log", None, self.policy, marks=True)

    def exporter(self, p, push: Push) -> Exporter:
        return Exporter(p.binary, push.port, p.switch.options(p.network.port), p.folder, self.name, "mark")

    def in_force(self, control: dict) -> bool:
        return control.get("policies", {}).get("mark") == "enforce"

    def prepare(self, p) -> None:
        for ns in (p.server_ns, "sta0"):
            p.network.sysctl(ns, "tcp_ecn", "1")

    def play(self, p) -> None:
        sent = Datagrams(p)
        try:
            super().play(p)
        finally:
            sent.close()

    def clamping(self, p, exporter) -> None:
        """Until the exporter says that a station has marks."""
        p.loop.until(lambda: exporter.control().get("mark", {}).get("stations", 0) > 0,
                     f"a station is marked: {exporter.control()}", every_s=0.1)

    def free(self, p, begin_us: int, end_us: int = 0) -> None:
        """From then until that moment, or until now, the agent may have marked what it liked."""
        p.events.append({"what": "mark free", "t_us": begin_us, "end_us": (end_us or now_us()) + self.within_us,
                         "ok": True})

    def judged(self, r: Result) -> Marked:
        sent, left = (list(datagrams(r.folder / f"{r.case.name}.{place}.pcap")) for place in ("sender", "port"))
        found = judge(sent, left, r.events, AT_ONCE)
        r.complaints += found.complaints[:5]
        for ecn in (NOT_ECT, CE):
            r.expect(found.plain(ecn) >= 100, f"only {found.plain(ecn)} datagrams that may not be touched")
        return found

    def marked(self, found: Marked) -> list[int]:
        return sorted(found.marked(ECT1) + found.marked(ECT0))


class MarkingOff(Marking):
    """Base: marked, switched off, and on again."""
    within_us = SWITCH_US

    def check(self, r: Result) -> None:
        found = self.judged(r)
        off, again = r.event("mark free")["end_us"], r.facts["again_us"]
        before, after = ([t for t in self.marked(found) if t <= off], [t for t in self.marked(found) if t > again])
        r.expect(len(before) >= 20, f"only {len(before)} datagrams were marked before the switch")
        r.expect(len(after) >= 20, f"only {len(after)} datagrams were marked after it was back")
        plain = found.plain(ECT1, off) - found.plain(ECT1, again)
        r.expect(plain >= 50, f"only {plain} plain datagrams while it was off")
        r.figure(f"last mark {max(0, (before or [off])[-1] - off + self.within_us) / 1000:.1f} ms after the switch,"
                 f" {plain} plain ones while it was off")
        mark = r.facts["while_off"].get("mark", {})
        r.expect(r.facts["while_off"].get("killed") is True and mark.get("stations") == 0
                 and mark.get("backend") == r.backend.split("-")[0], f"status while off: {r.facts['while_off']}")


class MarkingKillFile(MarkingOff, KillFile):
    name, about = "mark-agent-kill-file", "the kill file on the AP: no mark at once; without it marks come back"
    quick = ("bpf", "ovs-native")


class MarkingKillPush(MarkingOff, KillPush):
    name, about = "mark-agent-kill-push", "the push service's kill switch, through the agent's waiting request: no mark"


class MarkingDeadMan(Marking, DeadMan):
    name, about = "mark-agent-dead-man", "the exporter is killed (SIGKILL) while it marks: no mark after a second"
    quick = ("bpf", "ovs-native")
    within_us = DEAD_MAN_US

    def check(self, r: Result) -> None:
        found, killed = self.judged(r), r.event("killed")["t_us"]
        marked = self.marked(found)
        r.expect(len(marked) >= 20, f"only {len(marked)} datagrams were marked")
        r.expect(not marked or marked[-1] <= killed + DEAD_MAN_US, "a mark after that second")
        plain = found.plain(ECT1, killed + DEAD_MAN_US)
        r.expect(plain >= 20, f"only {plain} plain datagrams after that second")
        last = (marked or [killed])[-1] - killed
        r.figure(f"last mark {last / 1000:.0f} ms after SIGKILL, {plain} plain ones after 1 s")
