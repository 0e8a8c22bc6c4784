"""The judge of marks: datagrams with one thing wrong at a time."""
import struct

import pytest
from conformance.marks import AT_ONCE, CE, ECT0, ECT1, NOT_ECT, Datagram, datagram, datagrams, judge
from conformance.segment import folded
from conformance.timeline import Rules

SET = {"what": "mark set", "t_us": 1_000_000, "end_us": 1_000_100, "ok": True, "marks": 1, "ttl_us": 500_000}
RELEASE = {"what": "mark release", "t_us": 1_200_000, "end_us": 1_200_100, "ok": True}
KILLED = {"what": "mark killed", "t_us": 1_200_000, "end_us": 1_200_100, "ok": True}


BY_BRIDGE = Rules(settle_us=20_000, late_us=10_000, early_us=2000)


def verdict(t_us: int, sent: int, came: int, events: list[dict], rules: Rules = AT_ONCE, **wrong) -> list[str]:
    own = Datagram(t_us - 5000, 7, sent, b"rest", True)
    return judge([own], [Datagram(t_us, 7, came, wrong.get("rest", b"rest"), wrong.get("right", True))], events,
                 rules).complaints


@pytest.mark.parametrize("t_us, sent, came, events", [
    (900_000, ECT1, ECT1, [SET]),
    (1_100_000, ECT1, CE, [SET]),
    (1_001_000, ECT1, ECT1, [SET]),  # it may not have begun
    (1_100_000, NOT_ECT, NOT_ECT, [SET]),
    (1_100_000, CE, CE, [SET]),
    (1_100_000, ECT0, ECT0, [SET]),
    (1_501_000, ECT1, CE, [SET]),  # the deadline counts from when it was carried out
    (1_600_000, ECT1, ECT1, [SET]),
    (1_300_000, ECT1, ECT1, [SET, RELEASE]),
    (1_300_000, ECT1, CE, [SET, KILLED]),
    (1_600_000, ECT1, ECT1, [SET, KILLED]),
    (1_100_000, ECT0, CE, [SET | {"marks": 2}]),
    (1_100_000, ECT0, ECT0, [SET | {"marks": 2}]),  # spaced: which of them is not said
    (1_600_000, ECT1, CE, [SET, SET | {"t_us": 1_400_000, "end_us": 1_400_100}]),
])
def test_what_conforms(t_us, sent, came, events):
    assert verdict(t_us, sent, came, events) == []


@pytest.mark.parametrize("t_us, sent, came, events", [
    (900_000, ECT1, CE, [SET]),
    (1_100_000, ECT1, ECT1, [SET]),
    (1_100_000, NOT_ECT, CE, [SET]),
    (1_100_000, CE, ECT1, [SET]),
    (1_100_000, ECT1, NOT_ECT, [SET]),
    (1_100_000, ECT0, CE, [SET]),
    (1_510_000, ECT1, CE, [SET]),
    (1_300_000, ECT1, CE, [SET, RELEASE]),
    (1_600_000, ECT1, CE, [SET, KILLED]),
    (1_100_000, ECT1, CE, [SET | {"ok": False}]),
    (1_100_000, ECT1, CE, []),
])
def test_what_does_not(t_us, sent, came, events):
    assert len(verdict(t_us, sent, came, events)) == 1


@pytest.mark.parametrize("t_us, came, events, at_once, by_bridge", [
    (1_015_000, ECT1, [SET], 1, 0),  # a flow of the bridge takes a while
    (1_025_000, ECT1, [SET], 1, 1),
    (1_505_000, CE, [SET], 1, 0),  # its deadline counts from when the switch took it in
    (1_515_000, CE, [SET], 1, 1),
    (1_499_000, ECT1, [SET], 1, 0),  # and its clock has milliseconds
    (1_215_000, CE, [SET, RELEASE], 1, 0),
    (1_225_000, CE, [SET, RELEASE], 1, 1),
])
def test_a_backend_may_be_as_late_as_its_rules_say(t_us, came, events, at_once, by_bridge):
    assert len(verdict(t_us, ECT1, came, events)) == at_once
    assert len(verdict(t_us, ECT1, came, events, BY_BRIDGE)) == by_bridge


def test_a_datagram_that_differs_in_more_or_has_a_wrong_checksum_does_not():
    assert "more than its ECN" in verdict(900_000, ECT1, ECT1, [], rest=b"Rest")[0]
    assert "checksum" in verdict(900_000, ECT1, ECT1, [], right=False)[0]
    assert "more than its ECN" in judge([], [Datagram(1, 7, 0, b"", True)], []).complaints[0]


def v4(ecn: int) -> bytes:
    head = bytearray(struct.pack(">BBHHHBBH4s4s", 0x45, 0xa8 | ecn, 40, 1, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"))
    head[10:12] = (0xffff - folded(bytes(head))).to_bytes(2)
    return bytes(12) + b"\x08\x00" + bytes(head) + bytes(8) + b"oal 12"


def v6(ecn: int) -> bytes:
    return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 0x60000000 | (0xa8 | ecn) << 20 | 5, 14, 17,
                                                 64) + bytes(40) + b"oal 13"


@pytest.mark.parametrize("made", [v4, v6])
def test_fields_of_a_frame_are_read_and_the_rest_is_the_same_for_each_ecn_field(made):
    found = [datagram(5, made(ecn)) for ecn in range(4)]
    assert [one.ecn for one in found] == [0, 1, 2, 3]
    assert len({one.rest for one in found}) == 1 and all(one.checksum_right for one in found)
    assert found[0].number == (12 if made is v4 else 13)
    tagged = datagram(5, made(2)[:12] + b"\x81\x00\x00\x0a" + made(2)[12:])
    assert (tagged.ecn, tagged.checksum_right, len(tagged.rest)) == (2, True, len(found[2].rest) + 4)
    changed = bytearray(made(0))
    changed[15] ^= 0x08 if made is v4 else 0x80  # the DSCP
    assert datagram(5, bytes(changed)).rest != found[0].rest


def test_a_wrong_checksum_shows_and_other_frames_are_none():
    changed = bytearray(v4(0))
    changed[24] ^= 1
    assert not datagram(5, bytes(changed)).checksum_right
    assert datagram(5, bytes(12) + b"\x08\x06" + bytes(40)) is None
    assert datagram(5, v4(0).replace(b"oal", b"abc")) is None


def test_a_capture_is_read_in_order(tmp_path):
    file = tmp_path / "c.pcap"
    records = [(1, v4(1)), (2, bytes(60)), (3, v6(2))]
    file.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(20) + b"".join(
        struct.pack("<IIII", t, 7, len(f), len(f)) + f for t, f in records))
    assert [(one.t_us, one.ecn) for one in datagrams(file)] == [(1_000_007, 1), (3_000_007, 2)]


def test_marks_of_ect0_come_in_intervals_over_the_root_of_their_number():
    """What may be at most is little more than what the spacing gives, and less than every packet."""
    from conformance.cases_mark import INTERVAL_US, most_marks
    t = 0.0
    for n in range(1, 400):
        assert n <= most_marks(t) <= 1.25 * n + 3
        t += INTERVAL_US / n ** 0.5
    assert most_marks(0) == 2 and most_marks(2 * INTERVAL_US) < 6
