"""Responsiveness of draft-ietf-ippm-responsiveness-09 from what a test has seen: goodput by interval, and probes."""
import statistics
from dataclasses import dataclass

DRAFT = "draft-ietf-ippm-responsiveness-09"
#: The draft's defaults by its names: intervals of a moving average, share that a trimmed mean keeps, tolerance.
MAD, TMP, SDT = 4, 0.95, 0.05
MS_A_MINUTE = 60_000


def trimmed_mean(values: list[float]) -> float | None:
    """Mean of the smallest TMP of them: one-sided, since latencies have a tail on one side. None of none."""
    kept = sorted(values)[:max(1, int(len(values) * TMP))]
    return statistics.fmean(kept) if kept else None


def responsiveness(probes: list[dict]) -> dict[str, float | None]:
    """{rpm, foreign_rpm, loaded_rpm, tcp_ms, tls_ms, http_ms, self_ms} of completed probes, the latter four trimmed
    means. TLS 1.3's handshake is one round trip, so its time is normalised as it is. None where a kind has no probe.
    """
    foreign = [p for p in probes if p["kind"] == "foreign"]
    means = {name: trimmed_mean([p[name] for p in foreign]) for name in ("tcp_ms", "tls_ms", "http_ms")}
    loaded_ms = trimmed_mean([p["http_ms"] for p in probes if p["kind"] == "self"])
    foreign_rpm = MS_A_MINUTE / (sum(means.values()) / 3) if foreign else None
    loaded_rpm = MS_A_MINUTE / loaded_ms if loaded_ms else None
    both = (foreign_rpm + loaded_rpm) / 2 if foreign_rpm and loaded_rpm else None
    return {"rpm": both, "foreign_rpm": foreign_rpm, "loaded_rpm": loaded_rpm, **means, "self_ms": loaded_ms}


def stable(history: list[float | None]) -> bool:
    """The last MAD values differ by less than SDT of the newest (standard deviation)."""
    last = history[-MAD:]
    return len(last) == MAD and None not in last and statistics.pstdev(last) < SDT * last[-1]


@dataclass(frozen=True)
class Outcome:
    """`confidence`: high, medium, low as in the draft. `end_s`: when the test would have ended; `probes`: those that
    the figures are of; `connections`: load-generating ones at the end.
    """

    figures: dict[str, float | None]
    confidence: str
    goodput_mbps: float
    end_s: float
    connections: int
    probes: list[dict]


def judge(seen: dict, direction: str) -> Outcome:
    """The draft's algorithm over a test that went on for its whole time: first goodput has to be stable, then
    responsiveness; the result is that of the interval in which both are, or of the last one. A probe counts in the
    interval in which it was answered.
    """
    marks = seen["intervals"]
    done = [p for p in seen["probes"] if p["end_s"] is not None]
    goodputs, values, saturated = [], [], False
    for i in range(1, len(marks)):
        first = marks[max(0, i - MAD)]
        length_s = marks[i]["t_s"] - first["t_s"]
        goodputs.append((marks[i][f"{direction}_bytes"] - first[f"{direction}_bytes"]) * 8e-6 / length_s)
        counted = [p for p in done if first["t_s"] < p["end_s"] <= marks[i]["t_s"]]
        if not saturated:
            saturated = stable(goodputs)
        else:
            values.append(responsiveness(counted)["rpm"])
            if stable(values):
                break
    confidence = "high" if saturated and stable(values) else "medium" if len(values) >= MAD else "low"
    return Outcome(responsiveness(counted), confidence, goodputs[-1], marks[i]["t_s"], marks[i]["connections"], counted)
