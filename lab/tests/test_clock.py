"""The clock comparison: its bound holds whatever the path does, and answers that were not asked for change nothing."""
import random
import socket
import threading
import time

import pytest
from sniffer import clock

MS = 1_000_000


class Path:
    """A Clock's socket to a host whose clock is `skew_ns` behind, over a path with delays of its own each way."""

    def __init__(self, skew_ns: int, chance: random.Random):
        self.skew_ns, self.chance = skew_ns, chance

    def setblocking(self, _): ...

    def sendto(self, packet, _):
        nonce = clock.PACKET.unpack(packet)[1]
        there, stays, back = (self.chance.randrange(0, 60 * MS) for _ in range(3))
        t1 = self.clock.asked[nonce]
        t2 = t1 - self.skew_ns + there
        self.clock.take(clock.PACKET.pack(clock.MAGIC, nonce, t2, t2 + stays), t1 + there + stays + back)


@pytest.mark.parametrize("seed", range(20))
def test_the_true_offset_lies_within_the_bound_whatever_the_delays(seed):
    chance = random.Random(seed)
    skew_us = chance.randrange(-5_000_000, 5_000_000)
    path = Path(skew_us * 1000, chance)
    asking = path.clock = clock.Clock(path, ("192.0.2.1", 1))
    bounds, began_ns = [], time.time_ns()
    for _ in range(clock.KEEP):
        asking.ask()
        found = asking.offset(time.time_ns())
        assert abs(found.offset_us - skew_us) <= found.error_us + 1
        bounds.append(found.error_us)
    aged_us = (time.time_ns() - began_ns) * clock.DRIFT_PPM / 1e9 + 1  # on a busy machine that is more than nothing
    assert min(bounds) <= bounds[-1] <= min(bounds) + aged_us and bounds[-1] < 60_000  # the fastest exchange counts


def test_an_old_estimate_is_worth_less():
    path = Path(0, random.Random(1))
    asking = path.clock = clock.Clock(path, ("192.0.2.1", 1))
    asking.ask()
    now = time.time_ns()
    assert asking.offset(now + 1000 * 10**9).error_us >= asking.offset(now).error_us + 1000 * clock.DRIFT_PPM - 10_000


def test_without_an_answer_nothing_is_claimed():
    asking = clock.Clock(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", 9))
    assert asking.offset(0).error_us == clock.UNKNOWN_ERROR_US


def test_forged_late_and_broken_answers_are_refused():
    asking = clock.Clock(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", 9))
    nonce, t1 = b"12345678", 10**18
    asking.asked[nonce] = t1
    answer = clock.PACKET.pack(clock.MAGIC, nonce, t1, t1)
    for packet in (b"", b"x" * 31, answer + b"x", clock.PACKET.pack(clock.MAGIC, b"87654321", t1, t1),
                   answer.replace(b"OAL", b"XAL"), clock.PACKET.pack(b"OALclk2\0", nonce, t1, t1)):
        asking.take(packet, t1 + MS)
    assert (asking.refused, asking.answers) == (6, 0)
    asking.take(answer, t1 + MS)
    assert asking.answers == 1 and asking.offset(t1 + MS).error_us == 500
    asking.take(answer, t1 + MS)  # the same again
    assert (asking.refused, asking.answers) == (7, 1)
    asking.asked[nonce] = t1
    asking.take(clock.PACKET.pack(clock.MAGIC, nonce, t1, t1 + 2 * MS), t1 + MS)  # stayed there longer than it was away
    assert asking.refused == 8


def test_a_reflector_answers_requests_only_and_one_kernel_has_one_clock():
    reflector = clock.Reflector(clock.open_socket(("127.0.0.1", 0)))
    stop = threading.Event()
    thread = threading.Thread(target=reflector.serve, args=(stop,))
    thread.start()
    try:
        asking = clock.Clock(clock.open_socket(("127.0.0.1", 0)), reflector.socket.getsockname())
        for packet in (b"hello", b"", b"y" * 1400):
            asking.socket.sendto(packet, asking.reflector)
        end = time.monotonic() + 20
        while asking.answers < 3:
            assert time.monotonic() < end
            asking.ask()
            asking.poll()
    finally:
        stop.set()
        thread.join()
    found = asking.offset(time.time_ns())
    assert abs(found.offset_us) <= found.error_us + 1
    assert reflector.refused == 3 and reflector.answered >= 3
