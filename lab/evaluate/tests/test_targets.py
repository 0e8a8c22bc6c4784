"""One wait for all against a wait for each: on rows whose answers are known, and the committed figures in the text."""
import json
import pathlib

import pytest
from evaluate import targets

README = pathlib.Path(__file__).resolve().parents[3] / "policies/rwnd-fair/README.md"


def row(scenario: str, seed: int, wait: int, of: dict[str, tuple[float, float]]) -> dict:
    stations = {name: {"ap": 0, "goodput_mbps": g, "delay_mean_ms": d} for name, (g, d) in of.items()}
    return {"scenario": scenario, "seed": seed, "variant": str(wait), "stations": stations,
            "throughput_mbps": sum(g for g, _ in of.values()), "delay_mean_ms": 1.0, "delay_p95_ms": 1.0,
            "congestion_loss_ratio": 0.0}


def world(gains: dict[str, float], seeds=(1, 2)) -> list[dict]:
    """Goodput grows with the tenth power's root of delay; a station gains so much on top at 1.6 turns."""
    delay = {700: 0.7, 1100: 1.0, 1600: 1.4}
    return [row("x", seed, wait, {name: (d**0.1 * (1 + (wait == 1600) * gain), d) for name, gain in gains.items()})
            for seed in seeds for wait, d in delay.items()]


def test_an_exchange_that_all_have_alike_is_no_gain():
    of = targets.bound(world({"a": 0.0, "b": 0.0}), "station", held_out=True)
    assert of["price"] == pytest.approx(0.1) and of["gain"].value == pytest.approx(0, abs=1e-9)


def test_what_one_context_gains_beyond_the_exchange_is_found_on_other_seeds():
    of = targets.bound(world({"a": 0.2, "b": -0.2}), "station", held_out=True)
    assert of["gain"].value > 0.08 and of["contexts"] == 2 and of["moved"] >= 1
    # they take it from each other
    assert targets.bound(world({"a": 0.2, "b": -0.2}), "ap", held_out=True)["gain"].value < 0.02


def test_luck_of_a_seed_is_gain_on_the_same_runs_alone():
    lucky = [one for seed, gain in ((1, 0.2), (2, -0.2)) for one in world({"a": gain, "b": -gain}, seeds=(seed,))]
    assert targets.bound(lucky, "station", held_out=True)["gain"].value < 0
    assert targets.bound(lucky[:3], "station", held_out=False)["gain"].value > 0.08


def test_the_text_has_the_committed_figures():
    text = README.read_text()
    for line in targets.report(json.loads(targets.KEPT.read_text())["cells"]).splitlines():
        assert line in text
