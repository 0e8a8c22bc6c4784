"""From headers at servers and stations, one clock for all, to figures of each flow and of the cell.

A data packet is the same at both ends where flow, IP identification and sequence number agree; a retransmission has an
identification of its own. Figures are of the measured time only (after the warm-up), of packets by the time at which
the server sent them.

    goodput          bytes acknowledged in the measured time that the flow was to run
    delay            one way, server's port to station's radio
    queueing         delay less the smallest that any packet of the station had, its handshakes included
    rtt              data packet sent to acknowledgement received, where that packet is the last that had arrived when
                     the station answered
    jitter           RFC 3550, 6.4.1: J += (|D| − J) / 16, mean of J over the packets; jitter_abs: mean of |D|, D the
                     difference of
                     successive packets' delays
    lost             data packets that left the server and never came to the station
    retransmissions  data packets of sequence space that was sent before
    fct              a short flow: its SYN sent to the acknowledgement of its last byte received; a burst of a
                     connection that stays: its first packet sent to the acknowledgement of its last byte
    (QUIC)           over_quic.py: goodput and fct are of what the client read, nothing is known of acknowledgements
    ack wait         an upload: one way of an acknowledgement, server's port to station's radio, less the smallest of
                     its flow: what uplink flows wait for in the access point's queue
    duplicate_acks   acknowledgements that came to the sender, say nothing new and carry no data
    ce, ece          of a flow: share of its data packets that arrived marked (CE); of acknowledgements that came and
                     echo a mark (ECE)
    first second     packets that left the server within a second of a new connection's SYN and never came: of that
                     connection, and of all that go through its access point
"""
import ipaddress

import numpy as np

from . import over_quic
from .conversation import Conversation
from .tap import CE, ECE, TCP, UDP

PERCENTILES = {"p95": 95, "p99": 99}
SECOND_NS = 1_000_000_000
LAST_BURST_NS = 2 * SECOND_NS  # a burst that begins later than this before a flow's end may be cut by it


def describe(values: np.ndarray, name: str) -> dict:
    """Mean and percentiles in ms of values in ns; nothing where there are none."""
    if not len(values):
        return {f"{name}_mean_ms": None} | {f"{name}_{p}_ms": None for p in PERCENTILES}
    points = np.percentile(values, list(PERCENTILES.values())) / 1e6
    return {f"{name}_mean_ms": float(values.mean() / 1e6)
            } | {f"{name}_{p}_ms": float(v) for p, v in zip(PERCENTILES, points)}


def jain(values) -> float | None:
    """Jain's index: 1 where all have the same, 1/n where one has everything."""
    values = np.asarray([v for v in values if v is not None], float)
    return float(values.sum() ** 2 / (len(values) * (values ** 2).sum())) if len(values) and values.any() else None


def jitter(delay_ns: np.ndarray) -> tuple[float | None, float | None]:
    """(mean of RFC 3550's J, mean |D|) in ms, of delays in order of arrival."""
    if len(delay_ns) < 2:
        return None, None
    change = np.abs(np.diff(delay_ns.astype(float)))
    j, total = 0.0, 0.0
    for d in change:
        j += (d - j) / 16
        total += j
    return total / len(change) / 1e6, float(change.mean() / 1e6)


def conversations(packets: np.ndarray, plan: dict, truth_flows: list[dict], places: list[str]):
    """(flow's entry in the truth, its station, its connections) for each flow, down or up, over TCP or QUIC."""
    stations = {s["name"]: s for s in plan["stations"]}
    over_tcp, datagrams = (packets[packets["protocol"] == protocol] for protocol in (TCP, UDP))
    for flow in truth_flows:
        station = stations[flow["station"]]
        listener = (int(ipaddress.IPv4Address(flow["listener"][0])), flow["listener"][1])
        taps = places.index(f"server{station['ap']}:eth0"), places.index(f"{station['ns']}:wlan{station['radio']}")
        if "quic" in flow:
            to_or_from = (datagrams["destination"] == listener[0]) | (datagrams["source"] == listener[0])
            yield flow, station, over_quic.talks(datagrams[to_or_from], taps, listener[0], flow["quic"]["transfers"])
            continue
        mine = over_tcp[((over_tcp["destination"] == listener[0]) & (over_tcp["destination_port"] == listener[1]))
                        | ((over_tcp["source"] == listener[0]) & (over_tcp["source_port"] == listener[1]))]
        if flow["direction"] == "up":
            taps = taps[::-1]
        port_of_sender = np.where(mine["destination"] == listener[0], mine["source_port"], mine["destination_port"])
        yield flow, station, [Conversation(mine[port_of_sender == port], *taps, listener)
                              for port in np.unique(port_of_sender)]


