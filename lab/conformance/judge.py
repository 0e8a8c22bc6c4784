"""Judges a flow by two captures: what the client sent, what the sender of the data received, and what the rewrite was
told meanwhile.

Every segment on its way up must be the client's own, byte for byte, but for a window that the timeline explains and a
checksum that fits it.
"""
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from .segment import ACK, ECE, OPTION_MSS, OPTION_SACK, OPTION_SCALE, OPTION_TIMESTAMP, RST, SYN, Segment, segments
from .timeline import MAX_SCALE, Rules, Timeline, raw_window

SHOWN = 5
RATE_SPAN_US = 1_000_000
STEADY_AFTER_US = 300_000


def later(a: int, b: int) -> bool:
    """Sequence number a is after b."""
    return a != b and (a - b) & 0xffffffff < 1 << 31


@dataclass
class Verdict:
    """Of one flow: complaints (none: it conforms) and figures."""
    flow: tuple[int, int]
    complaints: list[str] = field(default_factory=list)
    figures: dict = field(default_factory=dict)
    rates: list[dict] = field(default_factory=list)
    # (as sent by the client, as received), in order
    up: list[tuple[Segment | None, Segment]] = field(default_factory=list, repr=False)
    down: list[Segment] = field(default_factory=list, repr=False)
    timeline: Timeline | None = field(default=None, repr=False)

    def complain(self, text: str) -> None:
        self.complaints.append(text)

    def changed(self) -> list[tuple[Segment, Segment]]:
        """Of `up` those whose window is not the client's own. Not for a flow that was judged as merged: there nobody
        knows what the client sent.
        """
        return [(own, seen) for own, seen in self.up if own.window != seen.window]

    def shown(self) -> list[str]:
        more = len(self.complaints) - SHOWN
        return self.complaints[:SHOWN] + ([f"… and {more} more"] if more > 0 else [])


def split(capture: list[Segment], client_port: int, server_port: int) -> tuple[list[Segment], list[Segment]]:
    up = [s for s in capture if (s.sport, s.dport) == (client_port, server_port)]
    return up, [s for s in capture if (s.sport, s.dport) == (server_port, client_port)]


def pair(sent: list[Segment], received: list[Segment], verdict: Verdict,
         may_lose: bool) -> list[tuple[Segment | None, Segment]]:
    """Each received segment with the one that the client sent: the path keeps their order."""
    pairs, at, lost = [], 0, 0
    for segment in received:
        same, found = segment.others(), at
        while found < len(sent) and sent[found].others() != same:
            found += 1
        if found == len(sent):
            verdict.complain(
                f"at {segment.t_us} µs: the client never sent this segment (seq {segment.seq}, ack {segment.ack}): more"
                " than window and checksum differ"
            )
            continue
        lost += found - at
        pairs.append((sent[found], segment))
        at = found + 1
    verdict.figures["lost_on_the_way"] = lost
    if lost and not may_lose:
        verdict.complain(f"{lost} segments of the client did not arrive")
    return pairs


