"""Intervals, changes, shares and limits, of figures whose answers are known."""
import math

import pytest
from evaluate import spread, table, verdict
from evaluate.methods import ALL, Method, MethodError, method


class Fixed:
    """Results by (method, figure) → values by seed."""

    def __init__(self, values: dict):
        self.known, self.scenarios, self.methods = values, ["x"], [
            method(name) for name in dict.fromkeys(m for m, _ in values)
        ]

    def values(self, scenario: str, which: Method, figure: str) -> dict[int, float]:
        return dict(enumerate(self.known.get((which.name, figure), [])))


def test_mean_has_students_interval():
    f = spread.mean([1.0, 2.0, 3.0])
    assert f.value == 2 and f.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-5)
    assert math.isnan(spread.mean([4.0]).low) and spread.mean([]) is None


def test_a_change_is_of_the_seeds_that_both_have():
    c = spread.change({1: 110.0, 2: 110.0, 3: 999.0}, {1: 100.0, 2: 100.0})
    assert c.value == pytest.approx(0.1) and c.low == pytest.approx(0.1) == c.high and c.runs == 2
    assert spread.change({1: 1.0}, {2: 1.0}) is None and spread.change({1: 1.0}, {1: 0.0}) is None
    wide = spread.change({n: 100.0 + 10 * n for n in range(6)}, {n: 100.0 for n in range(6)})
    assert wide.low < 0.25 < wide.high


def test_share_of_the_oracles_gain_and_no_room():
    r = Fixed({("bbr-fq", "delay_mean_ms"): [100, 100], ("bbr-fq+oal", "delay_mean_ms"): [60, 60],
               ("bbr-fq+oracle", "delay_mean_ms"): [50, 50]})
    assert verdict.share_of_oracle(r, "x", method("bbr-fq+oal")) == pytest.approx(0.8)
    r.known["bbr-fq+oracle", "delay_mean_ms"] = [99, 99]
    assert verdict.share_of_oracle(r, "x", method("bbr-fq+oal")) is None


def test_limits_of_harm_are_marked_and_said_to_be_sure_or_not():
    r = Fixed({("bbr-fq", "throughput_mbps"): [10, 10, 10], ("bbr-fq+oal", "throughput_mbps"): [9, 9, 9],
               ("bbr-fq", "delay_p95_ms"): [100, 100, 100], ("bbr-fq+oal", "delay_p95_ms"): [80, 100, 150]})
    found = {h.figure: h.sure for h in verdict.harms(r, "x", method("bbr-fq+oal"))}
    assert found == {"throughput_mbps": True, "delay_p95_ms": False}
    text = table.gains(r)
    assert "**throughput**" in text and "**p95 delay (within chance)**" in text
    r.known["bbr-fq+oal", "throughput_mbps"] = [9.9, 9.9, 9.9]
    assert not [h for h in verdict.harms(r, "x", method("bbr-fq+oal")) if h.figure == "throughput_mbps"]


def test_names_of_methods():
    assert len(ALL) == 16 and all(method(m.name) == m for m in ALL)
    assert method("cubic-fq+oal").baseline.name == "cubic-fq"
    for wrong in ("reno-fq", "cubic-fq+", "cubic", "bbr-fq+magic", ""):
        with pytest.raises(MethodError, match="no method"):
            method(wrong)
