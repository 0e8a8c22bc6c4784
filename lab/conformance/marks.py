"""Judges datagrams by two captures: what the server sent, what the client received, and what the marks were told
meanwhile. A datagram must come as it was sent, byte for byte, but for an ECN field that the commands explain and the
IPv4 checksum that fits it.
"""
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .segment import VLAN_TYPES, folded
from .timeline import FOREVER_US, Rules

NOT_ECT, ECT1, ECT0, CE = range(4)
NAMES = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")
MARK = {ECT1: 1, ECT0: 2}
#: A map is read by the next packet; times are those of two captures and of a process.
AT_ONCE = Rules(settle_us=2000, late_us=2000)


@dataclass(frozen=True)
class Datagram:
    t_us: int
    number: int
    ecn: int
    rest: bytes  # the frame without ECN field and IPv4 checksum
    checksum_right: bool


def datagrams(path: Path) -> Iterator[Datagram]:
    """Numbered datagrams of a pcap file (little-endian, µs or ns) of Ethernet frames."""
    data = path.read_bytes()
    per_us = {b"\xd4\xc3\xb2\xa1": 1, b"\x4d\x3c\xb2\xa1": 1000}[data[:4]]
    at = 24
    while at + 16 <= len(data):
        seconds, part, kept, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16:at + 16 + kept]
        at += 16 + kept
        one = datagram(seconds * 1_000_000 + part // per_us, frame)
        if one:
            yield one


def datagram(t_us: int, frame: bytes) -> Datagram | None:
    """None: it is none of ours."""
    kind, found, at = int.from_bytes(frame[12:14], "big"), re.search(rb"oal (\d+)", frame), 14
    if not found:
        return None
    while kind in VLAN_TYPES:
        kind, at = int.from_bytes(frame[at + 2:at + 4], "big"), at + 4
    ip, tags = frame[at:], frame[:at]
    if kind == 0x0800 and ip[9] == 17:
        rest = tags + bytes([ip[0], ip[1] & 0xfc]) + ip[2:10] + ip[12:]
        return Datagram(t_us, int(found[1]), ip[1] & 3, rest, folded(ip[:20]) == 0)
    if kind == 0x86dd and ip[6] == 17:
        return Datagram(t_us, int(found[1]), ip[1] >> 4 & 3, tags + bytes([ip[0], ip[1] & 0xcf]) + ip[2:], True)
    return None


@dataclass
class Marked:
    """Complaints (none: it conforms) and figures."""
    complaints: list[str] = field(default_factory=list)
    #: (t_us, ECN as sent, as received)
    seen: list[tuple[int, int, int]] = field(default_factory=list)

    def marked(self, ecn: int, after_us: int = 0) -> list[int]:
        """When datagrams that were sent with `ecn` came with CE."""
        return [t for t, sent, came in self.seen if sent == ecn != came and t > after_us]

    def plain(self, ecn: int, after_us: int = 0) -> int:
        return sum(sent == ecn == came and t > after_us for t, sent, came in self.seen)


def spans(events: list[dict], bit: int, rules: Rules) -> list[tuple[int, int, int, int]]:
    """(may begin, must have begun, may end, must have ended), µs, of each time in which packets with this bit are
    marked. A set ends the one before only by taking its place. Where the agent is free to mark as it likes, none
    must be.
    """
    found = []
    for event in events:
        if not event["what"].startswith("mark ") or not event["ok"]:
            continue
        what, begin, end = event["what"][5:], event["t_us"], event["end_us"]
        if what != "killed" and found:  # nothing ends with the agent's death but by its time
            first, sure, may_end, must_end = found[-1]
            found[-1] = first, sure, min(may_end, begin), min(must_end, end + rules.settle_us)
        if what == "free":
            found.append((begin, FOREVER_US, FOREVER_US, end))
        elif what == "set" and event["marks"] & bit:
            found.append((begin, end + rules.settle_us, begin + event["ttl_us"] - rules.early_us,
                          end + event["ttl_us"] + rules.late_us))
    return found


def judge(sent: list[Datagram], received: list[Datagram], events: list[dict], rules: Rules = AT_ONCE) -> Marked:
    """Every received datagram against the one of its number."""
    verdict, by_number = Marked(), {one.number: one for one in sent}
    of = {ecn: spans(events, bit, rules) for ecn, bit in MARK.items()}
    for one in received:
        own = by_number.get(one.number)
        if own is None or own.rest != one.rest:
            verdict.complaints.append(f"datagram {one.number}: more than its ECN field differs from what was sent")
            continue
        verdict.seen.append((one.t_us, own.ecn, one.ecn))
        if not one.checksum_right:
            verdict.complaints.append(f"datagram {one.number}: its IPv4 checksum is wrong")
        if one.ecn == own.ecn:
            if own.ecn == ECT1 and any(sure <= one.t_us < may_end for _, sure, may_end, _ in of[ECT1]):
                verdict.complaints.append(f"datagram {one.number}, at {one.t_us} µs: ECT(1) was not marked")
        elif one.ecn != CE or own.ecn not in MARK:
            verdict.complaints.append(f"datagram {one.number}: {NAMES[own.ecn]} came as {NAMES[one.ecn]}")
        elif not any(first <= one.t_us <= must_end for first, _, _, must_end in of[own.ecn]):
            verdict.complaints.append(f"datagram {one.number}, at {one.t_us} µs: {NAMES[own.ecn]} marked, unasked")
    return verdict
