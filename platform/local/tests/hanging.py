"""Makes a transaction that hangs: a batch of a transaction that its coordinator does not have under way."""
import struct

from broker_requests import NO_TAGS, Connection, array, text, uvarint

PRODUCE = (0, 9)
TRANSACTIONAL = 0x10


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def zigzag(number: int) -> bytes:
    return uvarint(number << 1 if number >= 0 else (-number << 1) - 1)


def batch(producer_id: int, epoch: int, values: list[bytes], at_ms: int) -> bytes:
    """A record batch, version 2."""
    records = b""
    for i, value in enumerate(values):
        record = b"\0" + zigzag(0) + zigzag(i) + zigzag(-1) + zigzag(len(value)) + value + zigzag(0)
        records += zigzag(len(record)) + record
    body = struct.pack(">hiqqqhii", TRANSACTIONAL, len(values) - 1, at_ms, at_ms, producer_id, epoch, 0, len(values))
    rest = struct.pack(">ibI", 0, 2, crc32c(body + records)) + body + records
    return struct.pack(">qi", 0, len(rest)) + rest


def write(broker: Connection, topic: str, partition: int, data: bytes) -> None:
    """The broker must not verify with the coordinator (transaction.partition.verification.enable)."""
    one = struct.pack(">i", partition) + uvarint(len(data) + 1) + data + NO_TAGS
    topics = array([text(topic) + array([one]) + NO_TAGS])
    answer = broker.ask(PRODUCE, text("oal-hanging") + struct.pack(">hi", -1, 20000) + topics + NO_TAGS)
    assert answer.uvarint() == 2 and answer.text() == topic and answer.uvarint() == 2
    assert (answer.number("i"), answer.number("h")) == (partition, 0)
