"""The result of one run: figures of its flows, and of the cell as a whole. A user counts as a user: delays, jitter and
ratios of the cell are means over its long flows, so that a fast station does not drown a slow one."""
import json
import pathlib

import numpy as np
from guest.tap import places

from . import metrics, sessions, tap
from .conversation import match

STEP_S = 0.1
# of the cell: means over long flows of figures of the same name
OVER_FLOWS = [
    *(f"{what}_{which}_ms" for what in ("delay", "queueing", "rtt") for which in ("mean", *metrics.PERCENTILES)),
    "jitter_ms", "jitter_abs_ms", "loss_ratio", "retransmission_ratio"
]


def counted(truth: dict, name: str, begin_ns: float, end_ns: float) -> float:
    """Increase of a counter of the ground truth, which has an entry a second, between two times."""
    at = [s["realtime_us"] * 1e3 for s in truth["seconds"]]
    values = [s[name] for s in truth["seconds"]]
    return float(np.interp(end_ns, at, values) - np.interp(begin_ns, at, values))


def queue_drops(truth: dict, begin_ns: float, end_ns: float) -> float:
    return sum(counted(truth, name, begin_ns, end_ns) for name in ("txq_drops", "wlan_tx_dropped", "qdisc_drops"))


def smallest_delay(packets: np.ndarray, sender_tap: int, receiver_tap: int) -> int:
    """Of those of the packets that went from one place to the other, handshakes included, in ns."""
    sent = packets[(packets["tap"] == sender_tap) & (packets["sent"] == 1)]
    arrived = packets[(packets["tap"] == receiver_tap) & (packets["sent"] == 0)]
    where = match(sent, arrived)
    delay = arrived["t_ns"][where[where >= 0]].astype(np.int64) - sent["t_ns"][where >= 0].astype(np.int64)
    return int(delay.min()) if len(delay) else 0


def mean(values) -> float | None:
    values = [v for v in values if v is not None]
    return float(np.mean(values)) if values else None


def others(plan: dict, long: list[dict]) -> float | None:
    """What long flows with another congestion control than the method's have of the goodput; None where all have the
    same.
    """
    if len({f["cc"] for f in long}) < 2:
        return None
    return sum(f["goodput_mbps"] for f in long if f["cc"] != plan["evaluate"]["cc"]) / sum(
        f["goodput_mbps"] for f in long)


def ratio(flows: list[dict], name: str) -> float | None:
    """A count of flows over the data packets that they sent, of those of which it is known."""
    known = [f for f in flows if f[name] is not None]
    packets = sum(f["packets"] for f in known)
    return sum(f[name] for f in known) / packets if packets else None


def without_ecn(long: list[dict]) -> dict:
    """Of long flows that were told not to ask for ECN, beside others that were: goodput, p95 queueing, and Jain's index
    of the two kinds' goodput at a station, mean over the stations that have both. None where all are alike.
    """
    plain = [f for f in long if f["ecn"] is False]
    of: dict[str, dict[bool, float]] = {}
    for f in (f for f in long if f["ecn"] is not None):
        mine = of.setdefault(f["station"], {})
        mine[f["ecn"]] = mine.get(f["ecn"], 0.0) + f["goodput_mbps"]
    return {"plain_mbps": sum(f["goodput_mbps"] for f in plain) if plain else None,
            "plain_queueing_p95_ms": mean(f["queueing_p95_ms"] for f in plain),
            "jain_ecn": mean(metrics.jain(both.values()) for both in of.values() if len(both) == 2)}


def uploads(flows: list[dict]) -> dict:
    """Figures of long flows from stations to the server, with `up_` before their names; other figures of a cell are of
    downloads.
    """
    return {
        "up_mbps": sum(f["goodput_mbps"] for f in flows), "up_jain_goodput": metrics.jain(
            f["goodput_mbps"] for f in flows), "up_duplicate_ack_ratio": ratio(flows, "duplicate_acks"), **{
            f"up_{name}": mean(f[name] for f in flows) for name in (
                *(f"{what}_{which}_ms" for what in ("rtt", "ack_wait") for which in ("mean", *metrics.PERCENTILES)),
                "loss_ratio", "retransmission_ratio", "ce_ratio", "ece_ratio")
        }
    }