def judge(flow: tuple[int, int], client: list[Segment], sender: list[Segment], events: list[dict], rules: Rules, *,
          wire_us: int = 0, air: bool = False, merged: bool = False, may_lose: bool = False, plain: bool = False,
          mss: int = 0, within_us: int = 0, down: bool = False) -> Verdict:
    """`wire_us`: the way from access point to sender. `air`: the way from client to access point takes time too.
    `merged`: offloads are on, so that
    the two captures cut the stream differently and received segments stand for themselves. `plain`: nothing may happen
    to this flow, whatever was asked. `mss`: of the data, where the handshake does not say. `within_us`: so long after
    it may no more an agent's clamps may last. `down`: the server takes the client's part and the client the sender's,
    in `flow` and captures too; the access point is next to whoever receives these ACKs."""
    verdict = Verdict(flow)
    sent, _ = split(client, *flow)
    received, verdict.down = split(sender, *flow)
    verdict.timeline = Timeline(rules)
    for event in events:
        if event["what"] in ("gap", "free") or (event.get("flow") == list(flow) and event["what"] in ("set", "release")
                                                and not plain):
            verdict.timeline.add(event)
    scale = next((s.options().get(OPTION_SCALE, b"\0")[0] for s in sent if s.flags & SYN), None)
    known = scale is not None and scale <= MAX_SCALE
    mss = mss or min([1460] + [
        int.from_bytes(s.options()[OPTION_MSS], "big")
        for s in sent + verdict.down if s.flags & SYN and OPTION_MSS in s.options()
    ])
    if sent and OPTION_TIMESTAMP in sent[-1].options():
        mss -= 12
    verdict.figures.update(scale=scale, mss_bytes=mss, acks=len(received))
    if not received:
        verdict.complain("nothing of this flow was captured at the sender")
    told = {e["scale"] for e in events if e.get("flow") == list(flow) and e.get("scale") is not None}
    scale = scale if known else (told.pop() if len(told) == 1 else 0)
    verdict.up = [(None, s) for s in received] if merged else pair(sent, received, verdict, may_lose)
    windows(verdict, scale, mss, 0 if down else wire_us, air, within_us, down)
    flight(verdict, [s for s in sender if (s.sport, s.dport) in (flow, flow[::-1])], scale, mss)
    return verdict


def windows(verdict: Verdict, scale: int, mss: int, wire_us: int, air: bool, within_us: int,
            down: bool = False) -> None:
    """Each segment by itself: its window, its checksum."""
    counts = dict.fromkeys(("clamped", "own", "checksums", "sack", "timestamps", "zero", "ece", "syn", "rst"), 0)
    first = last = None
    for own, seen in verdict.up:
        counts["checksums"] += seen.checksum_right() is True
        if seen.checksum_right() is False:
            verdict.complain(
                f"at {seen.t_us} µs: the TCP checksum is wrong (window {seen.window}, own {own.window if own else '?'})"
            )
        options = seen.options()
        counts["sack"] += OPTION_SACK in options
        counts["timestamps"] += OPTION_TIMESTAMP in options
        counts["zero"] += seen.window == 0
        counts["ece"] += bool(seen.flags & ECE) and not seen.flags & SYN
        counts["syn"] += bool(seen.flags & SYN)
        counts["rst"] += bool(seen.flags & RST)
        if own is None:
            limits, own_may_pass = verdict.timeline.allowed(seen.t_us - wire_us)
            bound = max((raw_window(limit, scale, mss) for limit in limits), default=0)
            if limits and not own_may_pass and not seen.flags & (SYN | RST):
                counts["clamped"] += seen.window == bound
                if seen.window > bound:
                    verdict.complain(
                        f"at {seen.t_us} µs: window {seen.window} (× {1 << scale}) while clamped to {sorted(limits)}"
                        " bytes"
                    )
            counts["own"] += seen.window > bound
            continue
        if own.window != seen.window:
            counts["clamped"] += 1
            first, last = first or own.t_us, own.t_us
        else:
            counts["own"] += 1
        passed_us = (seen.t_us,) if down else (own.t_us, seen.t_us - wire_us) if air else (own.t_us,)
        if verdict.timeline.free(own.t_us, within_us) and not own.flags & (SYN | RST) and min(
                own.window, raw_window(1, scale, mss)) <= seen.window <= own.window:
            continue
        fault = unexplained(verdict, own, seen.window, passed_us, scale, mss)
        if fault:
            verdict.complain(
                f"at {own.t_us} µs: window {seen.window} (× {1 << scale}), the client sent {own.window}: {fault}")
    verdict.figures.update(counts, first_clamped_us=first, last_clamped_us=last)


