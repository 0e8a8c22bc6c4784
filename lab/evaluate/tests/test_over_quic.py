"""Figures of downloads over QUIC, of captures and accounts made by hand; and the programs themselves on this machine.
"""
import json
import signal
import subprocess
import time

import numpy as np
import pytest
from evaluate import cell, metrics, over_quic, scenarios
from evaluate.methods import method
from evaluate.tap import CE, RECORD, TCP, UDP
from host import scenario

SERVER, CLIENT, PORT = 0x0a140001, 0x0a14000a, 50000
AT_SERVER, AT_STATION = 0, 1
MS = 1_000_000
PLAN = {"stations": [{"name": "near", "ap": 0, "ns": "sta0", "radio": 1}], "aps": 1}
PLACES = ["server0:eth0", "sta0:wlan1"]


def packet(t_ms: float, tap: int, sent: bool, down: bool, number: int, port: int = PORT, ecn: int = 2,
           protocol: int = UDP) -> tuple:
    ends = (SERVER, CLIENT, 443, port) if down else (CLIENT, SERVER, port, 443)
    return (round(t_ms * MS), ends[0], ends[1], number * 77777, 0, ends[2], ends[3], number, 1200, 0, tap, 0,
            int(sent), ecn, protocol, 0)


def packets() -> np.ndarray:
    """Ten datagrams, of which the fifth is lost and the last comes marked; one of TCP between the same ends."""
    rows = [packet(1, AT_STATION, True, False, 900), packet(6, AT_SERVER, False, False, 900)]
    for n in range(10):
        rows.append(packet(10 + 10 * n, AT_SERVER, True, True, n + 1))
        if n != 4:
            rows.append(packet(15 + 11 * n, AT_STATION, False, True, n + 1, ecn=CE if n == 9 else 2))
    rows.append(packet(20, AT_SERVER, True, True, 999, protocol=TCP))
    data = np.array(rows, RECORD)
    return data[np.argsort(data["t_ns"], kind="stable")]


def flow(transfers: list[dict], **more) -> dict:
    return {"direction": "down", "station": "near", "listener": ["10.20.0.10", 0], "size_kb": 0, "burst_kb": 0,
            "quic": {"server": ["10.20.0.1", 443], "transfers": transfers}, **more}


def transfer(begin_ms: float, end_ms: float | None, bytes_: int, port: int = PORT) -> dict:
    end_ns = round(end_ms * MS) if end_ms else 0
    return {"port": port, "begin_ns": round(begin_ms * MS), "end_ns": end_ns, "bytes": bytes_,
            "progress": [[round(begin_ms * MS), 0], [end_ns or round(1000 * MS), bytes_]]}


def test_a_long_download_has_what_the_client_read_and_what_the_taps_saw():
    one = flow([transfer(0, None, 100_000)])
    (_, station, talks), = metrics.conversations(packets(), PLAN, [one], PLACES)
    f = metrics.long_flow(one, station, talks, (0, 500 * MS), 5 * MS)
    assert f["goodput_mbps"] == pytest.approx(50_000 * 8e-6 / 0.5)
    assert (f["packets"], f["lost"], f["retransmissions"]) == (10, 1, 1), "what it carried is sent again"
    assert f["queueing_mean_ms"] == pytest.approx(np.mean([n for n in range(10) if n != 4]))
    assert f["ce_ratio"] == pytest.approx(1 / 9)
    assert f["duplicate_acks"] is f["ece_ratio"] is f["rtt_mean_ms"] is f["ack_wait_mean_ms"] is None
    assert cell.ratio([f], "duplicate_acks") is None, "unknown is not none"


def test_transfers_and_bursts_are_through_when_their_last_byte_was_read():
    short = flow([transfer(100, 180, 3000), transfer(200, None, 100, PORT + 1)], size_kb=3)
    (_, station, talks), = metrics.conversations(packets(), PLAN, [short], PLACES)
    f = metrics.short_flow(short, station, talks, (50 * MS, 500 * MS))
    assert (f["fct_ms"], f["unfinished"]) == ([pytest.approx(80)], 1)
    bursts = flow([transfer(100, 180, 3000), transfer(300, 340, 3000), transfer(3900, None, 9)], burst_kb=3)
    (_, station, talks), = metrics.conversations(packets(), PLAN, [bursts], PLACES)
    f = metrics.burst_flow(bursts, station, talks, (0, 5000 * MS))
    assert f["fct_ms"] == pytest.approx([80, 40]) and f["unfinished"] == 0, "the third may be cut by the end"
    assert metrics.burst_flow(bursts, station, talks, (0, 7000 * MS))["unfinished"] == 1