def analyse(plan: dict, folder: pathlib.Path) -> dict:
    """Figures of a run that lies in a folder: its tap and the truth of its access points."""
    names = [plan["name"] if ap == 0 else f"{plan['name']}-{ap}" for ap in range(plan["aps"])]
    truths = [json.loads((folder / f"{name}.truth.json").read_text()) for name in names]
    if (played_s := min(truth["seconds"][-1]["t_s"] for truth in truths)) < plan["duration_s"] - 0.5:
        raise RuntimeError(f"the guest was ended after {played_s:.1f} s of {plan['duration_s']:.0f}")
    packets, where = tap.read(folder / f"{plan['name']}.tap"), places(plan)
    order = [
        n for ap in range(plan["aps"]) for n, flow in enumerate(plan["flows"])
        if next(s for s in plan["stations"] if s["name"] == flow["station"])["ap"] == ap
    ]
    specs = [plan["flows"][n] for n in order]
    entries = [flow for truth in truths for flow in truth["flows"]]
    for entry, spec in zip(entries, specs, strict=True):
        entry.update(start_s=spec["start_s"], stop_s=spec["stop_s"])
    flows, rates, every = [], {}, []
    steps = round(plan["duration_s"] / STEP_S)
    for entry, station, talks in metrics.conversations(packets, plan, entries, where):
        begin_ns = truths[station["ap"]]["begin_ns"]
        first, last = plan["evaluate"]["warmup_s"], plan["duration_s"]
        window = begin_ns + max(first, entry["start_s"]) * 1e9, begin_ns + min(last, entry["stop_s"]) * 1e9
        down = entry["direction"] == "down"
        # the station's end of the flow
        address = next(iter(talks)).arrived["destination" if down else "source"][:1] if talks else []
        every += [(station["ap"], talk) for talk in talks if down]
        if entry["size_kb"]:
            flows.append(metrics.short_flow(entry, station, talks, window))
        elif entry["burst_kb"]:
            flows.append(metrics.burst_flow(entry, station, talks, window))
        else:
            taps = where.index(f"server{station['ap']}:eth0"), where.index(f"{station['ns']}:wlan{station['radio']}")
            least = smallest_delay(packets[packets["destination" if down else "source"] == address[0]],
                                   *(taps if down else taps[::-1])) if len(address) else 0
            flows.append(metrics.long_flow(entry, station, talks, window, least))
            if down:
                rates[station["name"]] = [a + b for a, b in zip(metrics.bins(talks, begin_ns, STEP_S, steps),
                                                                rates.get(station["name"], [0] * steps))]
        flows[-1].update(cc=entry["cc"], ecn=entry["ecn"])
    drops = failures = 0.0
    for truth in truths:
        window = truth["begin_ns"] + plan["evaluate"]["warmup_s"] * 1e9, truth["begin_ns"] + plan["duration_s"] * 1e9
        drops += queue_drops(truth, *window)
        failures += counted(truth, "msdu_failed", *window)
    by_station = {mac: row for truth in truths for mac, row in truth["stations"].items() if mac != "wlan"}
    up = [f for f in flows if f["direction"] == "up" and f["kind"] == "long"]
    downloads = [f for f in flows if f["direction"] == "down"]
    long = [f for f in downloads if f["kind"] == "long"]
    short = [f for f in downloads if f["kind"] != "long"]
    plain = [flows[n] for n in plan["evaluate"].get("plain", [])]
    first = truths[0]["begin_ns"]
    seconds = metrics.first_seconds(every, (first + plan["evaluate"]["warmup_s"] * 1e9,
                                            first + plan["duration_s"] * 1e9))
    times = [t for f in short for t in f["fct_ms"]]
    offered, missing, again = (sum(f[name] for f in downloads) for name in ("packets", "lost", "retransmissions"))
    cell = {
        "throughput_mbps": sum(f["goodput_mbps"] for f in downloads),
        "long_mbps": sum(f["goodput_mbps"] for f in long), **{
            name: mean(f[name] for f in long) for name in OVER_FLOWS
        }, "congestion_loss_ratio": max(0.0, again - failures) / offered if offered else None,
        "kernel_loss_ratio": drops / offered if offered else None,
        "captured_loss_ratio": missing / offered if offered else None, "packets": offered, "retransmissions": again,
        "queue_drops": drops, "mac_failures": failures, "jain_goodput": metrics.jain(f["goodput_mbps"] for f in long),
        "jain_airtime": metrics.jain(r.get("airtime_us", 0) for r in by_station.values()), "fct_mean_ms": mean(times),
        "fct_p95_ms": float(np.percentile(times, 95)) if times else None, "short_flows": len(times),
        "short_unfinished": sum(f["unfinished"] for f in short), "new_flows": len(seconds),
        "first_second_own_drops": mean(own for own, _ in seconds),
        "first_second_drops": mean(whole for _, whole in seconds), "others_ratio": others(plan, long),
        "duplicate_ack_ratio": ratio(long, "duplicate_acks"), "ce_ratio": mean(f["ce_ratio"] for f in long),
        "ece_ratio": mean(f["ece_ratio"] for f in long), **without_ecn(long), **(uploads(up) if up else {}),
        "plain_cubic_mbps": sum(f["goodput_mbps"] for f in plain) or None,
        "plain_cubic_delay_p95_ms": mean(f["delay_p95_ms"] for f in plain)
    }
    return {"cell": cell, "flows": flows, "rates": {"step_s": STEP_S, "bytes": rates},
            "sessions": sessions.rows(plan, truths, list(zip(order, entries, strict=True)), folder),
            "wired_ms": plan["wired"]["delay_ms"]}
