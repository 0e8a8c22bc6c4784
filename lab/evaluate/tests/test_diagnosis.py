"""Queue or air: rows and lost packets are joined, figures are of what they are said to be, and a sender's class is what
its samples before the loss say."""
import ipaddress

import numpy as np
import pytest
import yaml
from evaluate import aims, causes, diagnosis, play, results, scenarios, sender_class
from evaluate.methods import method
from sniffer.rows import flow_id

SERVER, CLIENT = "10.20.0.1", "10.20.0.10"
FLOW = flow_id(*(ipaddress.ip_address(a).packed for a in (CLIENT, SERVER)), 50000, 40000)
STATIONS, WINDOW = {10: "near"}, (0, 1e9)


def event(seq: int, seen: int, resent: int, cause: str = "queue", size: int = 1448) -> dict:
    return {"flow_id": str(FLOW), "station_mac": 7, "seq": seq % (1 << 32), "bytes": size, "seen": seen,
            "resent": resent, "cause": cause}


def packet(seq: int, us: int, cause: str = "queue") -> dict:
    return {"t_ns": str(us * 1000), "cause": cause, "source": SERVER, "destination": CLIENT, "source_port": "40000",
            "destination_port": "50000", "seq": str(seq % (1 << 32)), "payload_bytes": "1448"}


def said(found: list[dict]) -> list[tuple[str, str]]:
    return [(one["truth"], one["cause"]) for one in found]


def test_a_lost_packet_has_the_row_that_covers_it_at_that_time():
    """Lost twice, it has a row each; sequence numbers wrap; a row may be of several segments."""
    rows = [event(-1448, 1000, 90_000, "air"), event(-1448, 90_000, 190_000), event(10_000, 50_000, 200_000, size=2896)]
    lost = [packet(-1448, 40_000, "air"), packet(-1448, 120_000), packet(10_000, 60_000), packet(11_448, 61_000)]
    found = diagnosis.join(rows, lost, STATIONS, WINDOW)
    assert said(found) == [("air", "air"), ("queue", "queue"), ("queue", "queue"), ("queue", "queue")]
    assert {one["station"] for one in found} == {"near"} and found[0]["resent_us"] == 90_000


def test_what_has_no_partner_is_kept_as_that():
    """A packet that was never sent again has no row; a row of what was not lost here is of elsewhere."""
    found = diagnosis.join([event(5000, 1000, 90_000, "unknown")], [packet(9000, 20_000, "air")], STATIONS, WINDOW)
    assert said(found) == [("elsewhere", "unknown"), ("air", "none")]
    assert said(diagnosis.join([event(5000, 1000, 90_000)], [packet(5000, 95_000)], STATIONS, WINDOW)) == [
        ("elsewhere", "queue"), ("queue", "none")], "lost after it had been seen again"
    assert not diagnosis.join([event(5000, 1000, 90_000)], [packet(5000, 20_000)], STATIONS, (30_000, 1e9))


def lines(*counts: tuple[str, str, int], **more) -> list[dict]:
    return [{"truth": was, "cause": cause, "station": "near", **dict.fromkeys(sender_class.COLUMNS), **more}
            for was, cause, n in counts for _ in range(n)]


def test_rows_that_do_not_decide_are_wrong_and_packets_without_a_row_are_not_covered():
    found = diagnosis.figures(lines(("queue", "queue", 8), ("queue", "both", 1), ("queue", "air", 1), ("air", "air", 3),
                                    ("air", "unknown", 1), ("air", "none", 2), ("elsewhere", "unknown", 5)), 100)
    assert (found["queue_right"], found["air_right"], found["cause_balanced"]) == (0.8, 0.75, pytest.approx(0.775))
    assert found["queue_called_air"] == 0.1 and found["loss_coverage"] == 14 / 16
    assert found["cause_undecided_ratio"] == 2 / 14 and found["rows_elsewhere"] == 5
    assert found["rows_per_retransmission"] == 0.19
    alone = diagnosis.figures(lines(("queue", "queue", 3)), 3)
    assert alone["cause_balanced"] is None and alone["queue_right"] == 1, "one kind alone is no balance"
    assert diagnosis.figures([], 0)["loss_coverage"] is None


def sample(ts: int, cwnd: int, rtt_us: int, lost: int = 0) -> dict:
    return {"ts": ts, "flow_id": FLOW, "cwnd_bytes": cwnd * 1448, "mss_bytes": 1448, "rtt_us": rtt_us,
            "min_rtt_us": 30_000, "lost_pkts": lost, "clock_offset_us": 0, "clock_offset_error_us": 50}


def classes(rows: list[dict], *resent_us: int) -> list[dict]:
    made = lines(("queue", "queue", len(resent_us)), flow=FLOW)
    for one, us in zip(made, resent_us):
        one["resent_us"] = us
    sender_class.add(made, rows, 15_000)
    return made


