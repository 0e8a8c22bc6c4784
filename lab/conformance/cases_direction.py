"""The other direction: windows in the server's ACKs on their way down, so that what a station uploads is held back."""
from .case import Case, Result
from .cases_clamp import Rates, never_below_floor
from .cases_failure import dead_man
from .network import Shape
from .play import TTL_MS

UPLOADS = Shape(up_mbit=60)


class DownRates(Rates):
    name, about = "down-rates-20ms", "an upload, three windows at 20 ms: throughput is W/RTT, bytes in flight at most W"
    shape = UPLOADS
    quick = ("bpf", "ovs-native")
    down = True


class DownLearned(Case):
    name, about = (
        "down-learned",
        "uploads of connections that either side opened: the server's scale is that of its own SYN or SYN-ACK",
    )
    shape = UPLOADS
    on = ("bpf",)  # ovs never sees scales: there the agent tells, or does not ask
    quick = ("bpf",)

    def play(self, p) -> None:
        flows = [p.flow("client opens", upload=True), p.flow("server opens", upload=True, server_opens=True)]
        p.run(0.5)
        for _ in range(6):
            for flow in flows:
                p.rewriter.set(flow, 24_000, TTL_MS, down=True)
            p.run(0.25)
        for flow in flows:
            p.release(flow, True)
        p.run(0.3)

    def check(self, r: Result) -> None:
        for name in ("client opens", "server opens"):
            r.clamped(r.flow(name, True), 50)
            r.left_alone(r.flow(name, may_lose=True))  # what is sent without a clamp fills the queue on the wire


class BothWays(Case):
    name, about = (
        "both-ways",
        "data both ways, a clamp for each: each has its own window, and the release of one leaves the other",
    )
    shape = UPLOADS
    quick = ("bpf", "ovs-native")

    def play(self, p) -> None:
        flow = p.flow("flow")
        flow.sending_up = True
        p.run(0.5)
        p.keep(flow, 24_000)
        p.keep(flow, 40_000, True)
        p.run(1.2)
        p.release(flow)
        p.run(0.6)
        p.release(flow, True)
        p.run(0.3)

    def check(self, r: Result) -> None:
        # Each way's data fills the queue on the wire, and some of it is dropped there, ACKs too.
        up, down = r.flow("flow", may_lose=True), r.flow("flow", True, may_lose=True)
        r.clamped(up, 50)
        r.clamped(down, 50)
        released = next(e for e in r.events if e["what"] == "release")["end_us"] + r.rules().settle_us
        after = sum(own.t_us > released for own, _ in down.changed())
        r.expect(after >= 20, f"only {after} ACKs of the way down were clamped after the release of the way up")


class DownAgentKilled(Case):
    name, about = "down-agent-killed", "an upload, SIGKILL while clamping: plain TCP within a second"
    shape = UPLOADS
    quick = ("bpf", "ovs-native")

    def play(self, p) -> None:
        flow = p.flow("flow", upload=True)
        p.run(0.5)
        p.set(flow, 20_000, 300, down=True)  # and one that nobody renews
        p.run(1.0)
        p.set(flow, 20_000, 1000, down=True)
        p.run(0.01)  # ACKs are judged where they arrive, so much on the air after the access point let them go
        p.rewriter.kill()
        p.run(2.0)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow", True)
        r.clamped(verdict, 50)
        killed = r.event("killed")
        changed = [seen.t_us - killed["t_us"] for _, seen in verdict.changed()]  # it left the AP when it arrived
        dead_man(r, changed[-1] if changed else None, [seen.t_us for _, seen in verdict.up])


class DownFloor(Case):
    name, about = "down-floor", "an upload: never below four segments, whatever is asked"
    shape = UPLOADS
    on = ("bpf", "ovs-native")

    def play(self, p) -> None:
        flow = p.flow("flow", upload=True)
        p.run(0.4)
        p.keep(flow, 1, True)
        p.run(1.0)
        p.release(flow, True)
        p.run(0.3)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow", True)
        r.clamped(verdict, 30)
        never_below_floor(r, verdict)
