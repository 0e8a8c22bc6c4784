"""Ends transactions that a partition holds as open although their coordinator has long ended them.

Such a one stops readers of committed records for ever: no timeout applies, since the coordinator knows nothing to end.
It comes about when the broker that leads the partition is fenced while the end is written: the coordinator takes the
partition for deleted and skips it.

What the coordinator decided is done: it committed, the missing marker commits; it aborted, the marker aborts. When it
no longer knows (the id is forgotten, or was used again since), the transaction is aborted after LOST_AFTER_S, as
`kafka-transactions.sh` would, and its records are lost to readers of committed ones. Each is a line of the log and a
row of table `settled_transaction`, with how many records it had at most. A transaction that its coordinator holds as
open is never touched.

usage: transactions.py BOOTSTRAP PKI_FOLDER [--once] [--every SECONDS] [--older SECONDS] [--alive FILE]
"""
import argparse
import json
import os
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from broker_requests import RequestError
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from transaction_requests import Connection, Known, OpenTransaction

NAME = "transactions"  # its certificate; its rights are in topics.yaml
EVENTS = "platform.events.v1"
#: Who leads a partition of it is the coordinator of the transactional ids in there.
COORDINATORS = "__transaction_state"
TABLE = "settled_transaction"
TIMEOUT_S = 30
EVERY_S = 30
#: How long a round may still take after SIGTERM.
LAST_ROUND_S = 5
#: A transaction is open for a checkpoint's time; only older ones are asked about.
OLDER_S = 60
#: How long a transaction that its coordinator does not have under way is left alone while its outcome is unknown.
LOST_AFTER_S = 900
COMMITTED, ABORTED, LOST = "committed", "aborted", "lost"
ENDED = {"CompleteCommit": COMMITTED, "CompleteAbort": ABORTED}
UNDER_WAY = {"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"}


@dataclass(frozen=True)
class Verdict:
    outcome: str  # COMMITTED, ABORTED or LOST
    why: str


def verdict(one: OpenTransaction, known: Known | None, age_s: float) -> Verdict | None:
    """What is to become of ONE; nothing while its coordinator may still end it.

    Markers are written before the coordinator calls a transaction complete, so one that is open after that lacks its
    own. It is the transaction that the coordinator speaks of when the epoch is that of its records (or the next: since
    Kafka 4 the end raises it) and the last of them is not older than its begin.
    """
    if known is None:
        return Verdict(LOST, "no coordinator knows its producer") if age_s >= LOST_AFTER_S else None
    if known.state in UNDER_WAY and (one.topic, one.partition) in known.partitions:
        return None
    same = known.producer_id == one.producer_id and known.producer_epoch - one.producer_epoch in (0, 1)
    if known.state in ENDED and same and one.last_ms >= known.start_ms:
        return Verdict(ENDED[known.state], f"its coordinator says {known.state}")
    if age_s < LOST_AFTER_S:
        return None
    return Verdict(LOST, f"its coordinator has gone on: {known.state}, epoch {known.producer_epoch}")


def without_leader(metadata, topic: str) -> list[int]:
    """Partitions of a topic that no broker leads which the cluster lists as there; none of a topic that is not there.
    A broker that is fenced is not listed.
    """
    described = metadata.topics.get(topic)
    return sorted(n for n, p in described.partitions.items() if p.leader not in metadata.brokers) if described else []


class Cluster:
    """All brokers, for one round: a connection to each. One that does not answer ends the round with an OSError or
    RequestError, and so does a coordinator that is away: what it knows is not unknown.
    """

    def __init__(self, admin: AdminClient, context: ssl.SSLContext, held: ExitStack):
        metadata = admin.list_topics(timeout=TIMEOUT_S)
        self.brokers = {
            number: held.enter_context(Connection(broker.host, broker.port, context))
            for number, broker in metadata.brokers.items()
        }
        self.leader = {
            (topic.topic, number): partition.leader for topic in metadata.topics.values()
            for number, partition in topic.partitions.items() if partition.leader in self.brokers
        }
        away = without_leader(metadata, COORDINATORS)
        if away:
            raise RequestError(f"no broker leads {COORDINATORS} {away}: its coordinators are away")

    def open_transactions(self) -> list[OpenTransaction]:
        return [
            each for number, broker in self.brokers.items()
            for each in broker.open_transactions([p for p, leader in self.leader.items() if leader == number])
        ]

    def known(self, producer_ids: set[int]) -> dict[int, Known]:
        """What coordinators know, by producer."""
        found = {}
        for broker in self.brokers.values():
            if ids := broker.transactional_ids(sorted(producer_ids)):
                found.update({each.producer_id: each for each in broker.known(ids)})
        return found

    def end(self, one: OpenTransaction, commit: bool) -> None:
        self.brokers[self.leader[one.topic, one.partition]].end(one, commit)


