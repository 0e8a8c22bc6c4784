"""The suite's judge sees what is wrong: a flow that conforms, and the same flow with one thing changed at a time."""
import struct

import pytest
from conformance.craft import syn_options, tcp_frame
from conformance.judge import judge
from conformance.segment import ACK, RST, SYN, Segment, segments
from conformance.timeline import Rules, Timeline, raw_window

MACS, ADDRESSES, PORTS = ("02:00:00:00:01:00", "02:00:00:00:02:00"), ("10.20.0.10", "10.20.0.1"), (40001, 5001)
SCALE, MSS, OWN, LIMIT, START, WIRE_US, STEP_US, ACKS = 7, 1460, 500, 20_000, 1_000_000, 10_000, 10_000, 300
RAW = LIMIT >> SCALE
RULES = Rules(settle_us=1000, late_us=1000)
SET_US, TTL_MS = START + 500_000, 600
RELEASE_US = SET_US + 1_800_000


def up(t_us: int, flags: int, window: int, number: int, **more) -> Segment:
    frame = tcp_frame(MACS, ADDRESSES, PORTS, flags, window, number=number, **more)
    return Segment(t_us, frame, len(frame))


def down(t_us: int, seq: int, bytes_: int) -> Segment:
    frame = tcp_frame(MACS[::-1], ADDRESSES[::-1], PORTS[::-1], ACK, 1000, seq=seq, payload=bytes(bytes_))
    return Segment(t_us, frame, len(frame))


def events() -> list[dict]:
    """One limit, renewed every 250 ms, then released."""
    flow = {"flow": list(PORTS), "ok": True}
    times = range(SET_US, RELEASE_US, 250_000)
    return [{**flow, "what": "set", "t_us": t, "end_us": t, "bytes": LIMIT, "ttl_ms": TTL_MS, "scale": SCALE}
            for t in times] + [{**flow, "what": "release", "t_us": RELEASE_US, "end_us": RELEASE_US}]


class Wire:
    """A flow as two captures: an ACK every 10 ms, each of what is in flight, which fits the window of the moment."""

    def __init__(self, own: int = OWN, scale: int = SCALE):
        self.client, self.sender = [up(START, SYN, 64240, 0, seq=0, ack=0, options=syn_options(scale))], []
        self.sender.append(Segment(START + WIRE_US, self.client[0].frame, len(self.client[0].frame)))
        acked = 1
        for n in range(1, ACKS):
            t = START + n * STEP_US
            clamped = SET_US <= t < RELEASE_US
            flight = (RAW if clamped else own) << SCALE
            size = min(flight, 1448 * 6)
            self.client.append(up(t, ACK, own, n, ack=acked))
            self.sender.append(up(t + WIRE_US, ACK, min(own, RAW) if clamped else own, n, ack=acked))
            self.sender.append(down(t + WIRE_US + 1, acked, size))
            acked += size

    def received(self, n: int, **change) -> None:
        """Another n-th ACK at the sender."""
        at = next(i for i, s in enumerate(self.sender)
                  if s.dport == PORTS[1] and s.t_us == START + WIRE_US + n * STEP_US)
        was = self.sender[at]
        given = {"flags": was.flags, "window": was.window, "ack": was.ack, "number": n} | change
        self.sender[at] = up(was.t_us, given.pop("flags"), given.pop("window"), given.pop("number"), **given)

    def judge(self, **options):
        return judge(PORTS, self.client, self.sender, events(), RULES, **options)


BEFORE, WITHIN, AFTER = 10, 100, 260


def test_a_flow_that_conforms():
    verdict = Wire().judge()
    assert verdict.complaints == []
    assert verdict.figures["clamped"] == 180 and verdict.figures["checksums"] == ACKS and verdict.figures[
        "scale"] == SCALE
    (span,) = verdict.rates
    assert span["window_bytes"] == RAW << SCALE and span["flight_bytes"] == 1448 * 6
    assert span["bits_per_s"] == pytest.approx(1448 * 6 * 8 / STEP_US * 1e6, rel=0.01)


@pytest.mark.parametrize(("n", "change", "complaint"), [(WITHIN, {"window": OWN}, "it must be one of"),
                                                        (WITHIN, {"window": RAW + 1}, "it must be one of"),
                                                        (WITHIN, {"window": RAW - 1}, "it must be one of"),
                                                        (WITHIN, {"window": OWN + 1}, "raised"),
                                                        (BEFORE, {"window": RAW}, "changed while no clamp held"),
                                                        (AFTER, {"window": RAW}, "changed while no clamp held"),
                                                        (WITHIN, {"ack": 77}, "never sent this segment"),
                                                        (WITHIN, {"number": 9999}, "never sent this segment"),
                                                        (WITHIN, {"flags": ACK | 0x40}, "never sent this segment"),
                                                        (WITHIN, {"options": b"\1\1\1\1"}, "never sent this segment")])
def test_one_ack_that_is_wrong_is_named(n, change, complaint):
    wire = Wire()
    wire.received(n, **change)
    assert any(complaint in text for text in wire.judge().complaints)


def test_a_wrong_checksum_is_named():
    wire = Wire()
    at = next(i for i, s in enumerate(wire.sender) if s.dport == PORTS[1] and s.window == RAW)
    was = wire.sender[at]
    wire.sender[at] = Segment(was.t_us, was.frame[:was.at + 16] + b"\x12\x34" + was.frame[was.at + 18:], len(was.frame))
    assert any("checksum is wrong" in text for text in wire.judge().complaints)


