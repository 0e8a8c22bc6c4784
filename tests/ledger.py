"""Counts of rows by (table, ap_id, boot_id, seq): what Kafka holds, decoded by the contract's reference codec, and what
ClickHouse holds.

`batch` counts accepted batches, of which the three topics have one each with the same seq.
"""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Consumer, KafkaError, TopicPartition
from oal_schema.codec import contract, decode

TOPICS = ("ap.samples.v1", "ap.packets.v1", "ap.events.v1")


def read_topic(platform, topic: str):
    """Every record of a topic that a reader of committed transactions sees, from the beginning to the end as it is now.
    """
    consumer = Consumer(
        platform.kafka.client("viewer") | {
            "group.id": "viewer-test", "enable.auto.commit": False, "enable.partition.eof": True,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest"
        })
    partitions = [TopicPartition(topic, p, 0) for p in consumer.list_topics(topic, timeout=30).topics[topic].partitions]
    consumer.assign(partitions)
    open_ones = {p.partition for p in partitions}
    try:
        while open_ones:
            message = consumer.poll(30)
            assert message is not None, f"no more records of {topic} within 30 s, and no end of partitions {open_ones}"
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                open_ones.discard(message.partition())
                continue
            yield message
    finally:
        consumer.close()


def kafka_ledger(platform, ap_ids) -> Counter:
    """Rows in the records of these APs. A batch that Kafka holds twice counts once, as in ClickHouse."""
    rows: Counter = Counter()
    for number, topic in enumerate(TOPICS):
        seen = set()
        for message in read_topic(platform, topic):
            ap_id = message.key().decode()
            if ap_id not in ap_ids:
                continue
            batch = decode(number, message.value(), ap_id)
            identity = ap_id, batch.header["boot_id"], batch.header["seq"]
            if identity in seen:
                continue
            seen.add(identity)
            rows["batch", *identity] += 1
            for table, of_table in batch.tables.items():
                if of_table:
                    rows[table, *identity] += len(of_table)
    return rows


def clickhouse_ledger(platform, ap_ids) -> Counter:
    """Rows of these APs in the raw tables and in `batch`."""
    rows: Counter = Counter()
    names = ", ".join(f"'{ap_id}'" for ap_id in ap_ids)
    for table, seq in [("batch", "seq"), *((t.name, "batch_seq") for t in contract().tables)]:
        answer = platform.clickhouse.query(
            f"SELECT ap_id, boot_id, {seq}, count() FROM oal.{table} WHERE ap_id IN ({names}) GROUP BY 1, 2, 3")
        for line in answer.splitlines():
            ap_id, boot_id, number, count = line.split("\t")
            rows[table, ap_id, int(boot_id), int(number)] = int(count)
    return rows


def differences(expected: Counter, found: Counter) -> dict[str, tuple[int, int, int, int]]:
    """By table: rows expected, rows found, rows lost, rows too many. Only tables that differ."""
    tables: dict[str, list[int]] = {}
    for key in expected | found:
        entry = tables.setdefault(key[0], [0, 0, 0, 0])
        entry[0] += expected[key]
        entry[1] += found[key]
        entry[2] += max(0, expected[key] - found[key])
        entry[3] += max(0, found[key] - expected[key])
    return {table: tuple(entry) for table, entry in tables.items() if entry[2] or entry[3]}


def totals(ledger: Counter) -> dict[str, int]:
    out: Counter = Counter()
    for key, rows in ledger.items():
        out[key[0]] += rows
    return dict(sorted(out.items()))
