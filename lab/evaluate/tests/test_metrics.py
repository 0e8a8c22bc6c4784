"""Metrics of captures made by hand: what is lost, sent again, late, and when a short flow is through."""
import numpy as np
import pytest
from evaluate import cell, metrics
from evaluate.tap import ACK, CE, ECE, RECORD, SYN, TCP

SERVER, CLIENT, SERVER_PORT, CLIENT_PORT = 0x0a140001, 0x0a14000a, 40000, 5001
AT_SERVER, AT_STATION = 0, 1
MS = 1_000_000
PLAN = {"stations": [{"name": "near", "ap": 0, "ns": "sta0", "radio": 1}], "aps": 1}
PLACES = ["server0:eth0", "sta0:wlan1"]
FLOW = {"direction": "down", "station": "near", "listener": ["10.20.0.10", CLIENT_PORT], "size_kb": 0, "burst_kb": 0}


class Capture:
    """Packets of one connection; the first sequence number wraps soon."""

    def __init__(self, first_seq: int = 2**32 - 3000):
        self.rows, self.first_seq, self.ip_id = [], first_seq, 65534

    def add(self, t_ms: float, tap: int, sent: bool, down: bool, seq: int = 0, ack: int = 0, payload: int = 0,
            flags: int = ACK, ip_id: int = 0):
        ends = (SERVER, CLIENT, SERVER_PORT, CLIENT_PORT) if down else (CLIENT, SERVER, CLIENT_PORT, SERVER_PORT)
        self.rows.append((round(t_ms * MS), ends[0], ends[1], (self.first_seq + seq) % 2**32 if down else seq,
                          (self.first_seq + ack) % 2**32, ends[2], ends[3], ip_id % 65536, payload, 1000, tap, flags,
                          int(sent), 0, TCP, 0))

    def syn(self, t_ms: float, delay_ms: float = 5.0):
        self.add(t_ms, AT_SERVER, True, True, seq=-1, flags=SYN, ip_id=9)
        self.add(t_ms + delay_ms, AT_STATION, False, True, seq=-1, flags=SYN, ip_id=9)

    def data(self, t_ms: float, seq: int, delay_ms: float | None, payload: int = 1000, answer_ms: float | None = None,
             back_ms: float = 4.0, ack: int | None = None):
        """A packet, lost where it has no delay; with answer_ms the station acknowledges so long after."""
        self.ip_id += 1
        self.add(t_ms, AT_SERVER, True, True, seq=seq, payload=payload, ip_id=self.ip_id)
        if delay_ms is not None:
            self.add(t_ms + delay_ms, AT_STATION, False, True, seq=seq, payload=payload, ip_id=self.ip_id)
        if answer_ms is not None:
            t, number = t_ms + delay_ms + answer_ms, seq + payload if ack is None else ack
            self.add(t, AT_STATION, True, False, ack=number, ip_id=self.ip_id + 7)
            self.add(t + back_ms, AT_SERVER, False, False, ack=number, ip_id=self.ip_id + 7)

    def packets(self) -> np.ndarray:
        data = np.array(self.rows, RECORD)
        return data[np.argsort(data["t_ns"], kind="stable")]

    def talks(self):
        (_, station, talks), = metrics.conversations(self.packets(), PLAN, [FLOW], PLACES)
        return station, talks

    def long(self, begin_ms: float = 0, end_ms: float = 1000, least_ms: float = 5) -> dict:
        station, talks = self.talks()
        return metrics.long_flow(FLOW, station, talks, (begin_ms * MS, end_ms * MS), round(least_ms * MS))


def test_delay_queueing_and_round_trip_across_a_wrapped_sequence_number():
    c = Capture()
    c.syn(0)
    for n in range(10):  # 65534, 65535, 0, …: the identification wraps too
        c.data(10 + n * 10, n * 1000, delay_ms=5 + n, answer_ms=1)
    f = c.long()
    assert f["delay_mean_ms"] == pytest.approx(9.5)
    assert f["queueing_mean_ms"] == pytest.approx(4.5)
    assert f["delay_p95_ms"] == pytest.approx(np.percentile(np.arange(5, 15), 95))
    assert f["rtt_mean_ms"] == pytest.approx(9.5 + 1 + 4) and f["rtt_samples"] == 10
    assert (f["packets"], f["lost"], f["retransmissions"]) == (10, 0, 0)
    assert f["goodput_mbps"] == pytest.approx(10_000 * 8 / 1e6)


