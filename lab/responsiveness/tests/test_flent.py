"""The data files are what flent 2.3.0 writes and reads: keys, types and series of its file format 4, as
`flent -i FILE -f summary` was seen to read them.
"""
import math
import pathlib

import pytest
from evaluate.methods import method
from responsiveness import catalogue, figures, flent

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
FILES = sorted(RESULTS.glob("*.flent.gz"))
METADATA = {"NAME", "TITLE", "TIME", "T0", "HOST", "HOSTS", "LOCAL_HOST", "LENGTH", "TOTAL_LENGTH", "STEP_SIZE",
            "TEST_PARAMETERS", "IP_VERSION", "FLENT_VERSION", "NOTE", "BATCH_NAME", "BATCH_TIME", "BATCH_TITLE",
            "BATCH_UUID", "DATA_FILENAME", "SERIES_META"}
#: What flent's own definitions of the tests call their series.
RRUL_BE = {*(f"TCP {way}load {end}" for way in ("up", "down") for end in ("BE", "BE2", "BE3", "BE4")),
           "Ping (ms) ICMP", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3"}
FAIR4 = {f"{what}{n + 1} 10.20.0.{10 + n}" for n in range(4)
         for what in ("TCP upload BE", "TCP download BE", "Ping (ms) ICMP")}
FAIR9 = {f"{what} 10.20.0.{10 + n}" for n in range(9)
         for what in ("TCP upload BE", "TCP download BE", "Ping (ms) ICMP")}
SERIES = {"rrul_be": ("rrul_be", RRUL_BE), "rtt_fair4": ("rtt_fair4be", FAIR4), "rtt_fair9": ("rtt_fair_var", FAIR9)}


def made(name: str) -> tuple[dict, dict]:
    """(plan, what a guest would have seen): a tenth of a megabyte a step on each flow, pings of 40 ms, one lost."""
    plan = catalogue.plan(name, method("cubic-fq"), 1)
    t0, steps = 1.7e9, int(plan["duration_s"] / 0.2)
    flows = [[[t0 + n * 0.2, max(0, min(n, 125) - 25) * 100_000, 50_000] for n in range(steps)]
             for _ in plan["test"]["flow_series"]]
    pings = [[[t0 + n * 0.2, 40.0 if n != 60 else None] for n in range(steps)] for _ in plan["test"]["ping_series"]]
    return plan, {"t0_s": t0, "flows": flows, "pings": pings}


def check(data: dict, name: str) -> None:
    assert set(data) == {"version", "metadata", "x_values", "results", "raw_values"}
    assert data["version"] == 4 and set(data["metadata"]) == METADATA
    flents, series = SERIES[name]
    assert data["metadata"]["NAME"] == flents and set(data["raw_values"]) == series
    assert set(data["results"]) == series | {name for name, _, _ in flent.SUMS}
    assert set(data["metadata"]["SERIES_META"]) == set(data["results"])
    assert all(len(values) == len(data["x_values"]) for values in data["results"].values())
    assert all(v is None or math.isfinite(v) for values in data["results"].values() for v in values)
    for values in data["raw_values"].values():
        assert values and all({"t", "val"} <= set(value) for value in values)
        assert [v["t"] for v in values] == sorted(v["t"] for v in values)


@pytest.mark.parametrize("name", SERIES)
def test_a_run_becomes_flents_format(name, tmp_path):
    plan, seen = made(name)
    flent.write(tmp_path / "a.flent.gz", flent.content(plan, seen, "made"))
    data = flent.read(tmp_path / "a.flent.gz")
    check(data, name)
    flows = len(plan["test"]["flow_series"])
    at = data["x_values"].index(10.0)
    assert data["results"]["TCP download sum"][at] == pytest.approx(4.0 * flows / 2)
    assert data["results"]["TCP download avg"][at] == pytest.approx(4.0)
    assert data["results"]["Ping (ms) avg"][at] == pytest.approx(40)
    assert data["results"]["TCP download sum"][0] is None
    found = figures.of_flent(data, catalogue.DELAY_S, plan["test"]["length_s"], catalogue.down(name))
    assert found["down_mbps"] == pytest.approx(4.0 * flows / 2, rel=0.02)
    assert (found["ping_p99_ms"], found["rtt_p50_ms"], found["jain_down"]) == (40, 50, pytest.approx(1))


def test_where_nothing_was_measured_nothing_is_drawn():
    plan, seen = made("rrul_be")
    for n in range(60, 75):
        seen["pings"][0][n][1] = None  # three seconds without an answer
    data = flent.content(plan, seen, "made")
    at = data["x_values"].index(13.0)
    assert data["results"]["Ping (ms) ICMP"][at] is None
    assert data["results"]["Ping (ms) avg"][at] == pytest.approx(40)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_committed_files_have_the_format(file):
    check(flent.read(file), file.name.split(".")[0])
