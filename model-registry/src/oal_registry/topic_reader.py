"""Records of `ap.bundles.v1`: all of them at first, then what came since."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

TOPIC = "ap.bundles.v1"
GROUP = "model-registry"  # names the reader; it takes its partitions itself and commits nothing
TIMEOUT_S = 20
Record = tuple[str, bytes | None]  # key, value


class TopicReader:
    """For one thread. `kafka`: librdkafka's options. KafkaException when Kafka does not do its part."""

    def __init__(self, kafka: dict):
        self._options = kafka
        self._consumer: Consumer | None = None

    def read(self) -> list[Record]:
        """All committed records, to the end of the topic. TimeoutError when nothing comes."""
        self.close()
        self._consumer = consumer = Consumer(
            {
                **self._options,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 2,
            }
        )
        topic = consumer.list_topics(TOPIC, TIMEOUT_S).topics[TOPIC]
        if topic.error is not None:
            raise KafkaException(topic.error)
        left, found = set(topic.partitions), []
        consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in left])
        deadline = time.monotonic() + TIMEOUT_S
        while left:
            records, ended, any_came = self._some(1.0)
            found += records
            left -= ended
            if any_came:
                deadline = time.monotonic() + TIMEOUT_S
            elif time.monotonic() > deadline:
                raise TimeoutError(f"{TOPIC} was not read to its end: nothing came for {TIMEOUT_S} s")
        return found

    def more(self) -> list[Record]:
        """What has come since, without waiting."""
        found, any_came = [], self._consumer is not None
        while any_came:
            records, _, any_came = self._some(0)
            found += records
        return found

    def close(self) -> None:
        """Read no more until `read`."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _some(self, wait_s: float) -> tuple[list[Record], set[int], bool]:
        """(records, partitions of which this is the end, whether there was anything)."""
        messages = self._consumer.consume(500, wait_s)
        records, ended = [], set()
        for message in messages:
            if message.error() is None:
                records.append(((message.key() or b"").decode(errors="replace"), message.value()))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(message.error())
        return records, ended, bool(messages)