def unexplained(verdict: Verdict, own: Segment, window: int, passed_us: tuple[int, ...], scale: int,
                mss: int) -> str | None:
    """Why this window must not be; None: it may. `passed_us`: when it passed the access point, at the earliest and at
    the latest.
    """
    if window > own.window:
        return "raised"
    if own.flags & (SYN | RST):
        return None if window == own.window else "a SYN or RST was changed"
    allowed = [verdict.timeline.allowed(t_us) for t_us in passed_us]
    limits, own_may_pass = set().union(*(limits for limits, _ in allowed)), any(own_may for _, own_may in allowed)
    if own_may_pass and window == own.window:
        return None
    expected = {min(own.window, raw_window(limit, scale, mss)) for limit in limits}
    if window in expected:
        return None
    if not limits:
        return "changed while no clamp held"
    return (
        f"clamped to {sorted(limits)} bytes it must be one of"
        f" {sorted(expected | ({own.window} if own_may_pass else set()))}"
    )


def flight(verdict: Verdict, both: list[Segment], scale: int, mss: int) -> None:
    """The sender keeps to it: bytes in flight, and throughput against window / round trip, for each span of a steady
    clamp.
    """
    for begin, end, limit in verdict.timeline.steady(RATE_SPAN_US):
        span = Span(begin, end, raw_window(limit, scale, mss) << scale, scale)
        for segment in both:
            (span.data if segment.dport == verdict.flow[0] else span.ack)(segment)
        if span.settled is None:
            verdict.complain(f"the sender never came down to {span.window} bytes in flight")
            continue
        if span.most > span.window:
            verdict.complain(f"{span.most} bytes in flight with a window of {span.window}")
        verdict.rates.append({"limit_bytes": limit, **span.figures()})


class Span:
    """A steady clamp as the sender lives it. Settled: what it had sent before the first clamped ACK is acknowledged."""

    def __init__(self, begin: int, end: int, window: int, scale: int):
        self.begin, self.end, self.window, self.scale = begin, end, window, scale
        self.una = self.top = self.sent_before = self.settled = None  # top: end of what was sent so far
        self.most, self.round_trips, self.pending, self.acked = 0, [], {}, []

    def data(self, s: Segment) -> None:
        if not s.payload:
            return
        last = (s.seq + s.payload) & 0xffffffff
        if self.top is None or later(last, self.top):
            self.top, self.pending[last] = last, s.t_us
        else:
            self.pending.pop(last, None)  # sent again: no measure of the round trip
        if self.settled is not None and s.t_us <= self.end and later(last, self.una):
            self.most = max(self.most, (last - self.una) & 0xffffffff)

    def ack(self, s: Segment) -> None:
        if s.flags & (SYN | RST) or not s.flags & ACK:
            return
        if self.una is None or later(s.ack, self.una):
            self.una = s.ack
            sent_us = self.pending.pop(s.ack, None)
            if sent_us is not None and self.settled is not None and s.t_us <= self.end:
                self.round_trips.append(s.t_us - sent_us)
        if s.t_us < self.begin or self.top is None:
            return
        if self.sent_before is None and s.window << self.scale <= self.window:
            self.sent_before = self.top
        if self.sent_before is not None and self.settled is None and not later(self.sent_before, self.una):
            self.settled = s.t_us
        if self.settled is not None and self.settled + STEADY_AFTER_US <= s.t_us <= self.end:
            self.acked.append((s.t_us, self.una))

    def figures(self) -> dict:
        return {
            "window_bytes": self.window, "flight_bytes": self.most,
            "rtt_us": round(median(self.round_trips)) if self.round_trips else None,
            "bits_per_s": round(slope(self.acked) * 8e6) if len(self.acked) > 1 else None
        }


def slope(acked: list[tuple[int, int]]) -> float:
    """Bytes per µs by least squares: ACKs come in bursts, so that first and last alone would mislead."""
    first_us, first = acked[0]
    points = [(t_us - first_us, (una - first) & 0xffffffff) for t_us, una in acked]
    mean_t, mean_b = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    spread = sum((t - mean_t) ** 2 for t, _ in points)
    return sum((t - mean_t) * (b - mean_b) for t, b in points) / spread if spread else 0.0


def load(folder: Path, case: str) -> tuple[list[Segment], list[Segment]]:
    """The captures of a case: at the client, at the sender of the data."""
    return tuple(list(segments(folder / f"{case}.{where}.pcap")) for where in ("client", "sender"))
