"""Figures of one run, by name: those of the responsiveness test, and those of flent's tests."""
import datetime

import numpy as np
from evaluate.metrics import jain

from . import rpm


def percentile(values: list[float], p: float) -> float | None:
    return float(np.percentile(values, p)) if len(values) else None


def of_rpm(seen: dict, direction: str) -> dict:
    """RPM is of the probes that the draft counts; percentiles are of all that were begun from its fourth interval on,
    for a 99th of forty probes is their largest.
    """
    found = rpm.judge(seen, direction)
    loaded = [p for p in seen["probes"] if p["begin_s"] >= seen["intervals"][rpm.MAD]["t_s"] and p["end_s"] is not None]
    self_ms = [p["http_ms"] for p in loaded if p["kind"] == "self"]
    foreign_ms = [p["tcp_ms"] + p["tls_ms"] + p["http_ms"] for p in loaded if p["kind"] == "foreign"]
    # of a test that ended then, those that were begun and not answered: a trimmed mean never sees them
    open_then = [p for p in seen["probes"]
                 if p["begin_s"] < found.end_s and (p["end_s"] is None or p["end_s"] > found.end_s)]
    return found.figures | {
        "self_p50_ms": percentile(self_ms, 50), "self_p99_ms": percentile(self_ms, 99),
        "page_p50_ms": percentile(foreign_ms, 50), "page_p99_ms": percentile(foreign_ms, 99),
        "goodput_mbps": found.goodput_mbps, "confidence": found.confidence, "end_s": found.end_s,
        "connections": found.connections, "probes": len(found.probes), "unanswered": len(open_then)
    }


def of_flent(data: dict, delay_s: float, length_s: float, down: str) -> dict:
    """Of the time under load, without its first second. `down`: how the series of the access point's downlink begin."""
    t0 = datetime.datetime.fromisoformat(data["metadata"]["T0"]).timestamp()
    begin, end = t0 + delay_s + 1, t0 + delay_s + length_s
    under = {name: [v for v in values if begin <= v["t"] <= end] for name, values in data["raw_values"].items()}
    series = [values for name, values in under.items() if name.startswith("Ping") and values]
    pings = [v["val"] for values in series for v in values]
    asked = sum(values[-1]["seq"] - values[0]["seq"] + 1 for values in series)
    rates = {name: sum(v["val"] * v["dur"] for v in values) / (end - begin) for name, values in under.items()
             if name.startswith("TCP")}
    mine = [name for name in rates if name.startswith(down)]
    rtts = [v["tcp_rtt"] for name in mine for v in under[name] if "tcp_rtt" in v]
    return {
        "ping_p50_ms": percentile(pings, 50), "ping_p99_ms": percentile(pings, 99), "pings": len(pings),
        "ping_lost_ratio": 1 - len(pings) / asked if asked else None,
        "rtt_p50_ms": percentile(rtts, 50), "rtt_p99_ms": percentile(rtts, 99),
        "down_mbps": sum(rates[name] for name in mine),
        "up_mbps": sum(rate for name, rate in rates.items() if name not in mine),
        "jain_down": jain(rates[name] for name in mine)
    }
