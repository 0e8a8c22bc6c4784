"""The cause of each lost packet: records as the kernel writes them, and sums that agree with the kernel's counters."""
import csv
import socket
import struct

import pytest
from guest import losses

STATION = {"name": "sta", "rate_mbps": 26, "loss": 0.5}
#: TCP alone would keep its windows too small for a queue to drop anything, with so many frames given up.
FLOWS = [{"station": "sta", "cc": "reno", "parallel": 2}, {"station": "sta", "udp": True, "rate_mbps": 30},
         {"station": "sta", "direction": "up"}]


def record(t_ns: int, device: str, cause: int, let_go: int = 0) -> bytes:
    source, destination = (struct.unpack("=I", socket.inet_aton(a))[0] for a in ("10.20.0.1", "10.20.0.10"))
    return losses.RECORD.pack(t_ns, source, destination, 77, 5, 40001, 50002, 9, 1448, device.encode(), 6, cause, 0,
                              let_go)


def test_a_record_is_a_line_by_column():
    ((row, let_go),) = losses.rows(record(12, "wlan0", 2, 3))
    assert let_go == 3 and row == {
        "t_ns": 12, "device": "wlan0", "cause": "air", "protocol": 6, "source": "10.20.0.1", "source_port": 40001,
        "destination": "10.20.0.10", "destination_port": 50002, "ip_id": 9, "seq": 77, "payload_bytes": 1448
    }
    assert losses.RECORD.size == 56, "struct medium_loss of lab/medium/losses.c"


def test_sums_are_of_a_radio_from_a_time_on_and_every_record_is_written(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(record(1, "wlan0", 1))
    seen = losses.Losses(str(tmp_path / "x.csv"), str(log))
    seen.follow("wlan0", 10)
    with log.open("ab") as f:
        f.write(record(9, "wlan0", 1) + record(10, "wlan0", 1) + record(11, "wlan0", 2) + record(12, "wlan5", 2, 4))
    assert seen.count("wlan0") == {"queue": 1, "air": 1, "filter": 0, "let_go": 4}
    seen.end()
    with open(tmp_path / "x.csv") as f:
        assert [(row["t_ns"], row["device"]) for row in csv.DictReader(f)] == [
            ("1", "wlan0"), ("9", "wlan0"), ("10", "wlan0"), ("11", "wlan0"), ("12", "wlan5")]


@pytest.mark.parametrize(("queue", "security"), [
    ({"mode": "txq", "limit": 30}, "open"), ({"mode": "txq"}, "open"),
    ({"mode": "txq"}, "wpa2"),  # encryption comes after every queue: one is enough
    ({"mode": "qdisc", "kind": "pfifo limit 30"}, "open"), ({"mode": "qdisc"}, "open"),
    ({"mode": "qdisc", "kind": "cake unlimited ack-filter"}, "open")
], ids=["txq-full", "txq-codel", "txq-codel-wpa2", "pfifo", "fq_codel", "cake"])
def test_causes_add_up_to_the_counters(play, queue, security):
    """CoDel's drops, drops for want of room and frames given up, on encrypted air too, of packets that were sent."""
    truth = play(f"losses-{security}", {
        "duration_s": 8, "medium": {"retries": 3}, "ap": {"security": security, "queue": queue}, "stations": [STATION],
        "flows": FLOWS
    })
    lost = truth["losses"]
    assert lost["let_go"] == 0
    assert lost["queue"] + lost["filter"] == truth["queue_drops"] > 0
    assert lost["air"] == truth["mac_failures"] > 0
    with open(truth["folder"] / f"losses-{security}.losses.csv") as f:
        found = [row for row in csv.DictReader(f) if row["device"] == "wlan0"]
    data = [row for row in found if row["protocol"] == "6" and int(row["payload_bytes"]) > 0]
    assert {(row["source"], row["destination"]) for row in data} == {("10.20.0.1", "10.20.0.10")}
    ports = {(row["source_port"], row["destination_port"]) for row in data}
    assert 1 <= len(ports) <= 2, "each connection's packets under its own ports"
    assert len({(row["source_port"], row["ip_id"], row["seq"]) for row in data}) == len(data), "none is lost twice"