def test_senders_over_quic_play_what_cubic_plays_and_nothing_that_they_cannot_be():
    for name in scenarios.names("judge"):
        plan = scenarios.plan(scenarios.load("judge", name), name, method("quic-fq+mark"), 1)
        own = {flow["cc"] for flow in plan["flows"]}
        assert own == ({"quic", "cubic"} if name == "mixed" else {"quic"}) and plan["evaluate"]["control"] == "quic"
    sta = {"stations": [{"name": "a"}]}
    for wrong, word in (({"direction": "up"}, "downloads only"), ({"rate_mbps": 3}, "has no rate_mbps"),
                        ({"peer_cc": "cubic"}, "has no peer_cc"), ({"ecn": True}, "has no ecn")):
        with pytest.raises(scenario.ScenarioError, match=word):
            scenario.plan("x", sta | {"flows": [{"station": "a", "cc": "quic", **wrong}]})
    with pytest.raises(scenario.ScenarioError, match="ecn: true, false or null"):
        scenario.plan("x", sta | {"flows": [{"station": "a", "ecn": "yes"}]})


def test_mixed_senders_ask_for_ecn_in_turns_and_others_do_as_before():
    given = scenarios.load("mark", "pairs")
    of = lambda name: [f["ecn"] for f in scenarios.plan(given, "pairs", method(name), 1)["flows"]]
    assert of("cubic_mixed-fq+mark") == [True, False] * 3 and set(of("cubic-fq")) == {None}


def test_what_flows_without_ecn_have_beside_others():
    of = lambda station, ecn, mbps: {"station": station, "ecn": ecn, "goodput_mbps": mbps, "queueing_p95_ms": 10 * mbps}
    found = cell.without_ecn([of("a", True, 3), of("a", False, 1), of("b", True, 2), of("b", False, 2)])
    assert found == {"plain_mbps": 3, "plain_queueing_p95_ms": 15, "jain_ecn": pytest.approx((0.8 + 1) / 2)}
    assert set(cell.without_ecn([of("a", None, 3)]).values()) == {None}


@pytest.fixture
def server(tmp_path):
    """The real one on a free port of the loopback interface; what it says at its end."""
    process = subprocess.Popen([over_quic.program(), "serve", "-listen", "127.0.0.1:0", "-certificate",
                                tmp_path / "pem", "-out", tmp_path / "server.json"], stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    assert line.startswith("quic: ready on "), line

    def end() -> dict:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        return json.loads((tmp_path / "server.json").read_text())

    yield line.split()[-1], tmp_path, end
    process.kill()
    process.wait()


def test_client_and_server_say_what_came_when(server):
    at, folder, end = server
    began = time.time_ns()
    flows = {"short": ["-every", "0.2", "-size", "30000"], "burst": ["-every", "0.2", "-burst", "40000"], "long": []}
    clients = {name: subprocess.Popen([over_quic.program(), "get", "-from", at, "-bind", "127.0.0.1", "-certificate",
                                       folder / "pem", "-out", folder / f"{name}.json", "-begin", str(began), "-stop",
                                       "1", *words]) for name, words in flows.items()}
    assert [process.wait(timeout=60) for process in clients.values()] == [0, 0, 0], "each ends when its flow is over"
    said = {name: json.loads((folder / f"{name}.json").read_text())["transfers"] for name in flows}
    whole = [t for t in said["short"] + said["burst"] if t["end_ns"]]
    assert {t["bytes"] for t in said["short"] if t["end_ns"]} == {30_000}
    assert {t["bytes"] for t in said["burst"] if t["end_ns"]} == {40_000}
    assert len({t["port"] for t in said["burst"]}) == 1 < len({t["port"] for t in said["short"]})
    assert all(t["begin_ns"] < t["end_ns"] == t["progress"][-1][0] for t in whole) and len(whole) >= 2
    (long,) = said["long"]
    assert long["bytes"] > 0 and not long["end_ns"] and long["progress"][-1][0] <= time.time_ns()
    assert over_quic.read_by(long, long["begin_ns"]) == 0 and over_quic.read_by(long, 1e19) == long["progress"][-1][1]
    told = {c["client"]: c for c in end()["connections"]}
    assert told[f"127.0.0.1:{long['port']}"]["packets_sent"] > 0