def test_a_lost_packet_is_lost_once_and_its_retransmission_counts_as_one():
    c = Capture()
    c.syn(0)
    c.data(10, 0, 5, answer_ms=0)
    c.data(20, 1000, None)
    c.data(30, 2000, 5, answer_ms=0, ack=1000)
    c.data(50, 1000, 5, answer_ms=0, ack=3000)  # again, and fills the hole
    f = c.long()
    assert (f["packets"], f["lost"], f["retransmissions"]) == (4, 1, 1)
    assert f["loss_ratio"] == 0.25 and f["again_bytes"] == 1000 and f["sent_bytes"] == 4000
    # the duplicate acknowledgement of 1000 names no packet that had just come; nor does 3000, whose packet came before
    # the hole was filled
    assert f["rtt_samples"] == 1


def test_only_the_measured_time_counts():
    c = Capture()
    c.syn(0)
    for n in range(20):
        c.data(10 + n * 10, n * 1000, delay_ms=5 if n < 10 else 25, answer_ms=0)
    f = c.long(begin_ms=109, end_ms=209)
    assert f["packets"] == 10 and f["delay_mean_ms"] == pytest.approx(25)
    assert f["goodput_mbps"] == pytest.approx(8e3 * c_bytes(c, 109, 209) / 100e6)


def c_bytes(c: Capture, begin_ms: float, end_ms: float) -> int:
    acks = [(r[0] / MS, (r[4] - c.first_seq) % 2**32) for r in c.rows
            if r[10] == AT_SERVER and r[12] == 0 and r[11] == ACK]
    return max(a for t, a in acks if t <= end_ms) - max(a for t, a in acks if t <= begin_ms)


def test_jitter_is_that_of_rfc_3550():
    delays = np.array([5, 7, 4, 4, 9], float) * MS
    j = [0.0]
    for d in (2, 3, 0, 5):
        j.append(j[-1] + (d - j[-1]) / 16)
    mean, absolute = metrics.jitter(delays)
    assert mean == pytest.approx(np.mean(j[1:])) and absolute == pytest.approx(2.5)
    assert metrics.jitter(delays[:1]) == (None, None)


def test_delays_are_in_order_of_arrival_so_that_reordering_is_jitter():
    c = Capture()
    c.syn(0)
    c.data(10, 0, 30)
    c.data(11, 1000, 5)
    _, talks = c.talks()
    sent, delay = talks[0].delays()
    assert [int(t) for t in sent] == [11 * MS, 10 * MS] and [int(d) for d in delay] == [5 * MS, 30 * MS]


def test_a_short_flow_is_complete_with_its_last_acknowledgement_and_unfinished_without():
    short = FLOW | {"size_kb": 3}
    c = Capture()
    c.syn(100)
    for n in range(3):
        c.data(120 + n, n * 1000, 5, answer_ms=0)
    station, talks = c.talks()
    f = metrics.short_flow(short, station, talks, (0, 1000 * MS))
    assert f["fct_ms"] == [pytest.approx(122 + 5 + 4 - 100)] and f["unfinished"] == 0
    assert metrics.short_flow(short, station, talks, (0, 50 * MS))["fct_ms"] == [], "it began after the measured time"
    assert metrics.short_flow(short | {"size_kb": 4}, station, talks, (0, 1000 * MS))["unfinished"] == 1


def test_jain():
    assert metrics.jain([3, 3, 3]) == pytest.approx(1) and metrics.jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert metrics.jain([]) is None and metrics.jain([0, 0]) is None


def test_smallest_delay_takes_the_handshake_too():
    c = Capture()
    c.syn(0, delay_ms=3)
    c.data(10, 0, 9)
    assert cell.smallest_delay(c.packets(), AT_SERVER, AT_STATION) == 3 * MS


def test_counters_are_read_between_the_truths_seconds():
    truth = {"seconds": [{"realtime_us": 1_000_000 * n, "x": 10 * n} for n in range(5)]}
    assert cell.counted(truth, "x", 0.5e9, 2.5e9) == pytest.approx(20)


