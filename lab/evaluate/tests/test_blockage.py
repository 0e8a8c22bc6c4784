"""Links that people block: the drawn capacity has the model's times and depths, and is the same again."""
import pathlib
import random
import re

import pytest
from evaluate import blockage, scenarios
from evaluate.methods import method


@pytest.mark.parametrize(("beamwidth_deg", "measured_db"), [(7, 15.8), (60, 11.5)])
def test_attenuation_by_beamwidth_is_what_was_measured(beamwidth_deg, measured_db):
    """Means of the paper's two antennas; the simulator's fit goes through them within 0.8 dB."""
    assert blockage.attenuation_db(beamwidth_deg) == pytest.approx(measured_db, abs=0.8)


def test_a_blocker_is_rare_brief_and_as_deep_as_the_model_says():
    rates = blockage.states_per_s(15)
    loss = blockage.blocker_db(15, 4000, random.Random(1))
    blocked = sum(value > 0 for value in loss) / len(loss)
    inside = sum(1 / rate for rate in rates[1:])
    assert blocked == pytest.approx(inside / (inside + 1 / rates[0]), rel=0.1)
    assert max(loss) == pytest.approx(blockage.attenuation_db(15), abs=4 * blockage.ATTENUATION_SIGMA_DB)
    begins = sum(a == 0 < b for a, b in zip(loss, loss[1:]))
    assert begins / 4000 == pytest.approx(1 / (inside + 1 / rates[0]), rel=0.1)


def test_capacity_falls_within_a_tenth_of_a_second_and_comes_back():
    levels = blockage.levels(blockage.DEFAULTS, 60, "sta")
    assert len(levels) == 3000 and max(levels) == 1 and min(levels) < 0.4
    assert max(a - b for a, b in zip(levels, levels[5:])) > 0.4, "of the clear link, in 100 ms"
    assert levels == blockage.levels(blockage.DEFAULTS, 60, "sta") != blockage.levels(blockage.DEFAULTS, 60, "other")
    assert min(blockage.levels({**blockage.DEFAULTS, "low": 0.5}, 60, "sta")) == 0.5


def test_scenarios_of_blocked_links_are_valid_and_each_station_has_people_of_its_own():
    for name in scenarios.names("mmwave"):
        given = scenarios.load("mmwave", name)
        plan = scenarios.plan(given, name, method("cubic-fq"), 1)
        by_station = {s["name"]: [(c["at_s"], c["rate_kbps"]) for c in plan["changes"] if c["stations"] == [s["name"]]]
                      for s in plan["stations"]}
        assert len({tuple(rates) for rates in by_station.values()}) == len(plan["stations"])
        assert all(min(rate for _, rate in rates) < 60_000 < max(rate for _, rate in rates)
                   for rates in by_station.values()), "each is blocked at least once"
    assert set(scenarios.names("mmwave")) == {"one", "three"}


def test_the_page_says_what_the_model_has():
    page = " ".join((pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text().split())
    every, covers, whole, leaves = map(float, re.search(
        r"comes every (\S+) s, takes (\S+) s to cover the beam and (\S+) s in all, and leaves (\d+) %", page).groups())
    clear, *inside = blockage.states_per_s(blockage.DEFAULTS["beamwidth_deg"])
    assert (every, covers, whole) == (1 / clear, round(1 / inside[0], 2), round(sum(1 / rate for rate in inside), 1))
    assert leaves == round(100 * blockage.share(blockage.attenuation_db(15), blockage.DEFAULTS["snr_db"]))
