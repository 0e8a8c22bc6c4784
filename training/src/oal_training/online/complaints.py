"""What librdkafka complains about, a line now and then: a broker that is away makes some twenty a second."""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 10.0


class Complaints:
    """Callback for `error_cb`: the first complaint is logged, further ones are counted and told with the next line."""

    def __init__(self, log: Callable[[str], None]):
        self._log = log
        self._last = float("-inf")
        self._untold = 0

    def __call__(self, error) -> None:
        now = time.monotonic()
        if now - self._last < EVERY_S:
            self._untold += 1
            return
        more = f" ({self._untold} more since the last line)" if self._untold else ""
        self._log(f"Kafka: {error.str()}{more}")
        self._last, self._untold = now, 0
