"""Access points that play a tape into Kafka by a clock that a drill sets, and their count of what they made."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable

from confluent_kafka import Producer
from virtual_ap import mac_masters

from soak.tape import SITE, PlayedAp, Tape, tape

PAUSE_S = 0.02
TIMES_THE_QUOTA = 100  # of an access point; where clocks run faster it sends so much more
IN_MEMORY_S = 3600  # a record waits in memory for Kafka for so long; none is given up within a drill


class PlayedFleet:
    """Has what the checks ask for: ap_ids, begin_us, end_us, rows_made."""

    def __init__(self, platform, aps: int = 3, now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
                 of: Tape | None = None, bootstrap: str = ""):
        mark = secrets.token_hex(2)
        masters = mac_masters(platform)
        key_id = max(masters)
        self.now_us, self.tape = now_us, of or tape()
        self.ap_ids = [f"soak-{mark}-{i + 1}" for i in range(aps)]
        start_us = now_us()
        self.aps = [PlayedAp(ap_id, secrets.randbits(63), self.tape, start_us, key_id, masters[key_id])
                    for ap_id in self.ap_ids]
        options = platform.kafka.ap(f"soak-{mark}", SITE, plays=aps * TIMES_THE_QUOTA)
        self.producer = Producer(options | {
            "enable.idempotence": True, "compression.type": "lz4", "linger.ms": 20, "log_level": 2,
            "message.timeout.ms": IN_MEMORY_S * 1000, "queue.buffering.max.messages": 4_000_000,
            "queue.buffering.max.kbytes": 4_000_000
        } | ({"bootstrap.servers": bootstrap} if bootstrap else {}))
        self.failed: list[str] = []
        self._error: BaseException | None = None
        self._sending = threading.Lock()  # guards where the access points are
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> "PlayedFleet":
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.send_until(self.now_us())
                self._stop.wait(PAUSE_S)
        except BaseException as error:
            self._error = error
            raise

    def send_until(self, us: int) -> None:
        """Every interval that has ended by then."""
        with self._sending:
            self._send_until(us)
        self.producer.poll(0)

    def _send_until(self, us: int) -> None:
        for ap in self.aps:
            while ap.next_us + self.tape.interval_us <= us and not self._stop.is_set():
                self.send(ap)

    def shift(self, us: int) -> None:
        """The clock of these access points was set on by so much, or back: the next batch has the new time."""
        with self._sending:
            for ap in self.aps:
                ap.start_us += us

    def send(self, ap: PlayedAp) -> None:
        for topic, record, headers in ap.interval():
            self.producer.produce(topic, key=ap.ap_id, value=record, headers=headers, on_delivery=self._delivered)
        if ap.seq % 64 == 0:
            self.producer.poll(0)

    def _delivered(self, error, _message) -> None:
        if error:
            self.failed.append(str(error))

    def stop(self, limit_s: float = 300) -> None:
        """Make no more, and wait until Kafka has acknowledged all."""
        self.abandon()
        if self._error is not None:
            raise self._error
        left = self.producer.flush(limit_s)
        assert not left and not self.failed, f"{left} records unsent, {len(self.failed)} refused: {self.failed[:1]}"

    def abandon(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def begin_us(self, ap_id: str) -> int:
        return self._ap(ap_id).start_us

    def end_us(self, ap_id: str) -> int:
        return self._ap(ap_id).next_us

    def _ap(self, ap_id: str) -> PlayedAp:
        return self.aps[self.ap_ids.index(ap_id)]

    def rows_made(self) -> Counter:
        """Rows made, by (table, ap_id, boot_id, seq)."""
        return Counter({(table, ap.ap_id, boot, seq): n for ap in self.aps
                        for (table, boot, seq), n in ap.ledger.items()})