def test_a_burst_is_through_when_its_last_byte_is_acknowledged_and_the_next_counts_for_itself():
    c = Capture()
    c.syn(0)
    for n, t_ms in enumerate((100, 110, 1100, 1110, 3100)):  # bursts of two packets: at 100 and 1100 ms; one is cut
        c.data(t_ms, n * 1000, delay_ms=5 + 10 * n, answer_ms=1)
    station, talks = c.talks()
    f = metrics.burst_flow({**FLOW, "burst_kb": 2}, station, talks, (0, 5000 * MS))
    assert f["kind"] == "burst" and f["fct_ms"] == pytest.approx([10 + 15 + 1 + 4, 10 + 35 + 1 + 4])
    assert f["unfinished"] == 0, "what begins in the last two seconds says nothing"
    assert metrics.burst_flow({**FLOW, "burst_kb": 2}, station, talks, (0, 6000 * MS))["unfinished"] == 1


def test_what_a_new_connection_loses_in_its_first_second_and_what_its_access_point_does():
    new, old = Capture(), Capture(5)
    new.syn(500)
    old.syn(0)
    for t_ms, seq, delay in ((600, 0, None), (700, 1000, 5), (1700, 2000, None)):
        new.data(t_ms, seq, delay)
    for t_ms, seq, delay in ((400, 0, None), (800, 1000, None), (900, 2000, None)):
        old.data(t_ms, seq, delay)
    (_, (first,)), (_, (second,)) = new.talks(), old.talks()
    every = [(0, first), (0, second), (1, second)]
    assert metrics.first_seconds(every, (100 * MS, 5000 * MS)) == [(1, 3)], "the others began before"
    assert metrics.first_seconds(every, (100 * MS, 1400 * MS)) == [], "its first second is not whole"
    assert metrics.first_seconds([(0, first), (1, second)], (100 * MS, 5000 * MS)) == [(1, 1)]


UP = {"direction": "up", "station": "near", "listener": ["10.20.0.1", SERVER_PORT], "size_kb": 0, "burst_kb": 0}


def test_an_upload_is_measured_from_the_station_and_its_acknowledgements_wait():
    """Ten packets up, of which one is lost and sent again; acknowledgements wait 0, 2, … ms more than 3."""
    rows = []

    def add(t_ms, tap, sent, up, number, ip_id, payload=0, flags=ACK, ecn=0):
        ends = (CLIENT, SERVER, CLIENT_PORT, SERVER_PORT) if up else (SERVER, CLIENT, SERVER_PORT, CLIENT_PORT)
        seq, ack = (number, 7) if up else (7, number)
        rows.append((round(t_ms * MS), ends[0], ends[1], seq, ack, ends[2], ends[3], ip_id, payload, 1000, tap, flags,
                     int(sent), ecn, TCP, 0))

    add(0, AT_STATION, True, True, 999, 1, flags=SYN)
    add(2, AT_SERVER, False, True, 999, 1, flags=SYN)
    for n in range(10):
        add(10 + 10 * n, AT_STATION, True, True, 1000 + 100 * n, 10 + n, payload=100)
        if n != 4:
            add(12 + 10 * n, AT_SERVER, False, True, 1000 + 100 * n, 10 + n, payload=100, ecn=CE if n == 9 else 2)
            acknowledged = 1000 + 100 * (n + 1 if n < 4 else 4)
            add(12 + 10 * n, AT_SERVER, True, False, acknowledged, 50 + n, flags=ACK | (ECE if n == 9 else 0))
            add(15 + 12 * n, AT_STATION, False, False, acknowledged, 50 + n, flags=ACK | (ECE if n == 9 else 0))
    packets = np.array(rows, RECORD)
    packets = packets[np.argsort(packets["t_ns"], kind="stable")]
    (_, station, talks), = metrics.conversations(packets, PLAN, [UP], PLACES)
    found = metrics.long_flow(UP, station, talks, (0, 1000 * MS), 2 * MS)
    assert (found["direction"], found["packets"], found["lost"]) == ("up", 10, 1)
    assert found["queueing_mean_ms"] == 0 and found["goodput_mbps"] == pytest.approx(400 * 8e-6)
    assert found["ack_wait_mean_ms"] == pytest.approx(np.mean([2 * n for n in range(10) if n != 4]))
    assert found["duplicate_acks"] == 5 and found["ce_ratio"] == pytest.approx(1 / 9) == found["ece_ratio"]
