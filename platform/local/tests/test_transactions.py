"""Transactions that hang are found, ended as their coordinator decided, and told of; others are left alone."""
import json
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from oal_local import kafka, pki
from oal_local.paths import KAFKA, State
from waiting import until

sys.path.insert(0, str(KAFKA))

import hanging  # noqa: E402
import transactions  # noqa: E402
from broker_requests import RequestError  # noqa: E402
from transaction_requests import Connection  # noqa: E402

TOPIC = "hanging.test"
WELL, COMMITTED, ABORTED, FORGOTTEN, OPEN = range(5)
FORGOTTEN_PRODUCER = 4_000_000
VALUES = [b"1", b"2", b"3"]


class Broker:
    def __init__(self, platform):
        self.client = platform.kafka.client("admin")
        self.admin = AdminClient(self.client)
        self.context = kafka.tls(platform.state, "admin")
        # What the watcher does, it does with its own rights.
        self.watcher = AdminClient(platform.kafka.client(transactions.NAME))
        self.watcher_context = kafka.tls(platform.state, transactions.NAME)
        self.port = platform.settings.ports["kafka"]
        self.state = platform.state

    def settle(self, later_s: float = 0) -> dict[int, dict]:
        """Rows of a round LATER_S from now, by partition of our topic."""
        rows = list(transactions.settle(self.watcher, self.watcher_context, 0, lambda: time.time() + later_s))
        assert {row["topic"] for row in rows} <= {TOPIC}
        return {row["partition"]: row for row in rows}

    def offsets(self, partition: int) -> tuple[int, int]:
        """Last stable offset, end."""
        ends = []
        for level in ("read_committed", "read_uncommitted"):
            consumer = Consumer({**self.client, "group.id": "viewer-hanging", "isolation.level": level})
            ends.append(consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), 20)[1])
            consumer.close()
        return ends[0], ends[1]

    def committed(self, partition: int) -> list[bytes]:
        """What a reader of committed records gets."""
        consumer = Consumer({**self.client, "group.id": "viewer-hanging", "isolation.level": "read_committed",
                             "enable.partition.eof": True})
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        values = []
        while (message := consumer.poll(20)) is not None and not message.error():
            values.append(message.value())
        consumer.close()
        return values

    def hang(self, partition: int, producer_id: int, epoch: int) -> None:
        with Connection("127.0.0.1", self.port, self.context) as broker:
            hanging.write(broker, TOPIC, partition,
                          hanging.batch(producer_id, epoch, VALUES, time.time_ns() // 1_000_000))

    def verify(self, on: bool) -> None:
        """Whether the broker asks a coordinator before it takes a transaction's first batch."""
        name = "transaction.partition.verification.enable"
        entry = ConfigEntry(name, str(on).lower(), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(20)

        def applied():
            return self.admin.describe_configs([resource])[resource].result(20)[name].value == entry.value

        until(applied, f"{name} is {on}")

    def known(self, transactional_id: str):
        with Connection("127.0.0.1", self.port, self.context) as broker:
            one, = broker.known([transactional_id])
            return one

    def producer(self, transactional_id: str) -> Producer:
        producer = Producer({**self.client, "transactional.id": transactional_id})
        producer.init_transactions(60)
        producer.begin_transaction()
        return producer

    def ended(self, transactional_id: str, commit: bool):
        """What the coordinator knows of a transaction that has ended."""
        producer = self.producer(transactional_id)
        producer.produce(TOPIC, b"well", partition=WELL)
        producer.flush(20)
        (producer.commit_transaction if commit else producer.abort_transaction)(60)
        state = "CompleteCommit" if commit else "CompleteAbort"
        return until(lambda: (known := self.known(transactional_id)).state == state and known, state)


@pytest.fixture
def broker(platform):
    made = Broker(platform)
    made.admin.create_topics([NewTopic(TOPIC, 5, 1)])[TOPIC].result(20)
    made.verify(False)
    yield made
    made.verify(True)
    made.admin.delete_topics([TOPIC])[TOPIC].result(20)


def test_the_watcher_administers_nothing(platform):
    admin = AdminClient(platform.kafka.client(transactions.NAME) | {"log_level": 0})
    rule = AclBinding(ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "User:transactions", "*",
                      AclOperation.ALL, AclPermissionType.ALLOW)
    for what in (admin.create_topics([NewTopic("mine", 1, 1)]), admin.create_acls([rule]),
                 admin.delete_topics(["ap.samples.v1"])):
        for future in what.values():
            with pytest.raises(KafkaException) as refusal:
                future.result(20)
            assert "AUTHORIZATION_FAILED" in refusal.value.args[0].name()


def test_hanging_transactions_are_ended_as_their_coordinator_decided(broker, platform):
    for partition, name, commit in ((COMMITTED, "oal-hanging-a", True), (ABORTED, "oal-hanging-b", False)):
        known = broker.ended(name, commit)
        broker.hang(partition, known.producer_id, known.producer_epoch)
    broker.hang(FORGOTTEN, FORGOTTEN_PRODUCER, 0)
    under_way = broker.producer("oal-hanging-c")
    under_way.produce(TOPIC, b"open", partition=OPEN)
    under_way.flush(20)
    for partition in (COMMITTED, ABORTED, FORGOTTEN):
        assert broker.offsets(partition) == (0, 3), "the reader of committed records waits"

    rows = broker.settle()
    assert {n: (row["outcome"], row["records"], row["start_offset"]) for n, row in rows.items()} == {
        COMMITTED: ("committed", 3, 0), ABORTED: ("aborted", 3, 0)}, "the others may still be ended by who began them"
    assert rows[COMMITTED]["transactional_id"] == "oal-hanging-a"
    later = broker.settle(later_s=transactions.LOST_AFTER_S)
    assert {n: (row["outcome"], row["records"]) for n, row in later.items()} == {FORGOTTEN: ("lost", 3)}
    assert not broker.settle(later_s=transactions.LOST_AFTER_S), "each once"

    plain = Producer(broker.client)
    for partition in (COMMITTED, ABORTED, FORGOTTEN):
        plain.produce(TOPIC, b"next", partition=partition)
    plain.flush(20)
    assert broker.committed(COMMITTED) == [*VALUES, b"next"], "nothing that was committed is lost"
    assert broker.committed(ABORTED) == broker.committed(FORGOTTEN) == [b"next"]
    assert broker.offsets(OPEN)[0] == 0
    under_way.commit_transaction(60)
    assert broker.committed(OPEN) == [b"open"]

    told = []
    producer = type("Told", (), {"produce": lambda _, *__, **k: told.append(k["value"]), "flush": lambda *_: 0})()
    for row in rows.values():
        transactions.tell(producer, row)
    assert [row["outcome"] for value in told for row in json.loads(value)["rows"]] == ["committed", "aborted"]


def metadata(brokers: set[int], leaders: list[int]):
    """Of a cluster that lists these brokers, and these leaders of the coordinators' partitions (-1: none)."""
    partitions = {n: SimpleNamespace(leader=leader) for n, leader in enumerate(leaders)}
    topics = {transactions.COORDINATORS: SimpleNamespace(topic=transactions.COORDINATORS, partitions=partitions)}
    return SimpleNamespace(brokers={n: SimpleNamespace(host="127.0.0.1", port=1) for n in brokers}, topics=topics)


def test_a_coordinator_that_is_away_ends_the_round():
    """Kafka's metadata lists only brokers that are there, so what the others coordinate would look forgotten."""
    seen = transactions.without_leader
    assert seen(metadata({1, 2}, [1, 2, 1]), transactions.COORDINATORS) == []
    assert seen(metadata({1, 2}, [1, -1, 3]), transactions.COORDINATORS) == [1, 2]
    assert seen(metadata({1}, []), "not.there") == []
    admin = SimpleNamespace(list_topics=lambda timeout: metadata(set(), [-1]))
    with pytest.raises(RequestError, match="coordinators are away"):
        list(transactions.settle(admin, None, 0))


def test_the_watcher_ends_when_it_is_told_to_though_no_broker_answers(tmp_path):
    """As process 1 of a container it would otherwise be killed, after half a minute of every update."""
    pki.init(State(tmp_path))
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        process = subprocess.Popen(
            [sys.executable, KAFKA / "transactions.py", f"127.0.0.1:{taken.getsockname()[1]}", tmp_path / "pki",
             "--every", "600"], stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr.readline()  # of librdkafka or a round: its handlers stand by now
            process.terminate()
            process.stderr.read()
            assert process.wait() == 0
        finally:
            process.kill()
            process.wait()
