"""By a clock that the broker's denies, the trainer signs nothing; it says so, and goes on when the clock is right."""

from __future__ import annotations

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from oal_training.online.broker_clock import BrokerClock
from oal_training.online.service import Service

NOW_US = 1_800_000_000_000_000
HOUR_US = 3_600_000_000


def read(clock: BrokerClock, ahead_us: int, fresh: bool = True, kind: int = TIMESTAMP_LOG_APPEND_TIME) -> str:
    clock.read((kind, (NOW_US - ahead_us) // 1000), NOW_US, fresh)
    return clock.wrong


@pytest.mark.parametrize("ahead_us, said", [(HOUR_US, "3600 s ahead of"), (-HOUR_US, "3600 s behind")])
def test_a_clock_an_hour_off_is_told_and_one_that_is_right_again_too(ahead_us, said):
    clock = BrokerClock()
    assert read(clock, 200_000) == ""
    assert said in read(clock, ahead_us)
    assert read(clock, 200_000) == ""


def test_items_from_before_the_start_say_only_that_it_is_behind():
    clock = BrokerClock()
    assert read(clock, HOUR_US, fresh=False) == "", "an item an hour old"
    assert "behind" in read(clock, -HOUR_US, fresh=False), "an item of the future"


def test_a_senders_time_says_nothing():
    assert read(BrokerClock(), HOUR_US, kind=TIMESTAMP_CREATE_TIME) == ""


def test_nothing_is_decided_or_renewed_while_it_is_wrong_and_health_says_so():
    class Asked(Exception):
        pass

    class Rest:
        joined, fatal = True, ""

        @property
        def catching_up(self):
            raise Asked

        def due(self, *_):
            raise Asked

        positions = catching_up

    service = Service.__new__(Service)
    service._clock, service._clock_wrong, service._starting, service._turned = BrokerClock(), "", False, float("inf")
    service._items = service._renewals = Rest()
    read(service._clock, HOUR_US)
    service._round()
    service._renew()
    assert "nothing is signed" in service._ailment()
    read(service._clock, 0)
    with pytest.raises(Asked):
        service._round()
    with pytest.raises(Asked):
        service._renew()
    assert service._ailment() == ""
