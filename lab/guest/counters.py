"""The kernel's own figures: what any exporter could read, read here independently of it."""
import socket
import struct

from .netlink import (
    NETLINK_ROUTE,
    NL80211_ATTR_MAC,
    NL80211_ATTR_STA_INFO,
    NL80211_CMD_GET_STATION,
    NL80211_CMD_GET_SURVEY,
    RTM_GETLINK,
    RTM_GETQDISC,
    Netlink,
    Nl80211,
    attrs,
    messages,
    number,
)

STA_TX_PACKETS, STA_TX_RETRIES, STA_TX_FAILED, STA_RX_PACKETS, STA_TID_STATS, STA_RX_DURATION, STA_TX_DURATION = (
    10,
    11,
    12,
    9,
    31,
    32,
    39,
)
TID_TX_MSDU, TID_RETRIES, TID_FAILED, TID_TXQ = 2, 3, 4, 6
TXQ_BACKLOG_BYTES, TXQ_BACKLOG_PKTS, TXQ_DROPS, TXQ_OVERLIMIT, TXQ_TX_PKTS = 1, 2, 4, 6, 10


class Counters:
    """Counters of one AP, in its namespace (opened there: see agent)."""

    def __init__(self, wlan: str, lan: str):
        self.nl80211, self.route = Nl80211(), Netlink(NETLINK_ROUTE)
        self.wlan, self.lan = socket.if_nametoindex(wlan), socket.if_nametoindex(lan)

    def stations(self) -> dict:
        """By address: packets, retries, failures and the TXQ figures summed over TIDs."""
        out = {}
        for _, body in messages(self.nl80211.command(NL80211_CMD_GET_STATION, self.wlan), 4):
            top = attrs(body)
            info = attrs(top[NL80211_ATTR_STA_INFO])
            row = {
                "tx_packets": number(info.get(STA_TX_PACKETS, b"")), "rx_packets": number(info.get(STA_RX_PACKETS,
                                                                                                   b"")),
                "tx_retries": number(info.get(STA_TX_RETRIES, b"")), "tx_failed": number(info.get(STA_TX_FAILED, b"")),
                "airtime_us": number(info.get(STA_TX_DURATION, b"")) + number(info.get(STA_RX_DURATION, b"")),
                "msdu_failed": 0, "txq_drops": 0, "txq_overlimit": 0, "txq_tx_packets": 0, "txq_backlog": 0
            }
            for tid in attrs(info.get(STA_TID_STATS, b"")).values():
                values = attrs(tid)
                row["msdu_failed"] += number(values.get(TID_FAILED, b""))
                txq = attrs(values.get(TID_TXQ, b""))
                row["txq_drops"] += number(txq.get(TXQ_DROPS, b""))
                row["txq_overlimit"] += number(txq.get(TXQ_OVERLIMIT, b""))
                row["txq_tx_packets"] += number(txq.get(TXQ_TX_PKTS, b""))
                row["txq_backlog"] += number(txq.get(TXQ_BACKLOG_PKTS, b""))
            out[top[NL80211_ATTR_MAC].hex(":")] = row
        return out

    def survey(self) -> dict:
        for _, body in messages(self.nl80211.command(NL80211_CMD_GET_SURVEY, self.wlan), 4):
            info = attrs(attrs(body)[84])
            if 3 in info:
                return {name: number(info.get(key, b"")) for name, key in
                        (("time_ms", 4), ("busy_ms", 5), ("ext_busy_ms", 6), ("rx_ms", 7), ("tx_ms", 8))}
        return {}

    def qdisc_drops(self) -> int:
        """Packets dropped by the qdiscs of wlan (0 in TXQ mode: there is none that queues)."""
        drops = 0
        for head, body in messages(self.route.request(RTM_GETQDISC, struct.pack("=BxxxiIII", 0, self.wlan, 0, 0, 0)),
                                   20):
            ifindex, = struct.unpack_from("=i", head, 4)
            parent, = struct.unpack_from("=I", head, 12)
            stats = attrs(body).get(3)
            if ifindex == self.wlan and parent == 0xffffffff and stats:
                drops += struct.unpack_from("=QII", stats)[2]
        return drops

    def tx_dropped(self) -> int:
        """Packets dropped for want of room in mac80211's queues: interface statistics of wlan (see medium/README.md).
        """
        raw = self.route.request(RTM_GETLINK, struct.pack("=BxHiII", 0, 0, self.wlan, 0, 0), dump=False)
        stats = attrs(next(messages(raw, 16))[1])[23]
        return struct.unpack_from("=8Q", stats)[7]

    def read(self) -> dict:
        stations = self.stations()
        total = {name: sum(row[name] for row in stations.values())
                 for name in ("tx_packets", "tx_retries", "tx_failed", "msdu_failed", "txq_drops", "txq_overlimit")}
        total["qdisc_drops"] = self.qdisc_drops()
        total["wlan_tx_dropped"] = self.tx_dropped()
        return {"total": total, "stations": stations, "survey": self.survey()}
