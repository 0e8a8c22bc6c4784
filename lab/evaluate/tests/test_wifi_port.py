"""With headers read at the Wi-Fi port, by the tap that the package ships, control is worth what it was with those of
the wired port: the committed cells of three scenarios beside those of the ablation, which were played before.
"""
import pathlib

import pytest
from evaluate import results, spread

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
TAP, WIRED = (results.Results.read(RESULTS / name) for name in ("wifi-port", "ablation"))
#: of each figure: is more of it better?
FIGURES = {"throughput_mbps": True, "delay_mean_ms": False, "delay_p95_ms": False, "congestion_loss_ratio": False}


def of(found: results.Results, scenario: str, method: str, figure: str) -> dict[int, float]:
    return {cell.seed: one["cell"][figure] for cell, one in found.found.items()
            if (cell.scenario, cell.method.name) == (scenario, method)}


def gain(found: results.Results, scenario: str, figure: str) -> spread.Figure:
    """Change by control, paired by seed."""
    return spread.change(of(found, scenario, "cubic-fq+oal", figure), of(found, scenario, "cubic-fq", figure))


def test_cells_are_those_that_are_named():
    assert TAP.scenarios == ["constant", "lossy", "mixed"] and TAP.seeds == [1001, 1002, 1003]
    assert len(TAP.found) == 18 and not TAP.failures


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("scenario", TAP.scenarios)
def test_the_gain_is_within_its_interval_or_better(scenario, figure):
    """Of both means the intervals meet; or the tap's is better."""
    tap, wired = gain(TAP, scenario, figure), gain(WIRED, scenario, figure)
    better = tap.value >= wired.value if FIGURES[figure] else tap.value <= wired.value
    assert better or (tap.low <= wired.high and tap.high >= wired.low), (tap, wired)


def test_delay_falls_in_every_scenario():
    for scenario in TAP.scenarios:
        assert gain(TAP, scenario, "delay_mean_ms").high < 0, scenario


def test_the_page_says_so():
    """`scenario wifi-port % (wired %)` of the mean delay, in README.md."""
    page = " ".join((RESULTS.parent / "README.md").read_text().split()).replace("−", "-")
    for scenario in TAP.scenarios:
        tap, wired = gain(TAP, scenario, "delay_mean_ms"), gain(WIRED, scenario, "delay_mean_ms")
        assert f"{scenario} {100 * tap.value:.1f} % ({100 * wired.value:.1f} %)" in page, scenario
