"""Kafka transactions: what is decided in one go is seen whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Producer

from oal_training.online.complaints import Complaints

BUNDLES, EVENTS = "ap.bundles.v1", "platform.events.v1"
TIMEOUT_S = 5.0
REFUSED_S = 2.0  # between attempts of a start that has no right yet
_OF_CONSUMERS = ("group.id", "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms")


class Fenced(Exception):
    """Another process has this trainer's transactional id, or the producer cannot go on: end, and let the process
    manager start anew.
    """


class _Refused(Fenced):
    """The broker grants no right to this transactional id, and the producer that asked is of no more use."""


class Outbox:
    """Transactional producer. `keep_on()` is asked between attempts; when it says no, the attempt is given up."""

    def __init__(
        self,
        options: dict[str, str],
        transactional_id: str,
        keep_on: Callable[[], bool],
        log: Callable[[str], None],
        make: Callable[[dict], Producer] = Producer,
        pause: Callable[[float], None] = time.sleep,
    ):
        self._keep_on, self._log, self._make, self._pause = keep_on, log, make, pause
        options = {key: value for key, value in options.items() if key not in _OF_CONSUMERS}
        self._options = {
            "log_level": 2,
            "error_cb": Complaints(log),
            "linger.ms": 0,
            "transaction.timeout.ms": 30000,
            "compression.type": "zstd",
            "message.max.bytes": 1048576,
            **options,
            "transactional.id": transactional_id,
            "enable.idempotence": True,
        }
        self._producer = make(self._options)

    def open(self) -> bool:
        """Take over the transactional id; what an earlier process left open is ended.

        False when told to stop meanwhile. Waits for the right to it: on a cluster the job that grants it may come
        after the first attempt.
        """
        while True:
            try:
                return self._until_done(lambda: self._producer.init_transactions(TIMEOUT_S)) is not None
            except _Refused:
                if not self._keep_on():
                    return False
                self._pause(REFUSED_S)
                self._producer = self._make(self._options)

    def commit(self, releases: list[tuple[str, bytes]], events: list[bytes]) -> bool:
        """Write releases and event records in one transaction; False when it was aborted: then nothing was written."""
        try:
            self._producer.begin_transaction()
            for key, value in releases:
                self._producer.produce(BUNDLES, key=key, value=value)
            for value in events:
                self._producer.produce(EVENTS, value=value)
            return self._until_done(lambda: self._producer.commit_transaction(TIMEOUT_S)) is not None
        except (_Abort, BufferError) as abort:
            self._log(f"Kafka, transaction aborted: {abort}")
            self._until_done(lambda: self._producer.abort_transaction(TIMEOUT_S))
            return False

    def _until_done(self, call: Callable[[], None]) -> bool | None:
        """True when done, None when told to stop; raises _Abort or Fenced."""
        while True:
            try:
                call()
                return True
            except KafkaException as failure:
                error = failure.args[0]
                if error.txn_requires_abort():
                    raise _Abort(error.str()) from None
                self._log(f"Kafka, transaction: {error.str()}")
                if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                    raise _Refused(error.str()) from None
                if error.fatal() or not error.retriable():
                    raise Fenced(error.str()) from None
                if not self._keep_on():
                    return None


class _Abort(Exception):
    pass
