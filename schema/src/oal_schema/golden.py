"""Write the golden vectors (golden/README.md) from the reference implementation.

python -m oal_schema.golden
"""

from __future__ import annotations

from . import golden_bundles, golden_bundles2, golden_items, golden_keys, mac
from .codec import contract, decode
from .features import Interpreter
from .golden_batches import actions, extremes, feature_sequence, refresh, senders, sessions
from .golden_file import container
from .golden_refused import refused
from .model import ROOT
from .program_compile import MISSING, compile_program
from .program_file import to_bytes


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
    return {"name": "operators", "features": f + _chosen()}


def _chosen() -> list[dict]:
    """Groups that count and that choose an entity, changes, and a KEY column that is a number."""
    f = []
    for op in ("last", "delta", "rate", "max", "min", "mean"):
        for group in ("count", "total", {"at": "last_max"}, {"at": "delta_max"}, {"at": "mean_min"}):
            said = group if isinstance(group, str) else "at_" + group["at"]
            column = "station_ac.tx_bytes" if said == "total" else "station_ac.backlog_bytes"
            f.append(
                {"name": f"{op}_{said}", "op": op, "group": group, "input": column, "window": 1 + len(f) % 7, "div": 3}
            )
    station = [
        ("rate_busiest", "rate", "tx_bytes", "max", 2),
        ("signal_busiest", "last", "signal_avg_dbm", {"at": "rate_busiest"}, 1),
        ("pkts_busiest", "delta", "tx_pkts", {"at": "rate_busiest"}, 3),
        ("ack_busiest", "mean", "ack_signal_dbm", {"at": "rate_busiest"}, 2),
        ("retries_least", "delta", "tx_retries", "min", 5),
        ("bitrate_least", "last", "tx_bitrate_kbps", {"at": "retries_least"}, 1),
        ("signals", "last", "signal_avg_dbm", "count", 1),
        ("stations", "last", "tx_bitrate_kbps", "count", 1),
    ]
    f += [
        {"name": name, "op": op, "input": f"station.{column}", "group": group, "window": window}
        for name, op, column, group, window in station
    ]
    peer = {"input": "neighbour_ap.tx_kbps", "op": "last"}
    up = {"op": "last", "where": {"direction": 1}}
    sent = {"op": "delta", "input": "flow.sent_bytes", "where": {"direction": 1}, "window": 4}
    return f + [
        {"name": "peer_most", **peer, "group": "max"},
        {"name": "peer_number", **peer, "group": "count", "div": 30_000},
        {"name": "peer_total", **peer, "group": "total"},
        {"name": "peer_mhz", "op": "last", "input": "neighbour_ap.frequency_mhz", "group": {"at": "peer_most"}},
        {"name": "own_mhz", "op": "last", "input": "channel.frequency_mhz", "group": "max"},
        {"name": "sent_most", **sent, "group": "max"},
        {"name": "rtt_of_most", "input": "flow.rtt_down_us", "group": {"at": "sent_most"}, **up},
        {"name": "rwnd_of_most", "input": "flow.rwnd_bytes", "group": {"at": "sent_most"}, **up},
        {"name": "change", "op": "change", "a": "counter", "window": 1},
        {"name": "change_late", "op": "change", "a": "rtt_of_most", "window": 64},
        {"name": "change_missing", "op": "change", "a": "absent", "window": 3},
        {"name": "change_of_change", "op": "change", "a": "change", "window": 2, "lo": -9, "default": 7},
    ]
def rows_text(records: list[tuple[int, bytes]]) -> str:
    """`NAME.rows.txt` of these records."""
    lines = []
    for topic, data in records:
        b = decode(topic, data)
        h = b.header
        lines.append(
            f"batch {topic} {h['ap_id'] or '-'} {h['site'] or '-'} {h['boot_id']} {h['seq']} {h['t0_us']} "
            f"{h['tick_us']} {h['ticks']} {b.rows()}"
        )
        lines += [
            f"flow {f['flow_id']} {f['client_addr'].hex()} {f['server_addr'].hex()} {f['client_port']} "
            f"{f['server_port']} {f['protocol']} {f['station_mac']}"
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
    records = refresh()
    out["refresh.bin"], out["refresh.rows.txt"] = container(records), rows_text(records).encode()
    records = senders()
    out["senders.bin"], out["senders.rows.txt"] = container(records), rows_text(records).encode()
    records = sessions()
    out["sessions.bin"], out["sessions.rows.txt"] = container(records), rows_text(records).encode()
    records = feature_sequence()
    out["features.bin"] = container(records)
    out["features.rows.txt"] = rows_text(records[:6]).encode()
    out["features.congestion.txt"] = features_text(records, s.programs[0].words).encode()
    program = compile_program(operators(), s.table, s.settings["decision_interval_us"], "operators")
    out["operators.oalf"] = to_bytes(program.words, program.decision_interval_us)
    out["features.operators.txt"] = features_text(records, program.words).encode()
    bad = refused()
    out["refused.bin"] = container([(t, d) for t, d, _ in bad if len(d) <= s.settings["max_batch_bytes"]])
    out["refused.txt"] = ("\n".join(r for _, d, r in bad if len(d) <= s.settings["max_batch_bytes"]) + "\n").encode()
    out["macs.txt"] = macs_text().encode()
    return out | golden_bundles.outputs() | golden_bundles2.outputs() | golden_items.outputs() | golden_keys.outputs()


if __name__ == "__main__":
    files = outputs()
    for name, content in files.items():
        (ROOT / "golden" / name).write_bytes(content)
    print(f"schema: {len(files)} golden files, {sum(map(len, files.values())) / 1e3:.0f} kB")
