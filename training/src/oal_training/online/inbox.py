"""Kafka consumers: training items, from as far back as the windows reach; releases, all of them."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from oal_schema import item

from oal_training.online.complaints import Complaints

ITEMS, BUNDLES = item.topic(), "ap.bundles.v1"
RENEW_S = (0.5, 30.0)  # before a new consumer, after one that had a fatal error: doubled each time, up to the second
#: librdkafka tells the callback so, and does not call its error fatal
FATAL = (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID)
STEADY_S = 60.0  # a consumer that went on for so long had no part in the failures before
SESSION_S = 10  # without a sign of life for so long, the group gives this trainer's partitions to another
GROUP = "trainer"  # unless the configuration has another group.id


class ItemReader:
    """The trainer's share of `training.items.v1`.

    Committed offsets are for lag monitoring; what counts is their metadata, `{"from": OFFSET, "items": N}`: the oldest
    item that was in a window of N. A new owner of a partition reads from there, or from the start of the topic when
    nothing fits, and fits no tree before it has caught up. `lost` is called with partitions that another trainer has
    now.

    A consumer that had a fatal error (the group fenced it) never reads again: a new one takes its place, and what the
    old one had is lost and read anew. Meanwhile `fatal` says why.
    """

    def __init__(
        self,
        options: dict[str, str],
        instance: str,
        window_items: int,
        lost: Callable[[list[int]], None],
        log: Callable[[str], None],
    ):
        self._window_items, self._lost, self._log = window_items, lost, log
        self._session_s = int(options.get("session.timeout.ms", SESSION_S * 1000)) / 1000
        self._complain = Complaints(log)
        self.fatal, self.renewals = "", 0
        self._born = self._renew_at = float("-inf")
        self._wait_s = RENEW_S[0]
        self._make = lambda: Consumer(
            {
                "log_level": 2,
                "error_cb": self._error,
                "session.timeout.ms": SESSION_S * 1000,
                "heartbeat.interval.ms": 2000,
                "fetch.wait.max.ms": 100,
                "group.id": GROUP,
                **options,
                "group.instance.id": instance,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "cooperative-sticky",
            }
        )
        self._consumer: Consumer | None = self._make()
        self.partitions = 1  # of the topic
        self.joined = False
        self._polled = time.monotonic()
        self.catching_up: set[int] = set()
        self.positions: dict[int, int] = {}  # next offset by partition

    def subscribe(self) -> None:
        """Join the group."""
        self._consumer.subscribe([ITEMS], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)

    def poll(self, timeout_s: float) -> Iterator:
        """Messages that have come."""
        if self._consumer is None and not self._renew(timeout_s):
            return
        messages = self._consumer.consume(2000, timeout_s)
        self._polled = time.monotonic()
        self.joined = self.joined or bool(self._consumer.memberid())
        for message in messages:
            error = message.error()
            if error is None:
                if message.partition() in self.positions:
                    self.positions[message.partition()] = message.offset() + 1
                    yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                if message.partition() in self.catching_up:
                    self.catching_up.discard(message.partition())
                    self._log(f"partition {message.partition()}: caught up at offset {message.offset()}")
            else:
                self._error(error)
        if self.fatal:
            self._give_up()

    def _error(self, error: KafkaError) -> None:
        """Of librdkafka, from within `consume`."""
        if error.fatal() or error.code() in FATAL:
            self.fatal = error.str()
        self._complain(error)

    def _give_up(self) -> None:
        """Let go of a consumer that had a fatal error. It is not closed: it has no group to leave."""
        now = time.monotonic()
        if now - self._born > STEADY_S:
            self._wait_s = RENEW_S[0]
        self._renew_at, self._wait_s = now + self._wait_s, min(2 * self._wait_s, RENEW_S[1])
        self._log(f"Kafka: this consumer cannot go on ({self.fatal}); a new one reads anew")
        self._consumer, self.joined = None, False
        gone = list(self.positions)
        self.positions.clear()
        self.catching_up.clear()
        self._lost(gone)

    def _renew(self, timeout_s: float) -> bool:
        """Make the next consumer, when it is time; wait for `timeout_s` at most."""
        now = time.monotonic()
        if now < self._renew_at:
            time.sleep(min(timeout_s, self._renew_at - now))
            return False
        self.fatal, self._born = "", now
        self._consumer = self._make()
        self.renewals += 1
        self.subscribe()
        return True

    def still_mine(self) -> bool:
        """False after a pause so long that another trainer may have the partitions; `poll` will tell.

        (Sending the offsets with the transaction would let the broker judge, but librdkafka 2.16's
        send_offsets_to_transaction waits for ever after the broker was killed.)
        """
        return time.monotonic() - self._polled < self._session_s * 0.7

    def commit(self, oldest: dict[int, int]) -> None:
        """Commit positions, without waiting. `oldest`: offset of the oldest item in any window, by partition."""
        offsets = [
            TopicPartition(
                ITEMS,
                partition,
                position,
                metadata=json.dumps({"from": oldest.get(partition, position), "items": self._window_items}),
            )
            for partition, position in self.positions.items()
            if position >= 0 and partition not in self.catching_up
        ]
        if offsets and self._consumer is not None:
            try:
                self._consumer.commit(offsets=offsets, asynchronous=True)
            except KafkaException as error:
                self._log(f"Kafka: offsets not committed: {error.args[0].str()}")

    def lag(self) -> int:
        """Records not yet read, by the broker's last answer."""
        total = 0
        for partition, position in self.positions.items():
            high = self._consumer.get_watermark_offsets(TopicPartition(ITEMS, partition), cached=True)[1]
            total += max(0, high - position) if position >= 0 and high >= 0 else 0
        return total

    def close(self) -> None:
        """Stop; a static member's partitions are given away when its session ends, or it takes them up again."""
        if self._consumer is not None:
            self._consumer.close()

    def owns(self, partition: int | None, ap_id: str) -> bool:
        """Is the AP this trainer's? `partition`: of its items; None: none was seen, and the AP's name decides which of
        the trainers minds it.
        """
        return (zlib.crc32(ap_id.encode()) % self.partitions if partition is None else partition) in self.positions

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self.partitions = max(1, len(consumer.list_topics(ITEMS, timeout=30).topics[ITEMS].partitions))
        starts = (
            [TopicPartition(ITEMS, p.partition, self._start(p)) for p in consumer.committed(partitions, timeout=30)]
            if partitions
            else []
        )
        for start in starts:
            self.positions[start.partition] = start.offset
            self.catching_up.add(start.partition)
            self._log(
                f"partition {start.partition}: mine, reading from"
                f" {'the start' if start.offset < 0 else f'offset {start.offset}'}"
            )
        consumer.incremental_assign(starts)

    def _start(self, committed: TopicPartition) -> int:
        try:
            kept = json.loads(committed.metadata or "null")
            if committed.offset >= 0 and kept["items"] >= self._window_items and 0 <= kept["from"] <= committed.offset:
                return kept["from"]
        except (ValueError, KeyError, TypeError):
            pass
        return OFFSET_BEGINNING

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = [p.partition for p in partitions]
        for number in numbers:
            self.positions.pop(number, None)
            self.catching_up.discard(number)
        consumer.incremental_unassign(partitions)
        if numbers:
            self._log(f"partitions {numbers}: another's now")
            self._lost(numbers)


