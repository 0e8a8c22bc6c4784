"""The table of stations that upload, and the page that quotes it."""
import pathlib

from evaluate import scenarios, table, uplink
from evaluate.methods import method
from evaluate.results import Results

HERE = pathlib.Path(__file__).resolve().parent.parent


def test_the_page_has_the_committed_table():
    kept = Results.read(HERE / "results/uplink")
    said = table.markdown(uplink.rows(kept))
    assert said == (HERE / "results/uplink/table.md").read_text()
    page = (HERE / "README.md").read_text()
    quoted = [line for line in page.splitlines() if line.startswith("| up")]
    assert quoted and set(quoted) <= set(said.splitlines())


def test_the_set_has_one_to_seven_stations_at_two_distances_and_downloads_beside():
    plans = {name: scenarios.plan(scenarios.load("uplink", name), name, method("cubic-fq"), 1)
             for name in scenarios.names("uplink")}
    assert {(len(p["stations"]), p["wired"]["delay_ms"]) for name, p in plans.items() if "down" not in name} == {
        (n, rtt) for n in (1, 3, 5, 7) for rtt in (20, 256)}
    for name, p in plans.items():
        assert {f["direction"] for f in p["flows"]} == ({"up", "down"} if "down" in name else {"up"})