def long_flow(flow: dict, station: dict, talks: list[Conversation], window: tuple[float, float], least_ns: int) -> dict:
    """Figures of a flow that sends all that it can; window: measured time in ns."""
    begin, end = window
    within = lambda t: (t >= begin) & (t < end)
    delay = np.concatenate([d[within(t)] for t, d in (c.delays() for c in talks)])
    rtt = np.concatenate([r[within(t)] for t, r in (c.round_trips() for c in talks)])
    sent = [within(c.sent["t_ns"]) for c in talks]
    packets = sum(int(s.sum()) for s in sent)
    lost = sum(int((s & (c.where < 0)).sum()) for s, c in zip(sent, talks))
    again = sum(int((s & c.retransmitted()).sum()) for s, c in zip(sent, talks))
    again_bytes = sum(int(c.sent["payload_bytes"][s & c.retransmitted()].sum()) for s, c in zip(sent, talks))
    j, j_abs = jitter(delay)
    ack_wait = [d - d.min() for d in (d for _, d in (c.ack_delays() for c in talks)) if len(d)]
    arrived = [c.arrived[within(c.arrived["t_ns"])] for c in talks]
    acks = [within(c.acks["t_ns"]) for c in talks]
    share = lambda part, whole: part / whole if whole else None
    return {
        "station": station["name"], "ap": station["ap"], "kind": "long", "direction": flow["direction"],
        "goodput_mbps": sum(c.acknowledged(end) - c.acknowledged(begin)
                            for c in talks) * 8e3 / (end - begin), **describe(delay, "delay"),
        **describe(delay - least_ns, "queueing"), **describe(rtt, "rtt"), "jitter_ms": j, "jitter_abs_ms": j_abs,
        "packets": packets, "lost": lost, "loss_ratio": lost / packets if packets else None, "retransmissions": again,
        "retransmission_ratio": again / packets if packets else None, "rtt_samples": len(rtt), "sent_bytes": sum(
            int(c.sent["payload_bytes"][s].sum()) for s, c in zip(sent, talks)), "again_bytes": again_bytes,
        **describe(np.concatenate(ack_wait) if ack_wait else np.zeros(0), "ack_wait"),
        "duplicate_acks": sum(int((a & c.duplicates()).sum()) for a, c in zip(acks, talks)) if any(
            len(a) for a in acks) else None,
        "ce_ratio": share(sum(int((a["ecn"] == CE).sum()) for a in arrived), sum(len(a) for a in arrived)),
        "ece_ratio": share(sum(int((a & (c.acks["flags"] & ECE > 0)).sum()) for a, c in zip(acks, talks)),
                           sum(int(a.sum()) for a in acks))
    }


def short_flow(flow: dict, station: dict, talks: list[Conversation], window: tuple[float, float]) -> dict:
    """Completion times of a station's transfers that began in the measured time."""
    begin, end = window
    size, times, unfinished = flow["size_kb"] * 1000, [], 0
    sent = lost = again = bytes_ = 0
    for talk in talks:
        if talk.open_ns is None or not begin <= talk.open_ns < end:
            continue
        sent, lost, again = sent + len(talk.sent), lost + int(
            (talk.where < 0).sum()), again + int(talk.retransmitted().sum())
        bytes_ += talk.acknowledged(float("inf"))
        if (done := talk.completed(size)) is not None:
            times.append(done)
        else:
            unfinished += 1
    return {
        "station": station["name"], "ap": station["ap"], "kind": "short",
        "direction": flow["direction"], "goodput_mbps": bytes_ * 8e3 / (end - begin),
        "fct_ms": times, "unfinished": unfinished, "packets": sent, "lost": lost, "retransmissions": again
    }


def burst_flow(flow: dict, station: dict, talks: list[Conversation], window: tuple[float, float]) -> dict:
    """Completion times of the bursts that a station's connection began in the measured time."""
    begin, end = window
    size, times, unfinished = flow["burst_kb"] * 1000, [], 0
    sent = lost = again = bytes_ = 0
    for talk in talks:
        inside = (talk.sent["t_ns"] >= begin) & (talk.sent["t_ns"] < end)
        sent, lost = sent + int(inside.sum()), lost + int((inside & (talk.where < 0)).sum())
        again += int((inside & talk.retransmitted()).sum())
        bytes_ += talk.acknowledged(end) - talk.acknowledged(begin)
        for first_ns, took_ms in talk.bursts(size):
            if not begin <= first_ns < end - LAST_BURST_NS:
                continue
            if took_ms is not None:
                times.append(took_ms)
            else:
                unfinished += 1
    return {
        "station": station["name"], "ap": station["ap"], "kind": "burst",
        "direction": flow["direction"], "goodput_mbps": bytes_ * 8e3 / (end - begin),
        "fct_ms": times, "unfinished": unfinished, "packets": sent, "lost": lost, "retransmissions": again
    }


def first_seconds(talks: list[tuple[int, Conversation]], window: tuple[float, float]) -> list[tuple[int, int]]:
    """Of every connection that began in the measured time, and a second or more before its end: packets that were lost
    in its first second, its own and those of its access point. talks: (access point, connection).
    """
    begin, end = window
    lost_ns = [np.sort(talk.sent["t_ns"][talk.where < 0]) for _, talk in talks]
    found = []
    for n, (ap, talk) in enumerate(talks):
        if talk.open_ns is None or not begin <= talk.open_ns < end - SECOND_NS:
            continue
        counts = [
            int(np.diff(np.searchsorted(times, [talk.open_ns, talk.open_ns + SECOND_NS]))[0]) if where == ap else 0
            for (where, _), times in zip(talks, lost_ns)
        ]
        found.append((counts[n], sum(counts)))
    return found


def bins(talks: list[Conversation], begin_ns: int, step_s: float, steps: int) -> list[int]:
    """Bytes of data that came to the station in each step from the beginning of the run."""
    total = np.zeros(steps, np.int64)
    for talk in talks:
        at = ((talk.arrived["t_ns"].astype(np.int64) - begin_ns) / 1e9 / step_s).astype(int)
        keep = (at >= 0) & (at < steps)
        np.add.at(total, at[keep], talk.arrived["payload_bytes"][keep])
    return [int(n) for n in total]
