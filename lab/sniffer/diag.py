"""TCP connections of a network namespace over inet_diag netlink (sock_diag(7)): identity, tcp_info, congestion control.
"""
from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from guest.netlink import Netlink, attrs, messages

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
INET_DIAG_INFO, INET_DIAG_CONG = 2, 4
ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, CLOSING = 1, 4, 8, 11  # states in which a sender may still have data under way
SENDING = (ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, CLOSING)
MESSAGE = struct.Struct("=BBBB2s2s16s16sI8sIIIII")  # struct inet_diag_msg
INFINITE_SSTHRESH = 0x7FFFFFFF
UNLIMITED = (1 << 64) - 1
MAPPED = bytes(10) + b"\xff\xff"  # IPv4 in an IPv6 socket

# struct tcp_info: offset of the field, its size. The kernel appends fields with time; MINIMUM is what every one since
# 2.6.x has.
FIELDS = {
    "state": (0, 1), "ca_state": (1, 1), "mss_bytes": (16, 4), "unacked_pkts": (24, 4), "lost_pkts": (32, 4),
    "rtt_us": (68, 4), "ssthresh_pkts": (76, 4), "cwnd_pkts": (80, 4), "retrans_pkts": (100, 4),
    "pacing_bytes_per_s": (104, 8), "bytes_acked": (120, 8), "min_rtt_us": (148, 4), "delivery_bytes_per_s": (160, 8)
}
MINIMUM = 104
ABSENT = {"pacing_bytes_per_s": UNLIMITED}  # what stands for a field that this kernel does not have; the others: 0


class DiagError(Exception):
    """What the kernel did not answer, and what to do."""


@dataclass(frozen=True)
class Connection:
    """One TCP socket at one moment. Addresses are 4 or 16 bytes."""

    local: bytes
    local_port: int
    remote: bytes
    remote_port: int
    cookie: bytes  #: tells two connections of the same ports apart
    congestion_control: str
    info: dict  #: FIELDS by name


def tcp_info(raw: bytes) -> dict:
    """struct tcp_info by name, as long as it is; raises ValueError below MINIMUM bytes."""
    if len(raw) < MINIMUM:
        raise ValueError(f"tcp_info of {len(raw)} bytes, need {MINIMUM}")
    return {name: int.from_bytes(raw[at:at + size], _ORDER) if at + size <= len(raw) else ABSENT.get(name, 0)
            for name, (at, size) in FIELDS.items()}


_ORDER = "little" if struct.pack("=H", 1)[0] else "big"


def connection(head: bytes, body: bytes) -> Connection:
    """One message of a dump. Raises ValueError where it is cut short."""
    if len(head) < MESSAGE.size:
        raise ValueError(f"inet_diag message of {len(head)} bytes, need {MESSAGE.size}")
    family, _, _, _, sport, dport, src, dst, _, cookie, *_ = MESSAGE.unpack(head)
    found = attrs(body)
    if INET_DIAG_INFO not in found:
        raise ValueError("a connection without tcp_info")
    if family == socket.AF_INET:
        src, dst = src[:4], dst[:4]
    elif src.startswith(MAPPED) and dst.startswith(MAPPED):
        src, dst = src[12:], dst[12:]
    return Connection(src, int.from_bytes(sport, "big"), dst, int.from_bytes(dport, "big"), cookie,
                      found.get(INET_DIAG_CONG, b"").rstrip(b"\0").decode("ascii", "replace"),
                      tcp_info(found[INET_DIAG_INFO]))


class InetDiag:
    """Asks the kernel of the namespace in which it was made. `malformed` counts messages that could not be read."""

    def __init__(self):
        self.netlink = Netlink(NETLINK_SOCK_DIAG)
        self.malformed = 0

    def connections(self, states: tuple[int, ...] = SENDING) -> list[Connection]:
        """All TCP connections in these states, IPv4 and IPv6. Raises DiagError where the kernel has no inet_diag for
        TCP.
        """
        found, mask = [], sum(1 << state for state in states)
        for family in (socket.AF_INET, socket.AF_INET6):
            extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
            request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, extensions, 0, mask) + bytes(48)
            try:
                raw = self.netlink.request(SOCK_DIAG_BY_FAMILY, request)
            except FileNotFoundError as error:
                if family == socket.AF_INET6:
                    continue  # a kernel without IPv6
                raise DiagError(
                    "the kernel has no inet_diag for TCP: load the modules inet_diag and tcp_diag, or build it with"
                    " CONFIG_INET_TCP_DIAG"
                ) from error
            except OSError as error:
                raise DiagError(f"inet_diag dump: {error.strerror or error}") from error
            for head, body in messages(raw, MESSAGE.size):
                try:
                    found.append(connection(head, body))
                except ValueError:
                    self.malformed += 1
        return found
