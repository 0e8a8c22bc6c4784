"""Golden batches: every column at the ends of its range, rows of `action`, an AP whose state changes
(golden/README.md).
"""

from __future__ import annotations

import random
from dataclasses import replace

from .codec import Batch, contract, encode

NOW_US = 1_800_000_000_000_000
KEY = "ap-1"
#: of the files that stand since then: a new column or table gets a file of its own
REVISION, TABLES = 2, 14
T0 = NOW_US - 60_000_000


def empty_row(table) -> dict:
    """A row of a table with 0 in every column."""
    return {"absent": 0} | {c.name: 0 for c in table.columns}


def batch_header(seq: int, t0: int, boot: int = 0x1122334455667788, **more) -> dict:
    s = contract().settings
    return {
        "ap_id": KEY,
        "site": "lab",
        "boot_id": boot,
        "seq": seq,
        "t0_us": t0,
        "tick_us": s["tick_us"],
        "ticks": s["batch_ticks"],
        "schema_revision": REVISION,
        "names": ["wlan0", "eth0", "fq_codel", "mac80211", "0.1.0"],
    } | more


def _extreme_rows(rng: random.Random, table, n: int) -> list[dict]:
    """Rows of random entities whose values jump between the ends of each column's range."""
    rows = []
    for _ in range(3):
        keys = {
            c.name: rng.randint(0, 3) if c.type in ("NAME", "FLOW") else rng.randint(*c.range)
            for c in table.columns
            if c.kind == "KEY"
        }
        times = sorted(rng.sample(range(63), n))
        optional = [1 << c.optional for c in table.columns if c.optional >= 0]
        absent = rng.choice([0, sum(optional), rng.getrandbits(len(optional))]) if optional else 0
        for t in times:
            row = {"absent": absent} | keys
            for c in table.columns:
                if c.kind == "TICK":
                    row[c.name] = t
                elif c.kind == "TIME_US":
                    row[c.name] = t * 4000 + rng.randint(0, 3999)
                elif c.kind != "KEY":
                    lo, hi = c.range
                    gone = c.optional >= 0 and absent >> c.optional & 1
                    row[c.name] = 0 if gone else rng.choice([lo, hi, 0, rng.randint(lo, hi)])
            rows.append(row)
    return rows


def made_flows(rng: random.Random, n: int) -> list[dict]:
    out = []
    for i in range(n):
        size = 16 if i % 3 == 2 else 4
        out.append(
            {
                "flow_id": rng.getrandbits(64),
                "client_addr": rng.randbytes(size),
                "server_addr": rng.randbytes(size),
                "client_port": 40000 + i,
                "server_port": 443,
                "protocol": 6,
                "station_mac": 0x020000000100 + i if i else 0,
            }
        )
    return out


def extremes() -> list[tuple[int, bytes]]:
    """Every table, every column at the ends of its range, absent columns, empty batches."""
    rng = random.Random(1)
    out = []
    for topic in range(3):
        tables = {t.name: _extreme_rows(rng, t, 8) for t in contract().tables[:TABLES] if t.topic == topic}
        flows = made_flows(rng, 4) if topic == 1 else []
        out.append(
            (
                topic,
                encode(
                    Batch(
                        topic,
                        batch_header(
                            topic, T0 + topic * 252_000, missed_start=[3, 9], missed_ticks=[1, 4], ring_drops=7
                        ),
                        tables,
                        flows,
                    )
                ),
            )
        )
        out.append(
            (
                topic,
                encode(
                    Batch(
                        topic,
                        batch_header(topic + 10, T0 + 900_000) | {"site": "", "names": ["a", "b", "c", "d"]},
                        {},
                        [],
                    )
                ),
            )
        )
    return out


def actions() -> list[tuple[int, bytes]]:
    """Table `action` (revision 3): at the ends of its columns' ranges; beside rows of `rewrite`, as no exporter sends
    them; none.
    """
    rng = random.Random(3)
    table, older = contract().table("action"), contract().table("rewrite")
    header = {"schema_revision": 3, "names": ["rwnd-fair", "example", "", "p" * 31, "0.2.0"]}
    row = empty_row(table) | {
        "policy": 0,
        "kind": 1,
        "subject": 77,
        "backend": 3,
        "mac": 0x020000000100,
        "bundle": 5,
        "class": 2,
        "reason": 1,
        "value": 58_400,
        "capacity_kbps": 40_000,
        "share_kbps": 20_000,
        "rate_kbps": 30_000,
        "cwnd_bytes": 90_000,
        "queue_us": 31_000,
    }
    direct = empty_row(table) | {
        "policy": 1,
        "kind": 1,
        "subject": 77,
        "backend": 1,
        "bundle": 9,
        "class": 3,
        "reason": 1,
        "value": 30_000,
    }
    rows = [
        row,
        row | {"tick": 5, "value": 43_800},
        row | {"tick": 60, "reason": 5, "value": 0},
        direct | {"tick": 1},
        direct | {"tick": 61, "value": 0},
    ]
    clamp = empty_row(older) | {
        "flow_id": 78,
        "backend": 2,
        "class": 255,
        "reason": 3,
        "window_bytes": 29_200,
        "tick": 7,
    }
    return [
        (2, encode(Batch(2, batch_header(0, T0) | header, {"action": _extreme_rows(rng, table, 12)}))),
        (2, encode(Batch(2, batch_header(1, T0 + 252_000) | header, {"rewrite": [clamp], "action": rows}))),
        (2, encode(Batch(2, batch_header(2, T0 + 504_000) | header))),
    ]


