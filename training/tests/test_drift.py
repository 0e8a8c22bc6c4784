"""PSI of features: what is the same says so, what moved is seen, what is not there is absent."""

from __future__ import annotations

import json

import numpy as np
import pytest
from oal_training.drift.command import measure
from oal_training.errors import TrainingError
from oal_training.stored import bins
from oal_training.stored.items import Items

NAMES = ("load", "constant", "seldom", "missing")


def items(n: int, seed: int, shift: float = 0.0, aps: int = 2, constant: float = 42, rare: float = 0.002) -> Items:
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            rng.normal(100 + shift, 10, n).round(),
            np.full(n, constant),
            np.where(rng.random(n) < rare, 7.0, 0.0),
            np.full(n, np.nan),
        ]
    )
    group = np.array([f"ap-{i % aps}" for i in range(n)])
    zeros = np.zeros(n, np.int64)
    ts = np.arange(n, dtype=np.int64) * 100_000
    return Items(x, NAMES, group, ts, zeros, zeros, np.zeros(n), ("Good", "Bad"), 1, 200_000, 1_000_000)


REFERENCE = bins.reference(items(20_000, 1))


def test_items_as_those_of_before_have_no_drift():
    found = bins.psi(REFERENCE, items(5000, 2))
    assert set(found) == set(NAMES) and max(found.values()) < 0.02


def test_a_feature_that_moved_is_seen_and_the_others_are_not():
    found = bins.psi(REFERENCE, items(5000, 3, shift=8))
    assert found["load"] > 0.25 and max(found[name] for name in NAMES[1:]) < 0.02
    assert bins.psi(REFERENCE, items(5000, 3, constant=43))["constant"] > 0.25, "nothing but another constant"
    assert bins.psi(REFERENCE, items(5000, 3, rare=0.2))["seldom"] > 0.25
    there = items(5000, 3)
    there.x[:, 3] = 1.0
    assert bins.psi(REFERENCE, there)["missing"] > 0.25, "a feature that nobody had before"
    gone = items(5000, 3)
    gone.x[:, 0] = np.nan
    assert bins.psi(REFERENCE, gone)["load"] > 0.25


def test_psi_by_hand():
    reference = {"format": 1, "features": {"f": {"edges": [1.0], "shares": [0.5, 0.5, 0.0]}}}
    one = items(1000, 1)
    x = np.where(np.arange(1000) < 750, 1.0, 2.0)[:, None]
    got = bins.psi(reference, Items(x, ("f",), *(getattr(one, k) for k in ("group", "ts_us", "y", "now", "loss_now")),
                                    ("Good", "Bad"), 1, 0, 1))
    assert got["f"] == pytest.approx(0.25 * np.log(0.75 / 0.5) - 0.25 * np.log(0.25 / 0.5))


def test_too_few_items_say_nothing_and_other_features_are_refused():
    assert bins.psi(REFERENCE, items(bins.MIN_ITEMS - 1, 4)) is None
    with pytest.raises(TrainingError, match="other features"):
        bins.psi({**REFERENCE, "features": {"load": REFERENCE["features"]["load"]}}, items(1000, 4))


def test_each_access_point_is_measured_by_itself():
    drifted = items(4000, 5)
    drifted.x[drifted.group == "ap-1", 0] += 20
    few = np.arange(4000) < 3999
    found = measure(REFERENCE, drifted[few])
    assert found["items"] == 3999 and set(found["aps"]) == {"ap-0", "ap-1"}
    assert found["aps"]["ap-0"]["psi"]["load"] < 0.02 < 0.25 < found["aps"]["ap-1"]["psi"]["load"]
    assert 0.1 < found["all"]["load"] < found["aps"]["ap-1"]["psi"]["load"]
    quiet = measure(REFERENCE, items(800, 6))
    assert quiet["all"] is not None and quiet["aps"] == {}, "400 items of one are too few"
    json.dumps(found, allow_nan=False)


def test_the_bins_are_kept_as_they_were_made(tmp_path):
    bins.write(tmp_path, items(20_000, 1))
    text = (tmp_path / bins.FILE).read_text()
    assert bins.parse(text) == json.loads(json.dumps(REFERENCE)) and len(text) < 4000
    for wrong in ("", "{}", "[]", text.replace('"format":1', '"format":2'), text.replace("[100", "[1,100")):
        if wrong != text:
            with pytest.raises(TrainingError, match="holds no bins"):
                bins.parse(wrong)


def test_the_command_is_there():
    from oal_training import cli

    arguments = cli.parser().parse_args(["drift", "congestion/3", "--config", "F", "--from", "1h"])
    assert arguments.version == "congestion/3" and arguments.begin > 0
