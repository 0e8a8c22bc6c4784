"""What breaks: the agent, the switch, the bridge, a full map. Plain TCP is always within reach."""
from .case import Case, Result
from .play import TTL_MS
from .rewriter import now_us

DEAD_MAN_US = 1_000_000
OVS = ("ovs-native", "ovs-slow", "ovs-netdev")


def last_clamped(verdict, after_us: int) -> int | None:
    """The last moment at which a clamped ACK left the access point, in µs after that moment."""
    changed = verdict.changed()
    return changed[-1][0].t_us - after_us if changed else None


def dead_man(r: Result, late: int | None, acks_us: list[int], of: str = "the agent") -> None:
    """After SIGKILL no ACK is clamped beyond the dead man's time, and plain ones show that the flow went on. `late`:
    from the kill to the last clamped one, µs; `acks_us`: when the flow's ACKs left the access point.
    """
    end_us = r.event("killed")["t_us"] + DEAD_MAN_US
    r.expect(late is not None and late <= DEAD_MAN_US, f"a clamped ACK {late} µs after {of}'s death")
    plain = sum(t_us > end_us for t_us in acks_us)
    r.expect(plain >= 50, f"only {plain} ACKs after that second: the capture shows nothing")
    r.figure(f"last clamped ACK {(late or 0) / 1000:.0f} ms after SIGKILL, {plain} plain ones after 1 s")


class AgentKilled(Case):
    name, about = "agent-killed", "SIGKILL while clamping: plain TCP within a second"
    quick = ("bpf", "ovs-native", "ovs-slow")

    def play(self, p) -> None:
        flow = p.flow("flow")
        p.run(0.5)
        p.keep(flow, 20_000)
        p.run(1.1)
        p.drop(flow)
        p.set(flow, 20_000, 1000)  # the longest that there is, set at the last moment
        p.rewriter.kill()
        p.run(2.0)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        killed = r.event("killed")
        late = last_clamped(verdict, killed["t_us"])
        dead_man(r, late, [own.t_us for own, _ in verdict.up])
        r.numbers["dead_man_ms"] = (late or 0) / 1000


class MapFull(Case):
    name, about = "map-full", "more flows than the table holds: refused, the others stay clamped"
    rewriter = False
    quick = ("bpf",)

    def play(self, p) -> None:
        p.start_rewriter(max_flows=16)
        first, last = p.flow("first"), p.flow("last")
        crafted = [p.crafted(f"crafted {n}") for n in range(15)]
        p.run(0.4)
        p.keep(first, 20_000)
        for flow in crafted:
            p.rewriter.set(flow, 20_000, 1000, scale=7, mss=1448)
        p.facts["refused"] = p.set(last, 20_000, ok=False)
        p.run(0.7)
        p.facts["clamps"] = p.rewriter.stats()["clamps"]
        p.run(0.7)
        p.set(last, 20_000, 500)  # there is room again
        p.run(0.3)
        p.release(first)
        p.rewriter.release(last)
        p.run(0.2)

    def check(self, r: Result) -> None:
        r.clamped(r.flow("first"), 50)
        r.clamped(r.flow("last"), 10)
        r.expect(r.facts["clamps"] == 16, f"{r.facts['clamps']} clamps where there is room for 16")
        r.figure(f"17th: {r.facts['refused'].get('error', r.facts['refused'])}")


class BridgeRemade(Case):
    name, about = (
        "bridge-remade",
        "the bridge is deleted while clamping, and made again: the rewrite comes back by itself",
    )

    def play(self, p) -> None:
        flow = p.flow("flow")
        p.run(0.5)
        p.keep(flow, 20_000)
        p.run(0.7)
        p.drop(flow)
        begin = now_us()
        p.switch.remove("br-lan")
        p.run(0.5)
        p.facts["while_away"] = p.set(flow, 20_000, 200, ok=None)
        p.switch.make("br-lan", ["lan0"])
        p.switch.add("br-lan", p.network.port)
        p.loop.until(lambda: p.rewriter.stats()["ready"], "it is ready again", 30)
        p.events.append({"what": "gap", "t_us": begin, "end_us": now_us() + 300_000})
        p.run(1.0)
        p.keep(flow, 20_000)
        p.run(1.5)
        p.release(flow)
        p.run(0.4)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow", may_lose=True)
        r.clamped(verdict, 50)
        gap = r.event("gap")
        again = sum(own.t_us > gap["end_us"] for own, _ in verdict.changed())
        r.expect(again >= 50, f"only {again} ACKs were clamped after the bridge was made again")
        r.figure(f"{again} ACKs clamped after it was made again")


class SwitchRestarted(Case):
    name, about = (
        "switch-restarted",
        "vswitchd killed and started again while clamping: traffic goes on, clamps come back when they are set again",
    )
    on = OVS
    quick = ("ovs-native",)

    def play(self, p) -> None:
        flow = p.flow("flow")
        p.run(0.5)
        p.keep(flow, 20_000)
        p.run(0.7)
        p.drop(flow)
        begin = p.switch.kill()
        p.switch.restarted("br-lan")
        p.loop.until(lambda: p.rewriter.stats()["ready"], "it is ready again", 30)
        p.facts["ready_us"] = now_us()
        # what was set before is not brought back
        p.events.append({"what": "gap", "t_us": begin, "end_us": p.facts["ready_us"] + TTL_MS * 1000})
        p.run(2.0)
        p.keep(flow, 20_000)
        p.run(1.5)
        p.release(flow)
        p.run(0.4)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow", may_lose=True)
        gap = r.event("gap")
        between = [own for own, _ in verdict.up if gap["end_us"] < own.t_us]
        r.expect(len(between) >= 100, f"only {len(between)} ACKs after the restart")
        again = sum(own.t_us > gap["end_us"] for own, _ in verdict.changed())
        r.expect(again >= 50, f"only {again} ACKs were clamped after the restart")
        r.figure(f"ready again after {(r.facts['ready_us'] - gap['t_us']) / 1e6:.1f} s, {again} ACKs clamped then")


class SwitchKilled(Case):
    name, about = (
        "switch-killed",
        "vswitchd is killed and stays away: the kernel's own flows go on, and no clamp in them outlives its deadline",
    )
    on = ("ovs-native",)  # slow path and netdev forward nothing without vswitchd

    def play(self, p) -> None:
        flow = p.flow("flow")
        p.run(0.5)
        p.keep(flow, 20_000)
        p.run(0.7)
        p.drop(flow)
        p.set(flow, 20_000, 1000)
        at = p.switch.kill()
        p.events.append({"what": "killed", "t_us": at, "end_us": at})
        # it may have died before it heard of the last one
        p.events.append({"what": "gap", "t_us": at - 20_000, "end_us": at + 10_000_000})
        p.run(2.5)
        p.switch.restarted("br-lan")
        p.loop.until(lambda: p.rewriter.stats()["ready"], "it is ready again", 30)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow", may_lose=True)
        r.clamped(verdict, 50)
        late = last_clamped(verdict, r.event("killed")["t_us"])
        dead_man(r, late, [own.t_us for own, _ in verdict.up], "vswitchd")
