"""The wired path of a scenario, and congestion controls of both ends."""
import pytest
from guest.net import netem

LINK = {"name": "sta", "rate_mbps": 65, "loss": 0.0}
PATH = {"delay_ms": 20, "jitter_ms": 0, "loss": 0.0, "rate_mbps": 0, "limit_pkts": 20000}


@pytest.mark.parametrize(("more", "words"), [
    ({}, "delay 10.0ms limit 20000"),
    ({"jitter_ms": 4}, "delay 10.0ms 2.0ms limit 20000"),
    ({"loss": 0.0003}, "delay 10.0ms loss 0.03% limit 20000"),
    ({"rate_mbps": 8, "limit_pkts": 30}, "delay 10.0ms rate 8000000bit limit 30"),
])
def test_netem_is_told_what_the_path_has(more, words):
    assert netem({**PATH, **more}) == words


def test_a_path_that_loses_and_is_slow_is_seen_at_the_sender(play):
    """Both are the wire's doing: the access point's queue drops nothing."""
    truth = play("wire", {
        "duration_s": 12, "wired": {"loss": 0.01, "rate_mbps": 8, "limit_pkts": 100}, "stations": [LINK],
        "flows": [{"station": "sta", "cc": "reno"}]
    })
    (flow,) = truth["flows"]
    assert truth["queue_drops"] == 0 and truth["mac_failures"] == 0
    assert 0.004 < (flow["retransmits"] - flow["spurious"]) / flow["data_segs"] < 0.03
    assert 2e6 < flow["received_bytes"] * 8 / 12 < 8e6


@pytest.mark.parametrize("control", ["reno", "dctcp", "illinois", "vegas", "veno", "westwood", None])
def test_every_congestion_control_carries_data(play, control):
    truth = play(f"cc-{control}", {
        "duration_s": 4, "stations": [LINK], "flows": [{"station": "sta", "cc": control, "peer_cc": control}]
    })
    (flow,) = truth["flows"]
    assert flow["received_bytes"] > 2_000_000 and flow["cc"] == control