def test_a_senders_class_is_that_of_its_newest_point_before_the_loss():
    """Means of three; what was sampled amid a recovery does not count, nor what came later."""
    low, high = ([sample(start + n * 20_000, cwnd + n % 3, rtt) for n in range(200)]
                 for start, cwnd, rtt in ((0, 10, 32_000), (4_000_000, 80, 120_000)))
    late = [sample(8_000_000, 5, 31_000, lost=3)]
    first, second = classes(low + high + late, 3_000_000, 8_020_000)
    assert (first["kmeans"], second["kmeans"]) == ("air", "queue") == (first["kmeans_rtt"], second["kmeans_rtt"])
    assert (first["kmeans_gated"], second["kmeans_gated"]) == ("air", "queue")
    assert second["cwnd_pkts"] > 79 and second["rtt_us"] == 120_000 and first["min_rtt_us"] == 30_000
    assert classes(low, 10_000)[0]["kmeans"] is None, "nothing was sampled before"


def test_clusters_that_are_none_call_everything_congestion():
    chance = np.random.default_rng(1)
    rows = [sample(n * 20_000, int(chance.normal(60, 3)), int(chance.normal(50_000, 2000))) for n in range(300)]
    assert {one["kmeans_gated"] for one in classes(rows, 2_000_000, 4_000_000)} == {"queue"}
    apart = [sample(n * 20_000, 10 if n < 150 else 90, 120_000 if n < 150 else 32_000) for n in range(300)]
    assert {one["kmeans"] for one in classes(apart, 2_000_000, 5_000_000)} == {"queue"}, "signs disagree"


def kept() -> results.Results:
    """Two seeds of a scenario; queue drops at long round trips."""
    found = {}
    for seed in (1001, 1002):
        cell = play.Cell("loss", "mixed", method("cubic-fq+diagnose"), seed)
        made = lines(("queue", "queue", 18), ("queue", "air", 2), rtt_us=90_000, min_rtt_us=30_000, kmeans="queue",
                     kmeans_gated="queue", kmeans_rtt="queue")
        made += lines(("air", "air", 20), rtt_us=33_000, min_rtt_us=30_000, kmeans="queue", kmeans_gated="queue",
                      kmeans_rtt="air")
        found[cell] = {"cell": {}, "flows": [], "cost": {"cpu_s": 1.0}, "made_of": {}, "losses": made}
    return results.Results(list(found), found, {})


def test_the_tables_have_each_rival_by_its_shares(tmp_path):
    found = causes.rows(causes.lines_of(kept()))
    who = {row[0]: dict(zip(found["Who knows it"][0], row)) for row in found["Who knows it"][1:]}
    assert who[causes.NAMES["cause"]]["balanced accuracy"] == "0.950 [0.950, 0.950]"
    assert who[causes.NAMES["cause"]]["queue called air"] == "0.100 [0.100, 0.100]"
    assert who[causes.NAMES["always"]]["balanced accuracy"].startswith("0.500")
    assert who[causes.NAMES["rtt"]]["balanced accuracy"].startswith("1.000"), "a threshold of other seeds"
    assert who[causes.NAMES["kmeans"]]["balanced accuracy"].startswith("0.500")
    assert found["Where"][1][:4] == ["mixed", "cubic-fq", "40", "40"]
    kept().write(tmp_path)
    assert causes.text(results.Results.read(tmp_path)) == causes.text(kept()), "what is kept says the same"


def test_a_method_that_looks_on_has_no_bundle_and_is_played_for_its_policy_alone():
    looks = method("cubic-fq+diagnose")
    assert looks.looks_on and looks.policy is None and looks.of_policy == "loss-cause"
    assert not method("cubic-fq").looks_on
    found, seeds, shown = aims.load("loss-cause")
    assert seeds >= 10 and "cause_balanced" in shown
    assert {aim.method.name for aim in found if aim.set == "loss"} == {
        f"{senders}+diagnose" for senders in ("cubic-fifo", "cubic-fq", "bbr-fifo")}


def test_a_cell_is_played_and_told(tmp_path, monkeypatch):
    """The guest, the exporter, the stream job's own code: nearly each packet that the kernel lost has its row."""
    (tmp_path / "scenarios/loss").mkdir(parents=True)
    (tmp_path / "scenarios/loss/tiny.yaml").write_text(yaml.safe_dump({
        "duration_s": 8, "warmup_s": 1.0, "fifo_pkts": 30, "medium": {"retries": 3}, "wired": {"delay_ms": 20},
        "stations": [{"name": "near", "rate_mbps": 39, "loss": 0.0}, {"name": "far", "rate_mbps": 26, "loss": 0.4}],
        "flows": [{"station": "near", "parallel": 2}, {"station": "far"}]
    }))
    monkeypatch.setattr(scenarios, "FOLDER", tmp_path / "scenarios")
    scenarios.load.cache_clear()
    diagnosis.program()
    how = play.Settings(exporter=play.snapshot(play.EXPORTER, tmp_path), build=tmp_path / "build")
    found = play.play(play.Cell("loss", "tiny", method("cubic-fifo+diagnose"), 1), how)
    scenarios.load.cache_clear()
    told = found["cell"]
    assert min(told["losses_queue"], told["losses_air"]) >= 10 and told["loss_coverage"] >= 0.95
    assert told["cause_balanced"] >= 0.9 and told["queue_called_air"] <= 0.05
    near = [one for one in found["losses"] if one["station"] == "near" and one["truth"] != "elsewhere"]
    assert near and {one["cause"] for one in near if one["cause"] != "none"} == {"queue"}, "its air loses nothing"
    assert sum(one["kmeans"] is not None for one in near) > 0.9 * len(near), "its sender was sampled"
