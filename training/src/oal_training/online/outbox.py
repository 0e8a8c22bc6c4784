"""Kafka transactions: what is decided in one go is seen whole or not at all."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaException, Producer

from oal_training.online.complaints import Complaints

BUNDLES, EVENTS = "ap.bundles.v1", "platform.events.v1"
TIMEOUT_S = 5.0
_OF_CONSUMERS = ("group.id", "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms")


class Fenced(Exception):
    """Another process has this trainer's transactional id, or the producer cannot go on: end, and let the process
    manager start anew.
    """


class Outbox:
    """Transactional producer. `keep_on()` is asked between attempts; when it says no, the attempt is given up."""

    def __init__(
        self, options: dict[str, str], transactional_id: str, keep_on: Callable[[], bool], log: Callable[[str], None]
    ):
        self._keep_on, self._log = keep_on, log
        options = {key: value for key, value in options.items() if key not in _OF_CONSUMERS}
        self._producer = Producer(
            {
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
        )

    def open(self) -> bool:
        """Take over the transactional id; what an earlier process left open is ended.

        False when told to stop meanwhile.
        """
        return self._until_done(lambda: self._producer.init_transactions(TIMEOUT_S)) is not None

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
                if error.fatal() or not error.retriable():
                    raise Fenced(error.str()) from None
                if not self._keep_on():
                    return None


class _Abort(Exception):
    pass
