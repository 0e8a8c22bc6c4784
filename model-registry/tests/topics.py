"""What the registry wrote to Kafka, as other services read it: committed records only."""

from __future__ import annotations

import json

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from oal_schema import release
from waiting import until


class Topics:
    def __init__(self, options: dict):
        self._consumer = Consumer(
            {
                **options,
                "group.id": "viewer-registry-tests",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        names = ("ap.bundles.v1", "platform.events.v1")

        def listed():
            """A broker that has just started does not list at once what somebody may read."""
            known = self._consumer.list_topics(timeout=20).topics
            return all(name in known for name in names) and known

        topics = until(listed, "both topics are listed")
        self._consumer.assign(
            [
                TopicPartition(name, p, OFFSET_BEGINNING)
                for name in names
                for p in topics[name].partitions
            ]
        )
        self.history: list[release.Release] = []
        self.rows: list[dict] = []

    def read(self) -> None:
        """Take in what has arrived."""
        while messages := self._consumer.consume(200, 0.05):
            for message in messages:
                assert message.error() is None, message.error()
                if message.topic() == "ap.bundles.v1":
                    self.history.append(release.parse(message.key(), message.value()))
                else:
                    value = json.loads(message.value())
                    assert value["table"] == "release"
                    self.rows += value["rows"]

    def in_force(self, slot: str, scope: str = "fleet", policy: str = "rwnd-fair") -> release.Release | None:
        """The latest release of a policy; None when there is none or it was withdrawn."""
        self.read()
        wanted = slot, scope, policy
        latest = next((r for r in reversed(self.history) if (r.slot, r.scope, r.policy) == wanted), None)
        return latest if latest is not None and latest.signed is not None else None

    def close(self) -> None:
        self._consumer.close()


def released(
    topics: Topics, slot: str, version: int, scope: str = "fleet", policy: str = "rwnd-fair"
) -> release.Release:
    """Wait until this version is in force there."""

    def there():
        now = topics.in_force(slot, scope, policy)
        return now if now is not None and now.version == version else None

    return until(there, f"{slot}/{scope} is version {version}")
