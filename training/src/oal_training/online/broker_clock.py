"""Does this machine's clock agree with the broker's? What a wrong one signs is refused, or refused later."""

from __future__ import annotations

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME
from oal_schema.settings import settings as contract


class BrokerClock:
    """Compares when items were written, by the broker's clock, with when they are read, by this one's.
    """

    def __init__(self) -> None:
        self._limit_us = contract()["max_serial_ahead_us"]  # whose serial is further ahead has no release
        self._ahead_us = 0

    def read(self, stamp: tuple[int, int], now_us: int, fresh: bool) -> None:
        """An item was read. stamp: as confluent_kafka's `Message.timestamp()`, ms; one that is not the broker's says
        nothing. fresh: it was not there yet when this trainer began to read; an old one says only that a clock is
        behind.
        """
        kind, at_ms = stamp
        ahead_us = now_us - at_ms * 1000
        if kind == TIMESTAMP_LOG_APPEND_TIME and (fresh or ahead_us < 0):
            self._ahead_us = ahead_us

    @property
    def wrong(self) -> str:
        """What is wrong, or empty. By such a clock nothing may be signed: an access point takes no tree of the future,
        and after it none that is older than what it has.
        """
        if abs(self._ahead_us) <= self._limit_us:
            return ""
        way = "ahead of" if self._ahead_us > 0 else "behind"
        return f"this machine's clock is {abs(self._ahead_us) // 1_000_000} s {way} the broker's: nothing is signed"
