"""Responsiveness by the draft's arithmetic, of tests whose answer is known."""
import pytest
from responsiveness import figures, rpm


def probe(kind: str, end_s: float | None, ms: float, begin_s: float = 0) -> dict:
    hand = ms if kind == "foreign" else None
    return {"kind": kind, "begin_s": begin_s, "end_s": end_s, "tcp_ms": hand, "tls_ms": hand,
            "http_ms": ms if end_s is not None else None, "connection": None if hand else 0}


def seen(seconds: int, mbps, ms, failures=()) -> dict:
    """A test with an interval a second, ten probes of each kind in each; mbps and ms are functions of the second."""
    marks, total = [{"t_s": 0.0, "down_bytes": 0, "up_bytes": 0, "connections": 0}], 0
    probes = []
    for second in range(seconds):
        total += mbps(second) * 125_000
        marks.append({"t_s": second + 1.0, "down_bytes": total, "up_bytes": 0, "connections": second + 1})
        probes += [probe(kind, second + n / 10 + 0.05, ms(second), second) for n in range(10)
                   for kind in ("foreign", "self")]
    return {"probes": probes, "intervals": marks, "failures": list(failures)}


def test_a_trimmed_mean_leaves_out_the_slowest_twentieth():
    assert rpm.trimmed_mean([10.0] * 95 + [5000.0] * 5) == 10
    assert rpm.trimmed_mean([]) is None
    assert rpm.trimmed_mean([7.0]) == 7


def test_responsiveness_is_the_mean_of_both_kinds():
    probes = [probe("foreign", 1, 100), probe("self", 1, 50)]
    probes[0].update(tcp_ms=30, tls_ms=60, http_ms=90)
    found = rpm.responsiveness(probes)
    assert (found["foreign_rpm"], found["loaded_rpm"], found["rpm"]) == (1000, 1200, 1100)
    assert rpm.responsiveness(probes[:1])["rpm"] is None


def test_it_ends_when_goodput_and_then_responsiveness_are_stable():
    found = rpm.judge(seen(20, lambda s: 20, lambda s: 60), "down")
    # four intervals until goodput is stable, then four of responsiveness
    assert (found.confidence, found.end_s, found.goodput_mbps) == ("high", 8, pytest.approx(20))
    assert found.figures["rpm"] == pytest.approx(1000)
    assert len(found.probes) == 4 * 20


def test_what_never_settles_is_said_to_be_so():
    swinging = rpm.judge(seen(20, lambda s: 20, lambda s: 30 * (1 + 9 * (s % 8 > 3))), "down")
    assert (swinging.confidence, swinging.end_s) == ("medium", 20)
    growing = rpm.judge(seen(20, lambda s: 2 ** s, lambda s: 60), "down")
    assert growing.confidence == "low"


def test_probes_without_an_answer_are_counted():
    it = seen(20, lambda s: 20, lambda s: 60)
    it["probes"] += [probe("self", None, 0, 7.5), probe("self", 9.0, 1500, 7.5), probe("self", None, 0, 19.0)]
    found = figures.of_rpm(it, "down")
    assert found["unanswered"] == 2  # the test ended at 8 s
    assert found["self_p99_ms"] == 60