def refresh() -> list[tuple[int, bytes]]:
    """Table `counter_refresh` (revision 4): at the ends of its columns' ranges; a counter that becomes faster; none."""
    rng = random.Random(4)
    table = contract().table("counter_refresh")
    header = {"schema_revision": 4, "names": ["phy0-ap0", "phy1-ap0", "eth0", "0.2.0"]}
    airtime = empty_row(table) | {"device": 1, "of_table": 0, "of_field": 29, "period_us": 500_000}
    survey = empty_row(table) | {"of_table": 2, "of_field": 8, "period_us": 1_000_000}
    rows = [survey, airtime, airtime | {"tick": 40, "period_us": 100_000}]
    return [
        (0, encode(Batch(0, batch_header(0, T0) | header, {"counter_refresh": _extreme_rows(rng, table, 12)}))),
        (0, encode(Batch(0, batch_header(1, T0 + 252_000) | header, {"counter_refresh": rows}))),
        (0, encode(Batch(0, batch_header(2, T0 + 504_000) | header))),
    ]


def senders() -> list[tuple[int, bytes]]:
    """Tables `sender_tcp` and `sender_session` (revision 5): at the ends of their columns' ranges; a connection from
    its first look to its end beside one that nobody saw; none.
    """
    rng = random.Random(5)
    tcp, session = contract().table("sender_tcp"), contract().table("sender_session")
    session = replace(session, columns=[c for c in session.columns if c.name != "cc"])  # it came with revision 6
    header = {"schema_revision": 5, "names": ["cubic", "bbr", "reno", "", "0.2.0"]}
    look = empty_row(tcp) | {
        "interval_ms": 100,
        "state": 1,
        "cwnd_bytes": 14_480,
        "ssthresh_bytes": 0xFFFFFFFF,
        "mss_bytes": 1448,
        "unacked_pkts": 10,
        "rtt_us": 20_300,
        "rttvar_us": 5_000,
        "min_rtt_us": 20_011,
        "delivery_rate_bps": 40_000_000,
        "pacing_rate_bps": (1 << 63) - 1,
        "bytes_acked": 1_000_000,
        "segs_out": 700,
        "data_segs_out": 699,
        "delivered_pkts": 690,
    }
    lost = {"cwnd_bytes": 10_136, "ssthresh_bytes": 10_136, "retrans_pkts": 3, "lost_pkts": 1, "delivered_ce_pkts": 2}
    seen = empty_row(session) | {
        "client_prefix": 0xC0A801,
        "end_known": 1,
        "seen_us": 5_200_000,
        "rtt_looks": 52,
        "rtt_min_us": 20_100,
        "rtt_mean_us": 24_000,
        "rtt_p95_us": 31_000,
        "rtt_us": 22_000,
        "bytes_acked": 2_000_000,
        "segs_out": 1500,
        "retrans_pkts": 3,
        "tick": 62,
    }
    looked = ("seen_us", "rtt_min_us", "rtt_mean_us", "rtt_p95_us")
    absent = sum(1 << c.optional for c in session.columns if c.name in looked)
    unseen = empty_row(session) | {
        "absent": absent,
        "flow": 2,
        "congestion_control": 3,
        "client_prefix": -0x0200000000000000,
        "end_known": 1,
        "segs_out": 4,
        "tick": 9,
    }
    flows = made_flows(rng, 4)
    rows = {"sender_tcp": [look, look | {"tick": 25} | lost], "sender_session": [seen, unseen]}
    extreme = {t.name: _extreme_rows(rng, t, 12) for t in (tcp, session)}
    for row in extreme["sender_session"] + rows["sender_session"]:
        row["cc"] = 0
    return [
        (1, encode(Batch(1, batch_header(0, T0) | header, extreme, flows))),
        (1, encode(Batch(1, batch_header(1, T0 + 252_000) | header, rows, flows))),
        (1, encode(Batch(1, batch_header(2, T0 + 504_000) | header, {}, []))),
    ]


def sessions() -> list[tuple[int, bytes]]:
    """Table `sender_session` with the number of its congestion control (revision 6), at the ends of columns' ranges."""
    rng = random.Random(6)
    table = contract().table("sender_session")
    header = {"schema_revision": 6, "names": ["cubic", "bbr", "reno", "", "0.2.0"]}
    rows = {table.name: _extreme_rows(rng, table, 12)}
    return [(1, encode(Batch(1, batch_header(0, T0) | header, rows, made_flows(rng, 4))))]


