"""Releases in force, and their changes: `ap.bundles.v1` and its event rows in `platform.events.v1`, in one Kafka
transaction.

One writer: the transactional id fences a second registry. So what is in force is read at the start, and known from then
on. What others write into its slots, an operator's bundle or a forged one, is looked at in every pass.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Producer
from oal_schema import release
from oal_schema.bundle_law import RWND_FAIR
from oal_schema.keys import TrustedKey
from oal_schema.nodes import BundleError
from oal_schema.release import Release

from oal_registry.errors import NotPackagable, RegistryError
from oal_registry.package import Package
from oal_registry.topic_reader import TIMEOUT_S, TOPIC, TopicReader
from oal_registry.verified import SLOTS, ClockBehind, Key, VerifiedReleases

__all__ = ["SLOTS", "Fenced", "KafkaTrouble", "Key", "ReleaseTopic"]

BUNDLES, EVENTS = TOPIC, "platform.events.v1"
TRANSACTIONAL_ID = "model-registry"


class KafkaTrouble(RegistryError):
    """Kafka does not do what was asked; open again and look."""


class Fenced(RegistryError):
    """Another registry has taken over."""


class ReleaseTopic:
    """Not for several threads. What is in force of each policy, in the registry's slots."""

    def __init__(
        self,
        kafka: dict,
        trusted: Callable[[], dict[int, TrustedKey]],
        own: int = 0,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ):
        """`trusted`: keys whose releases count; `own`: id of the key that signs, 0 for who only reads."""
        self._options, self._now_us = kafka, now_us
        self._trusted, self._own = trusted, own
        self._producer: Producer | None = None
        self._reader = TopicReader(kafka)
        self._verified = VerifiedReleases(trusted, own, now_us)
        self._written: Counter[tuple[str, bytes | None]] = Counter()  # here, and not yet seen on the topic

    @property
    def is_open(self) -> bool:
        """May it be written to?"""
        return self._producer is not None

    @property
    def refused(self) -> dict[str, tuple[str, str]]:
        """Records in the topic that do not count: (reason, what is wrong) by key."""
        return self._verified.refused

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
        except KafkaException as error:
            raise KafkaTrouble(f"Kafka: cannot begin as {TRANSACTIONAL_ID}: {error.args[0].str()}") from None
        self.read()
        self._producer = producer

    def read(self) -> dict[str, dict[Key, Release]]:
        """What is in force of each policy by the topic, read to its end. KafkaTrouble when nothing comes, or when this
        machine's clock is behind what its own key signed.
        """
        verified = VerifiedReleases(self._trusted, self._own, self._now_us)
        try:
            for name, value in dict(self._reader.read()).items():
                verified.take(name, value)
        except KafkaException as error:
            raise KafkaTrouble(f"Kafka: {BUNDLES} cannot be read: {error.args[0].str()}") from None
        except (TimeoutError, ClockBehind) as error:
            raise KafkaTrouble(f"Kafka: {error}") from None
        self._verified, self._written = verified, Counter()
        return verified.in_force

    def look(self) -> list[tuple[str, str]]:
        """Take what others wrote since; (key, reason) of each record that does not count. KafkaTrouble as `read`."""
        refused = []
        try:
            for name, value in self._reader.more():
                if self._written[name, value]:
                    self._written[name, value] -= 1
                elif reason := self._verified.take(name, value):
                    refused.append((name, reason))
        except KafkaException as error:
            self.close()
            raise KafkaTrouble(f"Kafka: {BUNDLES} cannot be read: {error.args[0].str()}") from None
        except ClockBehind as error:
            self.close()
            raise KafkaTrouble(f"Kafka: {error}") from None
        return refused

    def of(self, policy: str) -> dict[Key, Release]:
        """Releases in force of a policy, by (slot, scope)."""
        return self._verified.of(policy)

    def policies(self) -> list[str]:
        """Policies of which something is in force, in order of their names."""
        return sorted(policy for policy, releases in self._verified.in_force.items() if releases)

    def every(self) -> list[Release]:
        """Releases in force, of all policies."""
        return self._verified.every()

    def close(self) -> None:
        """Write no more until `open`; what is in force stays known."""
        self._producer = None
        self._reader.close()

    def next_serial(self) -> int:
        """Serial of the next bundle: newer than what any AP may hold, of every slot (`oal_schema.serials`)."""
        return self._verified.next_serial()

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

        NotPackagable when no reader would accept it: this registry's key may not sign it.
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
        try:
            done = self._verified.check(name, value)
        except (release.ReleaseError, BundleError) as error:
            raise NotPackagable(f"{error}; no reader would accept it") from None
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
        self._verified.refused.pop(name, None)
        self.of(package.of_policy)[slot, scope] = done
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

    def tell(self, table: str, key: str, records: list[list[dict]]) -> None:
        """Rows of a table, each list a record of `platform.events.v1`, in one transaction. KafkaTrouble, Fenced."""
        if records:
            self._transact(f"rows of {table}", [(EVENTS, key, _event(table, rows)) for rows in records])

    def _commit(self, key: str, value: bytes | None, row: dict) -> None:
        self._transact(f"release {key}", [(BUNDLES, key, value), (EVENTS, key, _event("release", [row]))])
        self._written[key, value] += 1

    def _transact(self, what: str, records: list[tuple]) -> None:
        """(topic, key, value) of each, all or none."""
        producer = self._producer
        if producer is None:
            raise KafkaTrouble("Kafka: not open")
        refused: list[KafkaError] = []

        def delivered(error, _message):
            if error is not None:
                refused.append(error)

        try:
            producer.begin_transaction()
            for topic, key, value in records:
                producer.produce(topic, key=key, value=value, on_delivery=delivered)
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
            raise KafkaTrouble(f"Kafka: {what} was not written: {detail}") from None


def _event(table: str, rows: list[dict]) -> str:
    return json.dumps({"table": table, "rows": rows}, separators=(",", ":"), allow_nan=False)
