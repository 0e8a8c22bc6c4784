"""A small evaluation from its command to its report: what the taps saw is what the kernel counted; what was played is
not played again.
"""
import ipaddress
import json
import shutil
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from evaluate import __main__ as command
from evaluate import metrics, play, scenarios, tap
from guest.tap import places

TINY = {
    "duration_s": 6, "warmup_s": 1.0, "fifo_pkts": 30, "wired": {"delay_ms": 20},
    "stations": [{"name": "near", "rate_mbps": 26, "loss": 0.02}, {"name": "far", "rate_mbps": 13, "loss": 0.1}],
    "flows": [{"station": "near"}, {"station": "far"},
              {"station": "far", "size_kb": 20, "every_s": 1, "start_s": 1.2, "stop_s": 4.5}]
}
METHODS = ("cubic-fifo", "cubic-fifo+clamp")
UPLINK = {
    "duration_s": 6, "warmup_s": 2.0, "fifo_pkts": 60, "wired": {"delay_ms": 20},
    "stations": [{"name": "sta", "count": 2, "rate_mbps": 26}],
    "flows": [{"station": "sta", "direction": "up"}, {"station": "sta1"}]
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The command, on a set with one scenario; (what it printed and gave back, its folders)."""
    folder = tmp_path_factory.mktemp("evaluate")
    exporter = play.snapshot(play.EXPORTER, folder)  # one that is built anew meanwhile would be another method
    (folder / "scenarios/tune").mkdir(parents=True)
    (folder / "scenarios/tune/tiny.yaml").write_text(yaml.safe_dump(TINY))
    patch = pytest.MonkeyPatch()
    patch.setattr(scenarios, "FOLDER", folder / "scenarios")
    scenarios.load.cache_clear()

    def run(*more: str) -> int:
        words = [
            "--build",
            str(folder / "build"), "--report",
            str(folder / "report"), "--keep",
            str(folder / "kept"), "--clamp-bytes", "9000", "--exporter",
            str(exporter), *more
        ]
        patch.setattr(sys, "argv", ["run", *words, *(w for m in METHODS for w in ("--method", m))])
        return command.main()

    assert run() == 0
    yield run, folder
    patch.undo()
    scenarios.load.cache_clear()


def stored(folder) -> dict[str, dict]:
    return {path.parent.name: json.loads(path.read_text()) for path in (folder / "build/cells").rglob("*.json")}


def went_missing(packets: np.ndarray, flows: list[dict]) -> int:
    """Packets that left a server for a station and never came, those without data (SYN, ACK, FIN) too: a queue that is
    full drops them like others, and a metric of data packets does not count them.
    """
    count = 0
    for flow in flows:
        address, port = flow["listener"]
        down = (packets["destination"] == int(ipaddress.IPv4Address(address))) & (packets["destination_port"] == port)
        left, came = down & (packets["tap"] == 0) & (packets["sent"] == 1), down & (packets["tap"] > 0) & (
            packets["sent"] == 0)
        count += int(left.sum()) - int(came.sum())
    return count


def test_what_the_taps_saw_is_what_the_kernel_counted(ran):
    folder = ran[1] / "kept/tune_tiny_cubic-fifo_1"
    truth = json.loads((folder / "tiny.truth.json").read_text())
    plan = scenarios.plan(scenarios.load("tune", "tiny"), "tiny", command.methods.method("cubic-fifo"), 1)
    packets = tap.read(folder / "tiny.tap")
    talks = [
        talk for _, _, several in metrics.conversations(packets, plan, truth["flows"], places(plan)) for talk in several
    ]
    again, lost = sum(int(t.retransmitted().sum()) for t in talks), went_missing(packets, truth["flows"])
    assert lost > 10 and truth["queue_drops"] > 10
    assert lost == pytest.approx(truth["queue_drops"] + truth["mac_failures"],
                                 abs=3), "the run's last packets may still be on their way"
    assert again == pytest.approx(truth["down_retrans_segs"], abs=3)
    received = sum(flow["received_bytes"] for flow in truth["flows"])
    assert sum(t.acknowledged(float("inf")) for t in talks) == pytest.approx(received, rel=0.01)
    delay = np.concatenate([t.delays()[1] for t in talks])
    assert delay.min() > 10e6, "half of the wired round trip is the least"


def test_a_clamp_shortens_the_queue_and_the_air_is_the_limit(ran):
    cells = {name: found["cell"] for name, found in stored(ran[1]).items()}
    assert cells["cubic-fifo+clamp"]["queueing_mean_ms"] < 0.5 * cells["cubic-fifo"]["queueing_mean_ms"]
    assert cells["cubic-fifo+clamp"]["retransmissions"] < cells["cubic-fifo"]["retransmissions"]
    for cell in cells.values():
        assert 3 < cell["throughput_mbps"] < 20 and cell[
            "short_flows"] >= 2 and 0 < cell["fct_mean_ms"] <= cell["fct_p95_ms"]
        assert cell["delay_mean_ms"] < cell["delay_p95_ms"] <= cell["delay_p99_ms"] and 20 < cell["rtt_mean_ms"]
        assert 0.5 <= cell["jain_airtime"] <= 1


def test_the_report_has_every_cell(ran):
    rows = pq.read_table(ran[1] / "report/cells.parquet").to_pylist()
    assert {(row["method"], row["failed"]) for row in rows} == {(m, None) for m in METHODS}
    assert len(pq.read_table(ran[1] / "report/results.parquet")) == 6
    page = (ran[1] / "report/report.html").read_text()
    assert "Beside the paper" in page and "data:image/png" in page and "cubic-fifo+clamp" in page


def test_what_was_played_is_not_played_again_and_what_is_missing_is(ran, monkeypatch):
    run, folder = ran
    played = []
    monkeypatch.setattr(command.pool, "each", lambda work, items, jobs:
                        (played.append(c) or (c, work(c), None) for c in items))
    assert run() == 0 and not played
    before = stored(folder)
    gone, = (folder / "build/cells/tune/tiny/cubic-fifo").glob("*.json")
    gone.unlink()
    shutil.rmtree(folder / "report")
    assert run() == 0 and [c.method.name for c in played] == ["cubic-fifo"]
    after = stored(folder)
    assert after["cubic-fifo+clamp"] == before["cubic-fifo+clamp"] and (folder / "report/report.html").exists()


def test_a_cell_that_fails_twice_is_shown_and_does_not_hide_the_others(ran, monkeypatch):
    run, folder = ran
    tried = []

    def broken(work, items, jobs):
        for c in items:
            tried.append(c.method.name)
            yield c, None, "RuntimeError: the guest fell over"

    monkeypatch.setattr(command.pool, "each", broken)
    assert run("--clamp-bytes", "8000") == 1
    assert tried == ["cubic-fifo+clamp"] * 2
    rows = {row["method"]: row["failed"] for row in pq.read_table(folder / "report/cells.parquet").to_pylist()}
    assert rows == {"cubic-fifo": None, "cubic-fifo+clamp": "RuntimeError: the guest fell over"}
    assert "the guest fell over" in (folder / "report/report.html").read_text()


def test_marks_and_uploads_are_measured(ran, monkeypatch):
    """FQ-CoDel marks what waited 1 ms; DCTCP asks for it, and what it says reaches the sender. Uploads stand beside."""
    run, folder = ran
    (folder / "scenarios/tune/uplink.yaml").write_text(yaml.safe_dump(UPLINK))
    monkeypatch.setattr(sys.modules[__name__], "METHODS", ("dctcp-fq-ce1", "cubic-fq-ce1"))
    assert run("--scenario", "uplink") == 0
    cells = {path.parent.name: json.loads(path.read_text()) for path in (folder / "build/cells").rglob("*.json")
             if "fq-ce1" in path.parent.name}
    marked, plain = cells["dctcp-fq-ce1"]["cell"], cells["cubic-fq-ce1"]["cell"]
    assert plain["ce_ratio"] == plain["ece_ratio"] == 0, "a sender that takes no part in ECN is not marked"
    assert 0.05 < marked["ce_ratio"] < 1 and marked["ece_ratio"] > 0.05
    for cell in (marked, plain):
        assert cell["up_mbps"] > 2 and cell["throughput_mbps"] > 1 and cell["up_ack_wait_p95_ms"] > 0
        assert 0 < cell["up_jain_goodput"] <= 1 and cell["up_rtt_mean_ms"] > 20


def test_downloads_over_quic_are_measured_and_hear_of_marks(ran, monkeypatch):
    """quic-go in the guest: long and short downloads, marked by FQ-CoDel at 1 ms."""
    run, folder = ran
    monkeypatch.setattr(sys.modules[__name__], "METHODS", ("quic-fq-ce1", "quic-fifo"))
    assert run("--scenario", "tiny") == 0
    cells = {path.parent.name: json.loads(path.read_text())["cell"] for path in (folder / "build/cells").rglob("*.json")
             if path.parent.name.startswith("quic-")}
    marked, plain = cells["quic-fq-ce1"], cells["quic-fifo"]
    assert plain["ce_ratio"] == 0 and 0.02 < marked["ce_ratio"] < 1
    assert marked["queueing_p95_ms"] < plain["queueing_p95_ms"] and plain["queue_drops"] > 0
    for cell in (marked, plain):
        assert 2 < cell["throughput_mbps"] < 20 and cell["short_flows"] >= 2 and 0 < cell["fct_mean_ms"]
        assert cell["rtt_mean_ms"] is cell["ece_ratio"] is cell["duplicate_ack_ratio"] is None, "nobody can see it"
    where = folder / "kept/tune_tiny_quic-fifo_1"
    truth = json.loads((where / "tiny.truth.json").read_text())
    plan = scenarios.plan(scenarios.load("tune", "tiny"), "tiny", command.methods.method("quic-fifo"), 1)
    for flow, _, talks in metrics.conversations(tap.read(where / "tiny.tap"), plan, truth["flows"], places(plan)):
        noted = sum(t.acknowledged(float("inf")) for t in talks)  # what came last may not be: 10 ms from note to note
        assert flow["received_bytes"] == pytest.approx(noted, rel=0.01) and noted > 0
        arrived = sum(int(t.arrived["payload_bytes"].sum()) for t in talks)
        assert flow["received_bytes"] < arrived, "packets have more than what the client reads"
