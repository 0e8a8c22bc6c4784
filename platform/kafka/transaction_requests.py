"""Four of Kafka's requests about transactions, as bytes on a TLS connection to one broker.

librdkafka has none of them, and Kafka's own Admin client can end a transaction only by aborting it: what its
coordinator committed would be lost. Versions asked for are the oldest flexible ones, which every broker since 2.8
knows.
"""
import struct
from dataclasses import dataclass

import broker_requests
from broker_requests import NO_TAGS, array, check, text

# (api key, version)
WRITE_TXN_MARKERS = (27, 1)
DESCRIBE_PRODUCERS = (61, 0)
DESCRIBE_TRANSACTIONS = (65, 0)
LIST_TRANSACTIONS = (66, 0)
NOT_COORDINATOR = 16
TRANSACTIONAL_ID_NOT_FOUND = 105


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that a partition's leader holds as open. `last_ms`: time of its producer's last batch there."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_ms: int
    coordinator_epoch: int
    start_offset: int


@dataclass(frozen=True)
class Known:
    """What the coordinator knows of a transactional id. `partitions` are those of the transaction that is under way."""

    transactional_id: str
    state: str
    start_ms: int
    producer_id: int
    producer_epoch: int
    partitions: frozenset[tuple[str, int]]


class Connection(broker_requests.Connection):
    """With the requests about transactions."""

    def open_transactions(self, partitions: list[tuple[str, int]]) -> list[OpenTransaction]:
        """Of partitions that this broker leads. Partitions whose leader it is no longer are left out."""
        found = []
        answer = self.ask(DESCRIBE_PRODUCERS, array(_topics(partitions)) + NO_TAGS)
        answer.number("i")  # throttled for so many ms

        def topic():
            name = answer.text()
            answer.array(lambda: partition(name))
            answer.tags()

        def partition(name):
            index, _error, _message = answer.number("i"), answer.number("h"), answer.text()
            answer.array(lambda: producer(name, index))
            answer.tags()

        def producer(name, index):
            one = OpenTransaction(name, index, *(answer.number(form) for form in "qiiqiq"))
            answer.tags()
            if one.start_offset >= 0:
                found.append(one)

        answer.array(topic)
        return found

    def transactional_ids(self, producer_ids: list[int]) -> list[str]:
        """Of these producers, as far as this broker is their coordinator."""
        ids = array(struct.pack(">q", number) for number in producer_ids)
        answer = self.ask(LIST_TRANSACTIONS, array(()) + ids + NO_TAGS)
        answer.number("i")
        check(answer.number("h"), "ListTransactions")
        answer.array(answer.text)  # states that it does not know

        def listing():
            name, _producer, _state = answer.text(), answer.number("q"), answer.text()
            answer.tags()
            return name

        return answer.array(listing)

    def known(self, transactional_ids: list[str]) -> list[Known]:
        """What this broker knows; ids whose coordinator it is not (or no longer) are left out."""
        answer = self.ask(DESCRIBE_TRANSACTIONS, array(map(text, transactional_ids)) + NO_TAGS)
        answer.number("i")

        def topic():
            name = answer.text()
            partitions = answer.array(lambda: answer.number("i"))
            answer.tags()
            return [(name, partition) for partition in partitions]

        def one():
            error, name, state = answer.number("h"), answer.text(), answer.text()
            _timeout, start, producer, epoch = (answer.number(form) for form in "iqqh")
            topics = answer.array(topic)
            answer.tags()
            if error in (NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND):
                return None
            check(error, f"DescribeTransactions of {name}")
            return Known(name, state, start, producer, epoch, frozenset(p for each in topics for p in each))

        return [each for each in answer.array(one) if each]

    def end(self, one: OpenTransaction, commit: bool) -> None:
        """Write the end marker that the partition lacks. This broker must lead the partition."""
        epoch = struct.pack(">qh?", one.producer_id, one.producer_epoch, commit)
        marker = epoch + array(_topics([(one.topic, one.partition)])) + struct.pack(">i", max(0, one.coordinator_epoch))
        answer = self.ask(WRITE_TXN_MARKERS, array([marker + NO_TAGS]) + NO_TAGS)

        def partition():
            _index, error = answer.number("i"), answer.number("h")
            answer.tags()
            check(error, f"WriteTxnMarkers to {one.topic}-{one.partition}")

        def topic():
            answer.text()
            answer.array(partition)
            answer.tags()

        def each():
            answer.number("q")
            answer.array(topic)
            answer.tags()

        answer.array(each)


def _topics(partitions: list[tuple[str, int]]) -> list[bytes]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return [
        text(topic) + array(struct.pack(">i", number) for number in numbers) + NO_TAGS
        for topic, numbers in by_topic.items()
    ]
