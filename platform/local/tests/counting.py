"""An AP that writes numbered records for the counting job, and the check of what the job made of them."""
import threading
from collections import defaultdict

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

KEYS = 16


class Writer(threading.Thread):
    """Writes "key,number" until stopped; `written` are those the broker took."""

    def __init__(self, options: dict, prefix: str):
        super().__init__(daemon=True)
        self.producer = Producer(
            {**options, "enable.idempotence": True, "message.timeout.ms": 300000, "linger.ms": 5, "log_level": 0})
        self.prefix = prefix
        self.written, self.failed = [], []
        self.stopping = threading.Event()

    def run(self):
        number = 0
        while not self.stopping.wait(0.01):
            for _ in range(4):
                line = f"{self.prefix}{number % KEYS},{number}"
                self.producer.produce("ap.samples.v1", line.encode(), key=line.split(",")[0].encode(),
                                      on_delivery=self._delivered)
                number += 1
            self.producer.poll(0)
        self.left = self.producer.flush(120)

    def _delivered(self, error, message):
        (self.failed if error else self.written).append(message.value().decode())

    def finish(self) -> list[str]:
        self.stopping.set()
        self.join()
        assert self.left == 0 and not self.failed, f"{self.left} records unsent, failed: {self.failed[:3]}"
        return self.written


class Results:
    """What the job has committed for this writer's keys."""

    def __init__(self, options: dict, prefix: str):
        self.prefix = prefix
        self.consumer = Consumer({**options, "group.id": f"viewer-{prefix}", "isolation.level": "read_committed",
                                  "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0})
        count = len(self.consumer.list_topics("training.items.v1", timeout=60).topics["training.items.v1"].partitions)
        self.consumer.assign([TopicPartition("training.items.v1", partition, 0) for partition in range(count)])
        self.lines = []

    def more(self) -> int:
        """Read what has come; how many lines there are now."""
        for message in self.consumer.consume(5000, timeout=0.2):
            if message.error() is None:
                line = message.value().decode()
                if line.startswith(self.prefix):
                    self.lines.append(line)
            elif message.error().code() != KafkaError._PARTITION_EOF and not message.error().retriable() \
                    and message.error().code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                raise AssertionError(message.error())
        return len(self.lines)

    def check(self, written: list[str]) -> None:
        """Each record once, and for each key the counts 1, 2, 3, …: no state lost, none counted twice."""
        assert sorted(line.rsplit(",", 1)[0] for line in self.lines) == sorted(written)
        counts = defaultdict(list)
        for line in self.lines:
            key, _, count = line.split(",")
            counts[key].append(int(count))
        assert counts
        for key, seen in counts.items():
            assert sorted(seen) == list(range(1, len(seen) + 1)), f"{key}: the job's state was lost or counted twice"

    def close(self):
        self.consumer.close()
