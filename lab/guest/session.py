"""What a sender's kernel says of a connection, looked at now and then: the figures of its session (struct tcp_info,
linux/tcp.h), as inet_diag gives them to a host's agent."""
import socket
import struct

from .connection import TCP_INFO

INFO_BYTES = 232
LOOK_S = 0.2  # between two looks at a sender, as a host's agent has them

#: Fields of struct tcp_info: offset, and how they are packed. Names are those of the table sender_session where it has
#: them.
FINAL = {
    "rtt_us": (68, "I"), "rttvar_us": (72, "I"), "min_rtt_us": (148, "I"), "bytes_acked": (120, "Q"),
    "segs_out": (136, "I"), "segs_in": (140, "I"), "data_segs_out": (156, "I"), "retrans_pkts": (100, "I"),
    "delivered_pkts": (192, "I"), "dsack_dups": (216, "I"), "reorderings": (220, "I"), "reordering_pkts": (88, "I"),
    "delivery_rate_bytes": (160, "Q"), "busy_us": (168, "Q"), "rwnd_limited_us": (176, "Q"),
    "sndbuf_limited_us": (184, "Q"), "cwnd_pkts": (80, "I"), "mss_bytes": (16, "I")
}
LOOKS = ("rtt_us", "rttvar_us", "cwnd_pkts", "delivery_rate_bytes")


class Looks:
    """All looks at one connection; those from before its first round trip are not counted."""

    def __init__(self):
        self.values: dict[str, list[int]] = {name: [] for name in LOOKS}
        self.last: dict[str, int] = {}

    def look(self, sock: socket.socket) -> None:
        raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, INFO_BYTES)
        self.last = {name: struct.unpack_from("=" + kind, raw, at)[0] for name, (at, kind) in FINAL.items()}
        if self.last["min_rtt_us"] and self.last["rtt_us"]:
            for name in LOOKS:
                self.values[name].append(self.last[name])

    def figures(self, seconds: float) -> dict:
        """Of a session that was so long at its last look; without a round trip it has no means."""
        out = {**self.last, "seen_us": round(seconds * 1e6), "looks": len(self.values["rtt_us"])}
        for name, values in self.values.items():
            if values:
                values = sorted(values)
                out.update({f"{name}_min": values[0], f"{name}_mean": sum(values) / len(values),
                            f"{name}_p95": values[int(0.95 * (len(values) - 1))]})
        return out
