"""A connection's sample as a row of the table `sender_tcp` (schema/stream_tables.yaml)."""
from __future__ import annotations

from .clock import Offset
from .diag import INFINITE_SSTHRESH, UNLIMITED, Connection

U32 = 0xFFFFFFFF
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
COLUMNS = ("ts", "host", "flow_id", "server_port", "client_port", "congestion_control", "state", "cwnd_bytes",
           "ssthresh_bytes", "mss_bytes", "unacked_pkts", "rtt_us", "min_rtt_us", "delivery_rate_bps",
           "pacing_rate_bps", "bytes_acked", "retrans_pkts", "lost_pkts", "clock_offset_us", "clock_offset_error_us")


def flow_id(client: bytes, server: bytes, client_port: int, server_port: int, protocol: int = 6) -> int:
    """The exporter's number of a flow (schema, FlowDictionary): 64-bit FNV-1a. The client is the Wi-Fi side: here the
    remote end.
    """
    h = FNV_BASIS
    for byte in client + server + client_port.to_bytes(2, "big") + server_port.to_bytes(2, "big") + bytes([protocol]):
        h = (h ^ byte) * FNV_PRIME & UNLIMITED
    return h


def row(c: Connection, ts_us: int, host: str, clock: Offset) -> dict:
    """All columns of sender_tcp."""
    i = c.info
    infinite = i["ssthresh_pkts"] >= INFINITE_SSTHRESH
    return {
        "ts": ts_us, "host": host, "flow_id": flow_id(c.remote, c.local, c.remote_port, c.local_port),
        "server_port": c.local_port, "client_port": c.remote_port, "congestion_control": c.congestion_control,
        "state": i["state"], "cwnd_bytes": min(i["cwnd_pkts"] * i["mss_bytes"], U32),
        "ssthresh_bytes": U32 if infinite else min(i["ssthresh_pkts"] * i["mss_bytes"], U32 - 1), "mss_bytes": min(
            i["mss_bytes"], 0xFFFF), "unacked_pkts": i["unacked_pkts"], "rtt_us": i["rtt_us"],
        "min_rtt_us": 0 if i["min_rtt_us"] == U32 else i["min_rtt_us"], "delivery_rate_bps": i["delivery_bytes_per_s"]
        * 8, "pacing_rate_bps": UNLIMITED if i["pacing_bytes_per_s"] >= UNLIMITED // 8 else i["pacing_bytes_per_s"] * 8,
        "bytes_acked": i["bytes_acked"], "retrans_pkts": i["retrans_pkts"], "lost_pkts": i["lost_pkts"],
        "clock_offset_us": clock.offset_us, "clock_offset_error_us": clock.error_us
    }


class Changes:
    """Lets a connection's row pass when it differs from the last one passed in more than its time, and at least every
    keep_us.
    """

    IGNORED = {"ts", "clock_offset_us", "clock_offset_error_us"}

    def __init__(self, keep_us: int = 1_000_000):
        self.keep_us = keep_us
        self.last: dict[bytes, tuple[int, tuple]] = {}

    def of(self, sampled: list[tuple[bytes, dict]]) -> list[dict]:
        """The rows of one sample, (cookie, row) each, that are news. Connections that are gone are forgotten."""
        out, now = [], {}
        for cookie, r in sampled:
            values = tuple(v for k, v in r.items() if k not in self.IGNORED)
            before = self.last.get(cookie)
            if before is None or before[1] != values or r["ts"] - before[0] >= self.keep_us:
                out.append(r)
                before = (r["ts"], values)
            now[cookie] = before
        self.last = now
        return out