class _Ap:
    """A synthetic AP whose sampled state goes through the same dedup rule as the exporter's: sent on change, keyframe
    at each batch.
    """

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.state: dict[tuple[str, tuple], dict] = {}

    def entity(self, table_name: str, **values) -> None:
        table = contract().table(table_name)
        row = empty_row(table) | values
        self.state[table_name, tuple(row[c.name] for c in table.columns if c.kind == "KEY")] = row

    def batch(self, topic: int, header: dict, flows: list[dict]) -> bytes:
        tables: dict[str, list[dict]] = {}
        for (name, _), row in self.state.items():
            table = contract().table(name)
            if table.topic != topic or table.event:
                continue
            rows = tables.setdefault(name, [])
            for tick in range(63):
                before = dict(row)
                if tick:
                    self._step(table, row)
                if tick == 0 or any(c.change and before[c.name] != row[c.name] for c in table.columns):
                    rows.append(row | {"tick": tick})
        if topic == 1:
            tables["packet"] = []
            for f in range(len(flows)):
                for direction in (0, 1):
                    for t in sorted(self.rng.sample(range(252_000), 40)):
                        tables["packet"].append(
                            empty_row(contract().table("packet"))
                            | {
                                "flow": f,
                                "direction": direction,
                                "t_us": t,
                                "payload_bytes": 1448 if direction == 0 else 0,
                                "flags": 16,
                                "window_raw": 500,
                            }
                        )
        return encode(Batch(topic, header, tables, flows))

    def _step(self, table, row: dict) -> None:
        for c in table.columns:
            lo, hi = c.range
            if c.kind == "COUNTER" and self.rng.random() < 0.1:
                row[c.name] += self.rng.randint(0, 3000)
                if row[c.name] > hi:
                    row[c.name] -= 1 << c.counter_bits
            elif c.kind == "GAUGE" and self.rng.random() < 0.1:
                row[c.name] = min(max(row[c.name] + self.rng.randint(-500, 500) // (100 if hi < 1000 else 1), lo), hi)


def feature_sequence() -> list[tuple[int, bytes]]:
    """Forty intervals: stations and neighbour APs that come and leave, counters that restart, a wrap, absent columns, a
    lost batch, a long hole, a reboot.
    """
    ap = _Ap(2)
    for i in range(4):
        mac = 0x020000000100 + i
        ap.entity(
            "station",
            mac=mac,
            device=0,
            interval_ticks=1,
            tx_pkts=(1 << 32) - 2000 if i == 0 else 1000 * i,
            signal_avg_dbm=-50 - i,
            tx_bitrate_kbps=65000,
            ack_signal_dbm=-60,
        )
        for ac in (2, 3):
            ap.entity("station_ac", mac=mac, device=0, ac=ac, tx_bytes=(1 << 32) - 5000 if i == 1 else 0)
    ap.entity("channel", device=0, frequency_mhz=2412, width_mhz=20, noise_dbm=-92)
    ap.entity("queue", device=1, handle=0x10000, parent=0xFFFFFFFF, kind=2)
    ap.entity("beacon", bssid=0x0A0000000001, device=0, frequency_mhz=2412, signal_dbm=-70)
    flows = made_flows(ap.rng, 3)
    for f in range(3):
        for direction in (0, 1):
            ap.entity("flow", flow=f, direction=direction, rtt_down_us=8000 + 1000 * f)
    out, t0, boot = [], T0, 5
    for seq in range(40):
        if seq in (4, 26):
            for i in range(3):
                ap.entity(
                    "neighbour_ap",
                    neighbour=(1 << 62) + i,
                    frequency_mhz=2412,
                    stations=i,
                    tx_kbps=20_000 * i,
                    tx_airtime_permille=300 * i,
                    busy_permille=500,
                    backlog_bytes=90_000,
                    age_ms=40,
                )
        if seq == 10:
            del ap.state["station", (0x020000000102, 0)]
        if seq == 16:
            del ap.state["neighbour_ap", (1 << 62, 2412)]
        if seq == 20:
            del ap.state["neighbour_ap", ((1 << 62) + 1, 2412)], ap.state["neighbour_ap", ((1 << 62) + 2, 2412)]
        if seq == 14:
            for row in ap.state.values():
                if row.get("mac") == 0x020000000101 and "tx_pkts" in row:
                    row |= {"tx_pkts": 5, "tx_bytes": 100}
        if seq == 18:
            ap.state["channel", (0, 2412)] |= {"absent": 1 << 3, "tx_ms": 0}
        if seq == 24:
            t0 += 10_000_000
        if seq == 30:
            boot = 6
        header = batch_header(seq if boot == 5 else seq - 30, t0 + ap.rng.randint(0, 50), boot)
        if seq != 21:
            out.append((0, ap.batch(0, header, flows)))
            if seq != 34:
                out.append((1, ap.batch(1, header, flows)))
        t0 += 252_000
    return out
