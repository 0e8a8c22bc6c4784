"""The capacity forecast: rows and samples of a capture, its judge on made-up stations, the committed figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oal_training.capacity import judge, report, rows, samples
from oal_training.window import capture

ROOT = Path(__file__).resolve().parents[2]
CONGESTED = ROOT / "lab/captures/congested.oalcap"


def test_rows_are_those_of_the_window_models_reader():
    ours = rows.table_rows(CONGESTED, "flow", ("flow", "direction", "unacked_bytes"))
    theirs, _ = capture.flow_rows(CONGESTED)
    down = ours["direction"] == capture.DOWN
    assert len(theirs["ts_us"]) and all(np.array_equal(ours[c][down], theirs[c]) for c in ("unacked_bytes", "ts_us"))


def test_what_is_carried_ahead_is_the_rate_of_the_steps_that_follow():
    found = samples.of_capture(CONGESTED)
    rate = found["x"][:, samples.INPUTS.index("rate_100ms_kbps")]
    far, near = found["y"][500_000], found["y"][100_000]
    whole = np.flatnonzero(~np.isnan(far))  # so the four samples that follow are the station's next steps
    assert len(whole) > 100
    assert far[whole] == pytest.approx(np.mean([near[whole + i] for i in range(5)], axis=0))
    assert near[whole] == pytest.approx(rate[whole + 1])


def stations(follows: str, seed: int = 5) -> samples.Samples:
    """Three, four and seven sites: what is carried next is the present rate, or what the PHY rate says now."""
    draw = np.random.default_rng(seed)
    n, x = 4200, np.full((4200, len(samples.INPUTS)), np.nan)
    rate, phy = draw.uniform(2e3, 2e4, n), draw.uniform(6e3, 6e4, n)
    for name in samples.INPUTS:
        if name.startswith("rate_"):
            x[:, samples.INPUTS.index(name)] = rate
    for name, value in (("phy_kbps", phy), ("yield_1s", 0.9), ("air_500ms", 0.3), ("ap_air_1000ms", 0.5)):
        x[:, samples.INPUTS.index(name)] = value
    site = np.repeat(np.arange(14), n // 14)
    y = {"rate": rate, "phy": phy / 6}[follows] * np.exp2(draw.normal(0, 0.3, n))
    return samples.Samples(x=x, y={200_000: y}, site=site.astype(str), ap_run=site.astype(str), mac=np.ones(n, int),
                           part=np.repeat(["train", "validation", "test"], [n // 14 * k for k in (3, 4, 7)]),
                           new=np.zeros(n, bool), moving=np.ones(n, bool))


def test_the_judge_tells_a_forecast_that_helps_from_one_that_does_not(monkeypatch):
    monkeypatch.setattr(judge, "GROUPS", ("all",))
    helps = judge.judge(stations("phy"), 200_000)["groups"]["all"]["ratio"]
    assert helps["clear"] and helps["gain"]["low"] > judge.CLEAR and helps["gain"]["sites"] == 7
    same = judge.judge(stations("rate"), 200_000)["groups"]["all"]["ratio"]
    assert not same["clear"] and abs(same["gain"]["value"]) < 0.05


def test_the_text_has_the_committed_figures():
    judged = json.loads((ROOT / "training/results/capacity.json").read_text())
    text = (ROOT / "policies/rwnd-fair/README.md").read_text()
    for line in report.table(judged).splitlines():
        assert line in text
