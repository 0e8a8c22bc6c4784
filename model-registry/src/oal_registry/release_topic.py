"""Releases in force, and their changes: `ap.bundles.v1` and its event rows in `platform.events.v1`, in one Kafka
transaction.

One writer: the transactional id fences a second registry. So what is in force is read once, at the start, and known
from then on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from oal_schema import release
from oal_schema.bundle_law import RWND_FAIR
from oal_schema.nodes import BundleError
from oal_schema.release import Release

from oal_registry.errors import RegistryError
from oal_registry.package import Package

BUNDLES, EVENTS = "ap.bundles.v1", "platform.events.v1"
SLOTS = ("champion", "canary", "challenger")
TRANSACTIONAL_ID = "model-registry"
GROUP = "model-registry"  # names the reader; it takes its partitions itself and commits nothing
TIMEOUT_S = 20
Key = tuple[str, str]  # slot, scope


class KafkaTrouble(RegistryError):
    """Kafka does not do what was asked; open again and look."""


class Fenced(RegistryError):
    """Another registry has taken over."""


class ReleaseTopic:
    """Not for several threads. What is in force of each policy, in the registry's slots."""

    def __init__(self, kafka: dict, now_us: Callable[[], int] = lambda: time.time_ns() // 1000):
        self._options, self._now_us = kafka, now_us
        self._producer: Producer | None = None
        self._in_force: dict[str, dict[Key, Release]] = {}  # by policy
        self.unreadable = 0

    @property
    def is_open(self) -> bool:
        """May it be written to?"""
        return self._producer is not None

    def open(self) -> None:
        """End what an earlier writer left unfinished, shut it out, and read what is in force.

        KafkaTrouble when Kafka is not there.
        """
        self.close()
        producer = Producer(
            {
                **self._options,
                "transactional.id": TRANSACTIONAL_ID,
                "enable.idempotence": True,
                "linger.ms": 0,
                "transaction.timeout.ms": 30000,
                "message.max.bytes": 1048576,
                "log_level": 2,
            }
        )
        try:
            producer.init_transactions(TIMEOUT_S)
            self._in_force = self.read()
        except KafkaException as error:
            raise KafkaTrouble(f"Kafka: cannot begin as {TRANSACTIONAL_ID}: {error.args[0].str()}") from None
        self._producer = producer

    def of(self, policy: str) -> dict[Key, Release]:
        """Releases in force of a policy, by (slot, scope)."""
        return self._in_force.setdefault(policy, {})

    def policies(self) -> list[str]:
        """Policies of which something is in force, in order of their names."""
        return sorted(policy for policy, releases in self._in_force.items() if releases)

    def every(self) -> list[Release]:
        """Releases in force, of all policies."""
        return [release for releases in self._in_force.values() for release in releases.values()]

    def close(self) -> None:
        """Write no more until `open`; what is in force stays known."""
        self._producer = None

    def read(self) -> dict[str, dict[Key, Release]]:
        """What is in force of each policy by the topic, read to its end.

        Records that are no releases are counted in `unreadable`. KafkaTrouble when nothing comes.
        """
        consumer = Consumer(
            {
                **self._options,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 2,
            }
        )
        latest: dict[str, bytes | None] = {}  # by key of the record
        try:
            topic = consumer.list_topics(BUNDLES, TIMEOUT_S).topics[BUNDLES]
            if topic.error is not None:
                raise KafkaException(topic.error)
            left = set(topic.partitions)
            consumer.assign([TopicPartition(BUNDLES, partition, OFFSET_BEGINNING) for partition in left])
            deadline = time.monotonic() + TIMEOUT_S
            while left:
                messages = consumer.consume(500, 1.0)
                if messages:
                    deadline = time.monotonic() + TIMEOUT_S
                elif time.monotonic() > deadline:
                    raise KafkaTrouble(f"Kafka: {BUNDLES} was not read to its end: nothing came for {TIMEOUT_S} s")
                for message in messages:
                    if message.error() is not None:
                        if message.error().code() != KafkaError._PARTITION_EOF:
                            raise KafkaException(message.error())
                        left.discard(message.partition())
                        continue
                    name = (message.key() or b"").decode(errors="replace")
                    if name.partition("/")[0] in SLOTS:
                        latest[name] = message.value()
        finally:
            consumer.close()
        found: dict[str, dict[Key, Release]] = {}
        self.unreadable = 0
        for name, value in latest.items():
            if not value:
                continue
            try:
                one = release.parse(name, value)
                one.bundle()  # raises for one that cannot be opened
                found.setdefault(one.policy, {})[one.slot, one.scope] = one
            except (release.ReleaseError, BundleError):
                # Whoever wrote it: APs do not get it either. The next release of this slot and scope replaces it.
                self.unreadable += 1
        return found

    def next_serial(self) -> int:
        """The clock in µs, or one more than the greatest serial in force if the clock went back."""
        return max([self._now_us(), *(r.serial + 1 for r in self.every())])

    def release(
        self,
        slot: str,
        scope: str,
        package: Package,
        *,
        model: str,
        version: int,
        run_id: str,
        pinned: bool,
        reason: str,
        rollout: dict | None,
        rank: int = 0,
        variant_of: str = "",
        promoted_by: str = "",
    ) -> Release:
        """Put a bundle of the policy that it says in force. `rank`, `variant_of`, `promoted_by`: as of a
        `oal_schema.release.Release`.
        """
        created = self._now_us()
        name, value = release.record(
            slot,
            scope,
            package.signed,
            source="registry",
            model=model,
            version=version,
            run_id=run_id,
            feature_hash=package.feature_hash,
            created_us=created,
            pinned=pinned,
            reason=reason,
            rollout=rollout,
            rank=rank,
            variant_of=variant_of,
            promoted_by=promoted_by,
        )
        self._commit(
            name,
            value,
            {
                "ts": created,
                "source": "registry",
                "slot": slot,
                "scope": scope,
                "action": "release",
                "model": model,
                "version": version,
                "bundle": package.id,
                "serial": package.serial,
                "bytes": len(package.signed),
                "nodes": package.nodes,
                "feature_hash": package.feature_hash,
                "run_id": run_id,
                "reason": reason,
                "policy": package.policy.name,
                "policy_version": package.policy.version,
            },
        )
        done = self.of(package.of_policy)[slot, scope] = release.parse(name, value)
        return done

    def withdraw(self, slot: str, scope: str, reason: str, policy: str = RWND_FAIR) -> None:
        """Take back what a slot holds of a policy for a scope."""
        gone = self.of(policy)[slot, scope]
        name, value = release.withdrawal(slot, scope, policy)
        self._commit(
            name,
            value,
            {
                "ts": self._now_us(),
                "source": "registry",
                "slot": slot,
                "scope": scope,
                "action": "withdraw",
                "model": gone.model,
                "version": gone.version,
                "bundle": 0,
                "serial": gone.serial,
                "bytes": 0,
                "nodes": 0,
                "feature_hash": gone.feature_hash,
                "run_id": gone.run_id,
                "reason": reason,
                "policy": "",
                "policy_version": 0,
            },
        )
        del self.of(policy)[slot, scope]

    def _commit(self, key: str, value: bytes | None, row: dict) -> None:
        producer = self._producer
        if producer is None:
            raise KafkaTrouble("Kafka: not open")
        refused: list[KafkaError] = []

        def delivered(error, _message):
            if error is not None:
                refused.append(error)

        try:
            producer.begin_transaction()
            producer.produce(BUNDLES, key=key, value=value, on_delivery=delivered)
            producer.produce(
                EVENTS,
                key=key,
                value=json.dumps({"table": "release", "rows": [row]}, separators=(",", ":")),
                on_delivery=delivered,
            )
            producer.commit_transaction(TIMEOUT_S)
        except (KafkaException, BufferError) as error:
            # Whether it was committed is not known from here: open() ends the transaction one way or the other, and
            # reads which.
            self.close()
            cause = error.args[0] if isinstance(error, KafkaException) else None
            if cause is not None and cause.code() in (
                KafkaError._FENCED,
                KafkaError.INVALID_PRODUCER_EPOCH,
                KafkaError.PRODUCER_FENCED,
            ):
                raise Fenced("Kafka: another model registry runs with this cluster; stop one of them") from None
            detail = refused[0].str() if refused else cause.str() if cause is not None else str(error)
            raise KafkaTrouble(f"Kafka: release {key} was not written: {detail}") from None
