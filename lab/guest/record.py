"""Record raw netlink replies every 4 ms, for tests of parsers. Format and kinds: ap-exporter/tests/data/nl/README.md.
"""
import socket
import struct
import time

from .netlink import (
    NETLINK_ROUTE,
    NL80211_CMD_GET_INTERFACE,
    NL80211_CMD_GET_SCAN,
    NL80211_CMD_GET_STATION,
    NL80211_CMD_GET_SURVEY,
    RTM_GETLINK,
    RTM_GETNEIGH,
    RTM_GETQDISC,
    Netlink,
    Nl80211,
)

KINDS = {"station": 1, "survey": 2, "interface": 3, "scan": 4, "qdisc": 5, "link": 6, "neigh": 7}
TICK_NS = 4_000_000


class Recorder:
    """Made in the AP's namespace; run() there or elsewhere, its sockets stay where they were opened."""

    def __init__(self, wlan: str, path: str):
        self.nl80211, self.route = Nl80211(), Netlink(NETLINK_ROUTE)
        self.wlan, self.path = socket.if_nametoindex(wlan), path

    def replies(self, tick: int):
        """(kind, raw replies) of one tick. Slow kinds come with the first tick and every 25th."""
        yield "station", self.nl80211.command(NL80211_CMD_GET_STATION, self.wlan)
        yield "survey", self.nl80211.command(NL80211_CMD_GET_SURVEY, self.wlan)
        yield "qdisc", self.route.request(RTM_GETQDISC, struct.pack("=BxxxiIII", 0, 0, 0, 0, 0))
        if tick % 25 == 0:
            yield "interface", self.nl80211.command(NL80211_CMD_GET_INTERFACE, self.wlan, dump=False)
            yield "scan", self.nl80211.command(NL80211_CMD_GET_SCAN, self.wlan)
            yield "link", self.route.request(RTM_GETLINK, struct.pack("=BxHiII", 0, 0, 0, 0, 0))
            # PF_BRIDGE: the bridge's table
            yield "neigh", self.route.request(RTM_GETNEIGH, struct.pack("=BxxxiHBB", 7, 0, 0, 0, 0))

    def run(self, duration_ms: int) -> None:
        due = time.monotonic_ns()
        with open(self.path, "wb") as f:
            for tick in range(duration_ms * 1_000_000 // TICK_NS):
                due += TICK_NS
                time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
                for kind, raw in self.replies(tick):
                    f.write(struct.pack("<BIQ", KINDS[kind], len(raw), time.time_ns()) + raw)
