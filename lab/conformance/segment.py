"""TCP segments out of captured frames: a pcap reader, Ethernet with VLAN tags, IPv4 and IPv6, options, checksums.
Standard library only.
"""
import struct
from collections.abc import Iterator
from pathlib import Path

FIN, SYN, RST, ACK, ECE, CWR = 0x01, 0x02, 0x04, 0x10, 0x40, 0x80
VLAN_TYPES = (0x8100, 0x88a8)
OPTION_MSS, OPTION_SCALE, OPTION_SACK, OPTION_TIMESTAMP = 2, 3, 5, 8


def folded(data: bytes) -> int:
    """One's complement sum of 16-bit words, folded: 0…0xffff, where 0xffff means zero as a checksum does. Modulo 65535
    it is the plain sum.
    """
    if len(data) % 2:
        data += b"\0"
    return int.from_bytes(data, "big") % 0xffff


class Segment:
    """One TCP segment of a frame. `at` is where TCP begins in `frame`; addresses as bytes."""

    __slots__ = ("t_us", "frame", "tags", "at", "end", "src", "dst", "sport", "dport", "seq", "ack", "flags", "window",
                 "header", "payload", "whole")

    def __init__(self, t_us: int, frame: bytes, length: int):
        self.t_us, self.frame, self.tags = t_us, frame, 0
        kind, at = struct.unpack_from(">H", frame, 12)[0], 14
        while kind in VLAN_TYPES:
            kind, at, self.tags = struct.unpack_from(">H", frame, at + 2)[0], at + 4, self.tags + 1
        if kind == 0x0800 and frame[at + 9] == 6:
            total = struct.unpack_from(">H", frame, at + 2)[0]
            self.src, self.dst = frame[at + 12:at + 16], frame[at + 16:at + 20]
            self.at, self.end = at + (frame[at] & 15) * 4, at + total
        elif kind == 0x86dd and frame[at + 6] == 6:
            self.src, self.dst = frame[at + 8:at + 24], frame[at + 24:at + 40]
            self.at, self.end = at + 40, at + 40 + struct.unpack_from(">H", frame, at + 4)[0]
        else:
            raise ValueError("not TCP")
        self.sport, self.dport, self.seq, self.ack, offset, self.flags, self.window = struct.unpack_from(
            ">HHIIBBH", frame, self.at)
        self.header = (offset >> 4) * 4
        self.payload = self.end - self.at - self.header
        self.whole = self.end <= len(frame) and length >= self.end

    def options(self) -> dict[int, bytes]:
        """By kind, in this segment."""
        found, at, end = {}, self.at + 20, min(self.at + self.header, len(self.frame))
        while at + 1 < end:
            kind = self.frame[at]
            if kind == 0:
                break
            if kind == 1:
                at += 1
                continue
            size = self.frame[at + 1]
            if size < 2:
                break
            found[kind] = self.frame[at + 2:at + size]
            at += size
        return found

    def pseudo(self) -> bytes:
        return self.src + self.dst + struct.pack(">HH", 6, self.end - self.at) if len(
            self.src) == 4 else self.src + self.dst + struct.pack(">IHH", self.end - self.at, 0, 6)

    def checksum_right(self) -> bool | None:
        """None: the capture does not hold all of the segment."""
        return folded(self.pseudo() + self.frame[self.at:self.end]) == 0 if self.whole else None

    def others(self) -> bytes:
        """The frame without its window and TCP checksum, and without padding: what no rewrite may touch."""
        end = min(self.end, len(self.frame))
        return self.frame[:self.at + 14] + self.frame[self.at + 18:end]


def segments(path: Path) -> Iterator[Segment]:
    """TCP segments of a pcap file of Ethernet frames, in order. A file cut short ends where it is cut."""
    data = path.read_bytes()
    magic = data[:4]
    order, per_us = {
        b"\xd4\xc3\xb2\xa1": ("<", 1), b"\xa1\xb2\xc3\xd4": (">", 1), b"\x4d\x3c\xb2\xa1": ("<", 1000),
        b"\xa1\xb2\x3c\x4d": (">", 1000)
    }[magic]
    if struct.unpack_from(order + "I", data, 20)[0] & 0xffff != 1:
        raise ValueError(f"{path}: not Ethernet")
    at = 24
    while at + 16 <= len(data):
        s, part, kept, length = struct.unpack_from(order + "IIII", data, at)
        frame = data[at + 16:at + 16 + kept]
        at += 16 + kept
        try:
            yield Segment(s * 1_000_000 + part // per_us, frame, length)
        except (ValueError, IndexError, struct.error):
            continue  # ARP, neighbour discovery, something else that is not of a flow
