"""Write the golden vectors (golden/README.md) from the reference implementation.

python -m oal_schema.golden
"""

from __future__ import annotations

import random

from . import golden_bundles, golden_bundles2, golden_items, mac, wire
from .codec import Batch, contract, decode, encode
from .features import Interpreter
from .golden_file import container
from .model import MISSING, ROOT, compile_program
from .program_file import to_bytes

NOW_US = 1_800_000_000_000_000
KEY = "ap-1"
#: of the files that stand since then: a new column or table gets a file of its own
REVISION, TABLES = 2, 14
T0 = NOW_US - 60_000_000


def _zero(table) -> dict:
    return {"absent": 0} | {c.name: 0 for c in table.columns}


def _header(seq: int, t0: int, boot: int = 0x1122334455667788, **more) -> dict:
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
        absent = rng.choice([0, 0, 1]) if any(c.optional >= 0 for c in table.columns) else 0
        for t in times:
            row = {"absent": absent} | keys
            for c in table.columns:
                if c.kind == "TICK":
                    row[c.name] = t
                elif c.kind == "TIME_US":
                    row[c.name] = t * 4000 + rng.randint(0, 3999)
                elif c.kind != "KEY":
                    lo, hi = c.range
                    row[c.name] = 0 if absent & 1 and c.optional == 0 else rng.choice([lo, hi, 0, rng.randint(lo, hi)])
            rows.append(row)
    return rows


def _flows(rng: random.Random, n: int) -> list[dict]:
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
        flows = _flows(rng, 4) if topic == 1 else []
        out.append(
            (
                topic,
                encode(
                    Batch(
                        topic,
                        _header(topic, T0 + topic * 252_000, missed_start=[3, 9], missed_ticks=[1, 4], ring_drops=7),
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
                        topic, _header(topic + 10, T0 + 900_000) | {"site": "", "names": ["a", "b", "c", "d"]}, {}, []
                    )
                ),
            )
        )
    return out