class ReleaseReader:
    """Every record of `ap.bundles.v1`, from its start; outside any group."""

    def __init__(self, options: dict[str, str], instance: str, log: Callable[[str], None]):
        self._consumer = Consumer(
            {
                "log_level": 2,
                "error_cb": Complaints(log),
                "fetch.wait.max.ms": 100,
                **options,
                "group.id": f"{GROUP}-bundles-{instance}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
            }
        )
        self._behind: set[int] | None = None

    def open(self) -> bool:
        """Start reading; False while the broker does not answer."""
        try:
            topic = self._consumer.list_topics(BUNDLES, timeout=5).topics[BUNDLES]
        except KafkaException:
            return False
        if topic.error is not None or not topic.partitions:
            return False
        self._behind = set(topic.partitions)
        self._consumer.assign([TopicPartition(BUNDLES, p, OFFSET_BEGINNING) for p in topic.partitions])
        return True

    @property
    def caught_up(self) -> bool:
        """Has everything been read once?"""
        return self._behind is not None and not self._behind

    def poll(self, timeout_s: float) -> Iterable[tuple[bytes | None, bytes | None]]:
        """Keys and values that have come."""
        for message in self._consumer.consume(500, timeout_s):
            if message.error() is None:
                yield message.key(), message.value()
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._behind.discard(message.partition())

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()