def settle(admin: AdminClient, context: ssl.SSLContext, older_s: float, now=time.time) -> Iterator[dict]:
    """One round. A row of `settled_transaction` for each transaction, as soon as it ended: what follows may fail."""
    with ExitStack() as held:
        cluster = Cluster(admin, context, held)
        before = [one for one in cluster.open_transactions() if now() - one.last_ms / 1000 >= older_s]
        if not before:
            return
        known = cluster.known({one.producer_id for one in before})
        # Whether it is open is asked again after its coordinator was: an end that was under way is no hanging one.
        still = set(cluster.open_transactions())
        for one in before:
            coordinator = known.get(one.producer_id)
            decided = verdict(one, coordinator, now() - one.last_ms / 1000)
            if decided is None or one not in still:
                continue
            cluster.end(one, decided.outcome == COMMITTED)
            yield {
                "ts": int(now() * 1e6), "topic": one.topic, "partition": one.partition,
                "transactional_id": coordinator.transactional_id if coordinator else "",
                "producer_id": one.producer_id, "producer_epoch": one.producer_epoch, "start_offset": one.start_offset,
                "records": one.last_sequence + 1, "outcome": decided.outcome, "detail": decided.why
            }


def tell(producer: Producer, row: dict) -> None:
    """Log a row and send it. RequestError when Kafka does not take it; it is in the log then."""
    print(f"transactions: {row}", flush=True)
    producer.produce(EVENTS, key=TABLE, value=json.dumps({"table": TABLE, "rows": [row]}))
    if producer.flush(TIMEOUT_S):
        raise RequestError(f"{EVENTS} took no record of what was settled")


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(prog="transactions", description=__doc__.split("\n\nusage")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bootstrap", metavar="BOOTSTRAP", help="HOST:PORT of brokers, several separated by commas")
    parser.add_argument("pki", metavar="PKI", help="folder with ca.crt, transactions.crt and transactions.key")
    parser.add_argument("--once", action="store_true", help="one round; its exit status says whether it could be made")
    parser.add_argument("--every", type=float, default=EVERY_S, metavar="SECONDS", help="between rounds (%(default)s)")
    parser.add_argument("--older", type=float, default=OLDER_S, metavar="SECONDS",
                        help="age from which a transaction is asked about (%(default)s)")
    parser.add_argument("--alive", type=Path, metavar="FILE", help="is touched after each round that could be made")
    options = parser.parse_args(arguments)
    pki = options.pki
    client = {"bootstrap.servers": options.bootstrap, "security.protocol": "ssl", "ssl.ca.location": f"{pki}/ca.crt",
              "ssl.certificate.location": f"{pki}/{NAME}.crt", "ssl.key.location": f"{pki}/{NAME}.key"}
    stop = None if options.once else told_to_end()
    admin, producer = AdminClient(client), Producer(client)

    def one_round() -> bool:
        try:
            context = ssl.create_default_context(cafile=f"{pki}/ca.crt")  # anew: certificates are renewed
            context.load_cert_chain(f"{pki}/{NAME}.crt", f"{pki}/{NAME}.key")
            for row in settle(admin, context, options.older):
                tell(producer, row)
            if options.alive:
                options.alive.touch()
        except (OSError, KafkaException, RequestError) as error:
            # A broker that is away: what it coordinates is unknown, so nothing is decided.
            print(f"transactions: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return False
        return True

    if stop:
        serve(one_round, options.every, stop)
    elif not one_round():
        raise SystemExit(1)


def told_to_end() -> threading.Event:
    """Set by SIGTERM, which does nothing to process 1 of a container that does not ask for it."""
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    return told


def serve(one_round: Callable[[], bool], every_s: float, stop: threading.Event) -> None:
    """Rounds until `stop`. A round that is under way then may end, unless it waits for a broker that is away."""
    failed = []

    def rounds() -> None:
        try:
            while not stop.is_set():
                one_round()
                stop.wait(every_s)
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            stop.set()

    thread = threading.Thread(target=rounds, daemon=True)
    thread.start()
    stop.wait()
    thread.join(LAST_ROUND_S)
    if failed:
        raise SystemExit(1)
    if thread.is_alive():  # within librdkafka: the interpreter's end would wait for it, or break it
        os._exit(0)


if __name__ == "__main__":
    main()