def actions() -> list[tuple[int, bytes]]:
    """Table `action` (revision 3): at the ends of its columns' ranges; beside rows of `rewrite`, as no exporter sends them; none."""
    rng = random.Random(3)
    table, older = contract().table("action"), contract().table("rewrite")
    header = {"schema_revision": 3, "names": ["rwnd-fair", "example", "", "p" * 31, "0.2.0"]}
    row = _zero(table) | {
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
    direct = _zero(table) | {
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
    clamp = _zero(older) | {"flow_id": 78, "backend": 2, "class": 255, "reason": 3, "window_bytes": 29_200, "tick": 7}
    return [
        (2, encode(Batch(2, _header(0, T0) | header, {"action": _extreme_rows(rng, table, 12)}))),
        (2, encode(Batch(2, _header(1, T0 + 252_000) | header, {"rewrite": [clamp], "action": rows}))),
        (2, encode(Batch(2, _header(2, T0 + 504_000) | header))),
    ]


class _Ap:
    """A synthetic AP whose sampled state goes through the same dedup rule as the exporter's: sent on change, keyframe at each batch."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.state: dict[tuple[str, tuple], dict] = {}

    def entity(self, table_name: str, **values) -> None:
        table = contract().table(table_name)
        row = _zero(table) | values
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
                            _zero(contract().table("packet"))
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
    """Forty intervals: stations and neighbour APs that come and leave, counters that restart, a wrap, absent columns, a lost batch, a long hole, a reboot."""
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
    flows = _flows(ap.rng, 3)
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
        header = _header(seq if boot == 5 else seq - 30, t0 + ap.rng.randint(0, 50), boot)
        if seq != 21:
            out.append((0, ap.batch(0, header, flows)))
            if seq != 34:
                out.append((1, ap.batch(1, header, flows)))
        t0 += 252_000
    return out


def operators() -> dict:
    """A program with every operator and group, and limits that bite."""
    f = []
    for op in ("last", "delta", "rate", "max", "min", "mean"):
        for group in ("sum", "max", "min", "mean"):
            f.append(
                {
                    "name": f"{op}_{group}",
                    "op": op,
                    "group": group,
                    "input": "station_ac.backlog_bytes",
                    "window": 1 + len(f) % 7,
                    "mul": 1 + len(f),
                    "div": 1 + len(f) % 3,
                }
            )
    f += [
        {"name": "counter", "op": "delta", "input": "station.tx_pkts", "group": "sum", "window": 3},
        {"name": "absent", "op": "last", "input": "channel.tx_ms", "group": "max"},
        {
            "name": "filtered",
            "op": "mean",
            "input": "flow.rtt_down_us",
            "where": {"direction": 1},
            "group": "mean",
            "window": 64,
        },
        {
            "name": "event_sum",
            "op": "sum",
            "input": "packet.payload_bytes",
            "where": {"direction": 0},
            "group": "max",
            "window": 2,
        },
        {"name": "event_count", "op": "count", "input": "packet.payload_bytes", "group": "sum", "window": 1},
        {"name": "huge", "op": "last", "input": "station.tx_bitrate_kbps", "group": "sum", "mul": 1 << 62},
        {
            "name": "clamped",
            "op": "last",
            "input": "station.signal_avg_dbm",
            "group": "min",
            "lo": -55,
            "hi": -51,
            "default": 1,
        },
        {
            "name": "neighbours_airtime",
            "op": "last",
            "input": "neighbour_ap.tx_airtime_permille",
            "group": "sum",
            "default": 0,
        },
        {
            "name": "neighbours_rate",
            "op": "mean",
            "input": "neighbour_ap.tx_kbps",
            "where": {"frequency_mhz": 2412},
            "group": "max",
            "window": 5,
        },
        {
            "name": "neighbours_backlog",
            "op": "delta",
            "input": "neighbour_ap.backlog_bytes",
            "group": "min",
            "window": 10,
        },
        {
            "name": "neighbours_elsewhere",
            "op": "max",
            "input": "neighbour_ap.busy_permille",
            "where": {"frequency_mhz": 5180},
            "group": "mean",
            "window": 2,
        },
        {"name": "nothing", "op": "max", "input": "queue.ecn_marks", "group": "min", "default": 42},
        {"name": "ratio", "op": "ratio", "a": "counter", "b": "event_count", "scale": 1000},
        {"name": "ratio_zero", "op": "ratio", "a": "counter", "b": "delta_min", "scale": 7},
        {"name": "ewma", "op": "ewma", "a": "delta_sum", "shift": 2},
        {"name": "lag", "op": "lag", "a": "ewma", "window": 3},
        {"name": "diff", "op": "diff", "a": "lag", "b": "ewma"},
        {"name": "add", "op": "add", "a": "huge", "b": "huge", "hi": 1 << 54},
    ]
    return {"name": "operators", "features": f}


def refused() -> list[tuple[int, bytes, str]]:
    """Records that must be refused, with the reason."""
    table = contract().table("station")
    row = _zero(table)

    def ok(**header) -> bytes:
        return encode(Batch(0, _header(0, T0, **header), {"station": [row, row | {"tick": 1, "tx_bytes": 9}]}))

    def with_table(field_bytes: bytes) -> bytes:
        out = bytearray(encode(Batch(0, _header(0, T0))))
        wire.put_bytes(out, table.field, field_bytes)
        return bytes(out)

    good = ok()

    def field(number: int, payload: bytes) -> bytes:
        out = bytearray()
        wire.put_bytes(out, number, payload)
        return bytes(out)

    tick, signal, mac = table.column("tick").field, table.column("signal_dbm").field, table.column("mac").field
    cases = [
        (b"\x00" * (contract().settings["max_batch_bytes"] + 1), "oversized"),
        (good[:-1], "truncated"),
        (good[: len(good) // 2], "truncated"),
        (b"", "malformed"),
        (b"\x0b", "malformed"),  # wire type 3
        (b"\x0a\x00", "malformed"),  # empty header
        (good + good, "malformed"),  # two headers
        (b"\xff" * 11, "malformed"),  # varint over ten bytes
        (ok(tick_us=0), "malformed"),
        (ok(ticks=0), "malformed"),
        (ok(ap_id=""), "malformed"),
        (ok(missed_start=[1], missed_ticks=[]), "malformed"),
        (ok(schema_revision=0), "unknown_revision"),
        (ok(schema_revision=99), "unknown_revision"),
        (ok(ap_id="ap-2"), "key_mismatch"),
        (ok(t0_us=NOW_US + 61_000_000), "time_range"),
        (ok(t0_us=NOW_US - 604_801_000_000), "time_range"),
        (with_table(field(1, b"\x02") + field(tick, b"\x02")), "malformed"),  # one value for two rows
        (with_table(field(1, b"\x01") + field(tick, b"\x02\x02")), "malformed"),  # two values for one row
        (with_table(field(1, b"\x02") + field(tick, b"\x00")), "malformed"),  # zero without count
        (with_table(field(1, b"\x02") + field(tick, b"\x00\x7e")), "malformed"),  # too many zeros
        (with_table(field(1, b"\x02") + field(tick, b"\x00\x03")), "malformed"),  # negative count
        (with_table(field(1, b"\x00")), "malformed"),  # empty run
        (with_table(field(1, b"\x01" * 600)), "malformed"),  # more runs than allowed
        (with_table(field(1, b"\xff\xff\x07")), "malformed"),  # more rows than allowed
        (with_table(field(1, b"\x01") + field(2, b"\x40")), "malformed"),  # absent bit of no column
        (with_table(field(1, b"\x01") + field(2, b"\x01\x01")), "malformed"),  # absent for two runs
        (with_table(field(1, b"\x01") + field(4, b"\x10")), "malformed"),  # device outside the dictionary
        (with_table(field(1, b"\x01") + field(1, b"\x01")), "malformed"),  # field repeated
        (with_table(field(1, b"\x01") + bytes([tick << 3, 1])), "malformed"),  # wrong wire type
        (with_table(field(1, b"\x01") + field(signal, b"\x80\x02")), "value_range"),  # signal 128
        (with_table(field(1, b"\x01") + field(mac, b"\x01")), "value_range"),  # MAC -1
        (with_table(field(1, b"\x01") + field(tick, b"\x01")), "value_range"),  # tick -1
        (with_table(field(1, b"\x01") + field(tick, b"\xfe\xff\xff\xff\x1f")), "value_range"),  # tick past 2^40 us
    ]
    return [(0, data, reason) for data, reason in cases]


def rows_text(records: list[tuple[int, bytes]]) -> str:
    """`NAME.rows.txt` of these records."""
    lines = []
    for topic, data in records:
        b = decode(topic, data)
        h = b.header
        lines.append(
            f"batch {topic} {h['ap_id'] or '-'} {h['site'] or '-'} {h['boot_id']} {h['seq']} {h['t0_us']} {h['tick_us']} {h['ticks']} {b.rows()}"
        )
        lines += [
            f"flow {f['flow_id']} {f['client_addr'].hex()} {f['server_addr'].hex()} {f['client_port']} {f['server_port']} {f['protocol']} {f['station_mac']}"
            for f in b.flows
        ]
        for t in contract().tables:
            for row in b.tables.get(t.name, []):
                values = " ".join(str(row[c.name]) for c in t.columns if c.kind not in ("TICK", "TIME_US"))
                lines.append(f"{t.name} {b.time_us(row)} {row['absent']} {values}")
    return "\n".join(lines) + "\n"


def features_text(records: list[tuple[int, bytes]], words) -> str:
    """`NAME.features.txt`: the program over the records in groups of equal t0_us."""
    interpreter, lines, group = Interpreter(words), [], []

    def feed():
        for instant, values in interpreter.feed(*group):
            lines.append(f"{instant} " + " ".join("-" if v == MISSING else str(v) for v in values))

    for topic, data in records:
        b = decode(topic, data)
        if group and group[0].header["t0_us"] != b.header["t0_us"]:
            feed()
            group = []
        group.append(b)
    if group:
        feed()
    return "\n".join(lines) + "\n"


def macs_text() -> str:
    """`macs.txt`: the header `oal-mac` of the records of `extremes.bin`, for names and sites of several kinds."""
    lines = []
    for key_id, master, ap_id, site in (
        (1, bytes(range(32)), "ap-1", "lab"),
        (2, b"\xff" * 32, "ap-1", "lab"),
        (1, bytes(range(32)), "ap-1", ""),
        (1, bytes(range(32)), "ap-2", "lab"),
        (255, bytes(range(32)), "a" * 64, "s" * 64),
    ):
        key = mac.ap_key(master, ap_id, site)
        lines.append(f"key {key_id} {master.hex()} {ap_id} {site or '-'} {key.hex()}")
        for topic, name in enumerate(mac.TOPICS):
            lines += [
                f"text {topic} {size} {mac.header(key_id, key, name, b'x' * size).hex()}" for size in (0, 63, 64, 65)
            ]
        for number, (topic, data) in enumerate(extremes()):
            lines.append(f"record {topic} {number} {mac.header(key_id, key, list(mac.TOPICS)[topic], data).hex()}")
    return "\n".join(lines) + "\n"


def outputs() -> dict[str, bytes]:
    """File name below `golden/` → content."""
    s = contract()
    out: dict[str, bytes] = {}
    records = extremes()
    out["extremes.bin"], out["extremes.rows.txt"] = container(records), rows_text(records).encode()
    records = actions()
    out["actions.bin"], out["actions.rows.txt"] = container(records), rows_text(records).encode()
    records = feature_sequence()
    out["features.bin"] = container(records)
    out["features.rows.txt"] = rows_text(records[:6]).encode()
    out["features.congestion.txt"] = features_text(records, s.programs[0].words).encode()
    program = compile_program(s, operators(), "operators")
    out["operators.oalf"] = to_bytes(program.words, program.decision_interval_us)
    out["features.operators.txt"] = features_text(records, program.words).encode()
    bad = refused()
    out["refused.bin"] = container([(t, d) for t, d, _ in bad if len(d) <= s.settings["max_batch_bytes"]])
    out["refused.txt"] = ("\n".join(r for _, d, r in bad if len(d) <= s.settings["max_batch_bytes"]) + "\n").encode()
    out["macs.txt"] = macs_text().encode()
    return out | golden_bundles.outputs() | golden_bundles2.outputs() | golden_items.outputs()


if __name__ == "__main__":
    files = outputs()
    for name, content in files.items():
        (ROOT / "golden" / name).write_bytes(content)
    print(f"schema: {len(files)} golden files, {sum(map(len, files.values())) / 1e3:.0f} kB")