@pytest.mark.parametrize("flags", [SYN, RST, RST | ACK])
def test_a_changed_syn_or_rst_is_named(flags):
    wire = Wire()
    number = 5000
    t = START + WITHIN * STEP_US + 5
    wire.client = sorted([*wire.client, up(t, flags, OWN, number, ack=3)], key=lambda s: s.t_us)
    wire.sender = sorted([*wire.sender, up(t + WIRE_US, flags, RAW, number, ack=3)], key=lambda s: s.t_us)
    assert any("SYN or RST" in text for text in wire.judge().complaints)


def test_a_lost_ack_is_named_unless_it_may_be():
    wire = Wire()
    wire.sender = [s for s in wire.sender if not (s.dport == PORTS[1] and s.t_us == START + WIRE_US + WITHIN * STEP_US)]
    assert any("did not arrive" in text for text in wire.judge().complaints)
    assert wire.judge(may_lose=True).complaints == []


def test_more_in_flight_than_the_window_is_named():
    wire = Wire()
    at = next(i for i, s in enumerate(wire.sender)
              if s.sport == PORTS[1] and s.t_us == START + WIRE_US + 1 + WITHIN * STEP_US)
    wire.sender.insert(at + 1, down(wire.sender[at].t_us, wire.sender[at].seq + wire.sender[at].payload, 14_000))
    assert any("bytes in flight with a window of" in text for text in wire.judge().complaints)


def test_a_sender_that_never_comes_down_is_named():
    wire = Wire()
    wire.sender = [s for s in wire.sender if s.sport != PORTS[1] and s.t_us < SET_US + WIRE_US] + [
        down(SET_US - 1, 2**31, 1448), *(s for s in wire.sender if s.dport == PORTS[1] and s.t_us >= SET_US + WIRE_US)]
    assert any("never came down" in text for text in wire.judge().complaints)


def test_a_flow_that_is_to_be_left_alone():
    assert any("while no clamp held" in text for text in Wire().judge(plain=True).complaints)
    assert judge(PORTS, Wire(own=RAW).client, Wire(own=RAW).sender, events(), RULES, plain=True).complaints == []


def test_nothing_captured_is_no_conformance():
    assert judge(PORTS, [], [], [], RULES).complaints == ["nothing of this flow was captured at the sender"]


def test_an_agent_on_its_own_may_lower_but_not_after_its_end():
    wire = Wire()
    free = [{"what": "free", "t_us": START, "end_us": RELEASE_US}]
    assert judge(PORTS, wire.client, wire.sender, free, RULES).complaints == []
    ended = [{"what": "free", "t_us": START, "end_us": RELEASE_US - 500_000}]
    assert judge(PORTS, wire.client, wire.sender, ended, RULES, within_us=600_000).complaints == []
    assert judge(PORTS, wire.client, wire.sender, ended, RULES, within_us=100_000).complaints


@pytest.mark.parametrize(("limit", "scale", "mss", "raw"), [(20_000, 7, 1448, 156), (1, 7, 1448, 46),
                                                            (1, 0, 1448, 5792), (5792, 7, 1448, 46),
                                                            (5793, 0, 1448, 5793), (40_000, 14, 1448, 2),
                                                            (1, 14, 1448, 1), (1 << 30, 7, 1448, 0xffff)])
def test_the_window_of_a_limit(limit, scale, mss, raw):
    assert raw_window(limit, scale, mss) == raw
    assert raw << scale >= min(4 * mss, 0xffff << scale)


def test_time_limits_of_clamps():
    line = Timeline(Rules(settle_us=1000, late_us=2000))
    line.add({"what": "set", "ok": True, "t_us": 10_000, "end_us": 10_500, "bytes": 9000, "ttl_ms": 100})
    line.add({"what": "set", "ok": False, "t_us": 20_000, "end_us": 20_500, "bytes": 7000, "ttl_ms": 100})
    assert line.allowed(9_999) == (set(), True)
    assert line.allowed(10_600) == ({9000}, True) and line.allowed(11_500) == ({9000}, False)
    assert line.allowed(109_999) == ({9000}, False) and line.allowed(110_001) == ({9000}, True)
    assert line.allowed(112_501) == (set(), True)
    line.add({"what": "set", "ok": True, "t_us": 50_000, "end_us": 50_100, "bytes": 8000, "ttl_ms": 20})
    assert line.allowed(50_500) == ({9000, 8000}, False) and line.allowed(51_100) == ({
        8000
    }, False) and line.allowed(75_000) == (set(), True)
    grained = Timeline(Rules(settle_us=0, late_us=0, early_us=2000))
    grained.add({"what": "set", "ok": True, "t_us": 10_000, "end_us": 10_000, "bytes": 9000, "ttl_ms": 100})
    assert grained.allowed(107_999) == ({9000}, False) and grained.allowed(108_001) == ({
        9000
    }, True) and grained.allowed(110_001) == (set(), True)
    line.add({"what": "gap", "t_us": 60_000, "end_us": 65_000})
    assert line.allowed(62_000) == ({8000}, True)


def test_a_pcap_is_read_as_it_was_written(tmp_path):
    frames = [tcp_frame(MACS, ADDRESSES, PORTS, ACK, 300, ack=5, payload=b"abc"), bytes(60)]
    vlan = frames[0][:12] + struct.pack(">HH", 0x88a8, 20) + struct.pack(">HH", 0x8100, 10) + frames[0][12:]
    path = tmp_path / "x.pcap"
    path.write_bytes(
        struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + b"".join(
            struct.pack("<IIII", 7, n, len(f), len(f)) + f
            for n, f in enumerate([*frames, vlan, frames[0][:56]])) + b"\0\0")
    first, second, cut = segments(path)
    assert (first.t_us, first.sport, first.window, first.payload, first.tags,
            first.checksum_right()) == (7_000_000, 40001, 300, 3, 0, True)
    assert (second.tags, second.checksum_right(), second.payload) == (2, True, 3) and second.t_us == 7_000_002
    assert cut.checksum_right() is None
