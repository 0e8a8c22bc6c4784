"""What a clamp does where everything is in order: windows, throughput, other flows, IPv6, VLAN, offloads, release,
deadline.
"""
import socket

from .case import Case, Result
from .network import Shape
from .switch import NAMES

KERNEL = ("bpf", "ovs-native", "ovs-slow")
SHOWN = {  # where an operator looks: tc; ovs-ofctl dump-flows and dpctl/dump-flows
    "bpf": [("filter", "bpf")],
    "ovs-native": [("priority=60000", "actions=rewrite_rwnd("), ("recirc_id", "rewrite_rwnd(")],
    "ovs-slow": [("priority=60000", "actions=rewrite_rwnd("), ("recirc_id", "slow_path")],
    "ovs-netdev": [("priority=60000", "actions=rewrite_rwnd("), ("recirc_id", "rewrite_rwnd(")],
}
SO_MAX_PACING_RATE, UP_BYTES_PER_S = 47, 2_500_000
LIMITS = (12_000, 32_768, 98_304)
# of window / round trip; the window in whole segments, because a sender with more to send makes no others
RATE_LOW, RATE_HIGH = 0.90, 1.03


class Rates(Case):
    """Base of the cases of throughput: three windows in one flow, then released."""

    down = False  # of the server's ACKs

    def play(self, p) -> None:
        flow = p.flow("flow", upload=self.down)
        p.run(0.8)
        for limit in LIMITS:
            p.keep(flow, limit, self.down)
            p.run(1.8)
            p.facts.setdefault("shown", p.switch.shown())
        p.release(flow, self.down)
        p.run(0.8)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow", self.down)
        r.clamped(verdict, 200)
        r.expect(len(verdict.rates) == len(LIMITS), f"{len(verdict.rates)} steady clamps were seen, not {len(LIMITS)}")
        for span in verdict.rates:
            # the air has a time of its own
            rtt_us = (span["rtt_us"] or 0) if r.case.shape.wifi else r.case.shape.rtt_ms * 1000
            whole = span["window_bytes"] // verdict.figures["mss_bytes"] * verdict.figures["mss_bytes"]
            share = (span["bits_per_s"] or 0) * rtt_us / (whole * 8e6)
            r.expect(
                RATE_LOW <= share <= RATE_HIGH,
                f"{span['limit_bytes']} bytes: throughput is {share:.3f} of window / round trip, not {RATE_LOW} to"
                f" {RATE_HIGH}",
            )
            r.figure(f"{span['limit_bytes']} B: {(span['bits_per_s'] or 0) / 1e6:.2f} Mbit/s = {share:.3f}·W/RTT")
        for words in SHOWN[r.backend]:
            r.expect(any(all(word in line for word in words) for line in r.facts["shown"].splitlines()),
                     f"{' … '.join(words)} is not shown to operators:\n{r.facts['shown']}")
        released = r.event("release")["end_us"] + r.rules().settle_us
        after = [seen.window << verdict.figures["scale"] for own, seen in verdict.up if own.t_us > released]
        r.expect(bool(after) and max(after) > max(LIMITS), "after the release no larger window was seen")


class Rates20(Rates):
    name, about = "rates-20ms", "three windows at 20 ms: throughput is W/RTT, bytes in flight at most W"
    shape = Shape(rtt_ms=20)
    quick = ("bpf", "ovs-native")


class Rates60(Rates):
    name, about = "rates-60ms", "three windows at 60 ms"
    shape = Shape(rtt_ms=60)


class WifiRates(Rates):
    name, about = "rates-wifi", "three windows through mac80211 and hostapd"
    shape = Shape(rtt_ms=30, rate_mbit=40, wifi=True)


class One(Case):
    """Base: one flow, clamped for a while, then released."""
    family, limit, options = 4, 24_000, {}

    def play(self, p) -> None:
        flow = p.flow("flow", family=self.family, **self.options)
        p.run(0.6)
        p.keep(flow, self.limit)
        p.run(1.6)
        p.release(flow)
        p.run(0.5)

    def check(self, r: Result) -> None:
        r.clamped(r.flow("flow"), 50)


