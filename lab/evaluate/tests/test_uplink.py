"""The set of stations that upload, and its table."""
from evaluate import scenarios, uplink
from evaluate.methods import method
from evaluate.play import Cell
from evaluate.results import Results


def test_the_table_has_a_row_of_each_scenario_and_method_and_downloads_where_there_are():
    up = {"up_mbps": 18.0, "up_jain_goodput": 0.96, "up_rtt_p95_ms": 400.0, "up_ack_wait_p95_ms": 300.0,
          "up_duplicate_ack_ratio": 0.02}
    found = {}
    for name, more in (("up7-20", {}), ("up5-down2-20", {"throughput_mbps": 2.5, "fct_p95_ms": 900.0})):
        for seed in (1, 2):
            found[Cell("uplink", name, method("cubic-fq"), seed)] = {"cell": up | more, "flows": []}
    head, *rows = uplink.rows(Results(list(found), found, {}))
    assert [row[:2] for row in rows] == [["up5-down2-20", "cubic-fq"], ["up7-20", "cubic-fq"]]
    assert dict(zip(head, rows[0]))["downloads, Mbit/s"].startswith("2.50")
    assert dict(zip(head, rows[1]))["downloads, Mbit/s"] == "" and rows[1][5].startswith("300 ")


def test_the_set_has_one_to_seven_stations_at_two_distances_and_downloads_beside():
    plans = {name: scenarios.plan(scenarios.load("uplink", name), name, method("cubic-fq"), 1)
             for name in scenarios.names("uplink")}
    assert {(len(p["stations"]), p["wired"]["delay_ms"]) for name, p in plans.items() if "down" not in name} == {
        (n, rtt) for n in (1, 3, 5, 7) for rtt in (20, 256)}
    for name, p in plans.items():
        assert {f["direction"] for f in p["flows"]} == ({"up", "down"} if "down" in name else {"up"})