class Ipv6(One):
    name, about, family = "ipv6", "IPv6", 6
    quick = ("bpf", "ovs-native")


class Vlan(One):
    name, about = "vlan", "802.1Q on the client's frames"
    shape = Shape(tags=1)
    quick = ("bpf",)


class VlanIpv6(One):
    name, about, family = "vlan-ipv6", "802.1Q and IPv6", 6
    shape = Shape(tags=1)


class QinQ(One):
    name, about = "qinq", "802.1ad outside 802.1Q"
    shape = Shape(tags=2)
    on = ("bpf",)


class ServerOpens(One):
    name, about = "server-opens", "the server opens the connection: the scale is in the client's SYN-ACK"
    options = {"server_opens": True}


class OtherFlows(Case):
    name, about = (
        "other-flows",
        "another flow of the same client, and the same ports of the server's other address family, stay plain",
    )

    def play(self, p) -> None:
        clamped, other, six = p.flow("clamped"), p.flow("other"), p.flow("six", family=6)
        p.run(0.5)
        p.keep(clamped, 16_000)
        p.run(1.5)
        p.release(clamped)
        for flow in (other, six):
            flow.stop()
        p.run(0.3)

    def check(self, r: Result) -> None:
        r.clamped(r.flow("clamped"), 50)
        r.left_alone(r.flow("other"))
        r.left_alone(r.flow("six"))


class Offloads(Case):
    name, about = "offloads", "GRO, TSO and checksum offload on, data both ways: right after segmentation"
    shape = Shape(offloads=True)
    on = KERNEL  # frames without a checksum do not pass OVS's userspace data path
    quick = ("bpf", "ovs-native")
    snaplen = 65_535

    def play(self, p) -> None:
        flow = p.flow("flow")
        flow.client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, UP_BYTES_PER_S)
        flow.sending_up = True
        p.run(0.5)
        p.keep(flow, 24_000)
        p.run(1.5)
        p.release(flow)
        p.run(0.3)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow", merged=True)
        r.clamped(verdict, 200)
        with_data = [s for _, s in verdict.up if s.payload and s.checksum_right()]
        r.expect(len(with_data) > 200, f"only {len(with_data)} segments with data went up")
        merged = sum(s.payload > verdict.figures["mss_bytes"] for s in r.client if s.dport == verdict.flow[1])
        r.expect(merged > 20, f"only {merged} segments of the client were larger than a packet: offloads were not on")
        r.figure(f"{len(with_data)} data segments up, {merged} left the client merged")


def never_below_floor(r: Result, verdict) -> None:
    """The lowest window that an ACK of the flow carried is at least four segments."""
    lowest = min(seen.window for _, seen in verdict.changed()) << verdict.figures["scale"]
    r.expect(lowest >= 4 * verdict.figures["mss_bytes"],
             f"a window of {lowest} bytes is below four segments of {verdict.figures['mss_bytes']}")
    r.figure(f"lowest window {lowest} B, segment {verdict.figures['mss_bytes']} B")


class Floor(One):
    name, about, limit = "floor", "never below four segments, whatever is asked", 1
    quick = ("bpf",)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        never_below_floor(r, verdict)


class Deadline(Case):
    name, about = (
        "deadline",
        "a clamp that nobody renews ends at its time to live: every ACK after it carries the receiver's own window",
    )
    quick = NAMES

    def play(self, p) -> None:
        flow = p.flow("flow")
        p.run(0.6)
        for ttl_ms in (300, 700):
            p.set(flow, 20_000, ttl_ms)
            p.run(1.6)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 20)
        for event in (e for e in r.events if e["what"] == "set"):
            deadline = event["end_us"] + event["ttl_ms"] * 1000
            clamped = [own.t_us for own, _ in verdict.changed() if event["t_us"] <= own.t_us < deadline + 900_000]
            r.expect(bool(clamped), f"the clamp of {event['ttl_ms']} ms was never seen")
            if clamped:
                r.figure(
                    f"{event['ttl_ms']} ms: last clamped ACK {(clamped[-1] - event['end_us']) / 1000:.0f} ms after it"
                    " was set"
                )
