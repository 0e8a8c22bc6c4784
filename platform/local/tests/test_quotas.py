"""A stolen access point cannot push unread data of others out: what it may write is bounded, and what Kafka holds is
enough for that.
"""
import os
import re
import sys

import pytest
import yaml
from confluent_kafka import KafkaError, Producer
from oal_local.paths import KAFKA, REPO
from waiting import until

sys.path.insert(0, str(KAFKA))

import quotas  # noqa: E402
import topics  # noqa: E402

SIZING = REPO / "docs/sizing.md"
SPEC = yaml.safe_load((KAFKA / "topics.yaml").read_text())
QUOTA = SPEC["quotas"]["ap"]["producer_byte_rate"]
BUSY = 1000 * float(re.search(r"\| Kafka, in \| ([\d.]+) KB/s", SIZING.read_text())[1])  # bytes/s
#: As long as this nothing may be lost of an outage of who reads.
OUTAGE_H = 1
PURGED = (KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE)


def kept(example: str) -> tuple[float, int, float]:
    """Of an example of the chart: bytes a partition, partitions, hours."""
    config, partitions = dict(SPEC["defaults"]["config"]), SPEC["defaults"]["partitions"]
    if example:
        chosen = yaml.safe_load((REPO / f"helm/oal/examples/{example}.yaml").read_text())["kafka"]["topics"]
        config, partitions = config | chosen["config"], chosen.get("partitions", partitions)
    return config["retention.bytes"], partitions, config["retention.ms"] / 3.6e6


def hours(example: str, aps: int, stolen: bool) -> float:
    """Until the oldest record of a partition goes, if all that APS busy access points send were in one topic, and a
    stolen one wrote to a single partition.
    """
    size, partitions, most = kept(example)
    return min(most, size / (aps * BUSY / partitions + stolen * QUOTA) / 3600)


@pytest.mark.parametrize("example", ["", "small", "fleet"])
def test_an_access_point_at_its_quota_leaves_the_time_to_survive(example):
    values = f"`{example}.yaml`" if example else "no example"
    row = re.search(rf"\| {values} \| ([\d,]+) \| ([\d.]+) h \| ([\d.]+) h \|", SIZING.read_text())
    aps = int(row[1].replace(",", ""))
    assert [float(row[2]), float(row[3])] == [round(hours(example, aps, stolen), 1) for stolen in (False, True)]
    assert hours(example, aps, True) >= OUTAGE_H
    assert QUOTA >= 5 * BUSY, "an access point that catches up, or is busier than the one that was measured"


def test_whoever_is_not_named_has_the_quota_and_the_others_none():
    wanted = quotas.wanted(SPEC)
    rules = next(line for line in (KAFKA / "server.properties").read_text().splitlines()
                 if line.startswith("ssl.principal.mapping.rules="))
    known = set(re.search(r"CN=\(([a-z|-]+)\),OU=service", rules)[1].split("|"))
    assert known == set(wanted) - {None} == {*SPEC["acls"], *quotas.SUPER_USERS} - {"ap"}
    assert rules.endswith("RULE:^.+$$/nobody/") and not {"nobody", "ap"} & set(wanted)


def test_what_every_access_point_may_is_refused_to_who_is_named():
    refused = {(str(acl.principal), acl.name) for acl in topics.wanted_acls(SPEC)
               if acl.permission_type == topics.AclPermissionType.DENY and acl.operation == topics.AclOperation.WRITE}
    written = {rule["topic"] for rule in SPEC["acls"]["ap"]}
    assert refused == {(f"User:{who}", topic) for who in {*SPEC["acls"], "nobody"} - {"ap"} for topic in written}


class Flood:
    """A producer that writes as fast as it is let, and how long the broker made it wait."""

    def __init__(self, options: dict, topic: str, name: str):
        self.waits_s, self.errors, self.taken, self.topic = [], [], 0, topic
        self.producer = Producer({**options, "client.id": name, "linger.ms": 0, "log_level": 0,
                                  "throttle_cb": lambda event: self.waits_s.append(event.throttle_time)})

    def send(self, count: int) -> None:
        def delivered(error, message):
            self.errors += [error] if error else []
            self.taken += 0 if error else len(message)

        for _ in range(count):
            self.producer.produce(self.topic, os.urandom(65_536), partition=0, on_delivery=delivered)

    def polled(self, count: int = 1):
        self.producer.poll(0.05)
        return len(self.waits_s) >= count

    def end(self) -> None:
        self.producer.purge()
        self.producer.flush(20)


def test_a_stolen_access_point_waits_and_nobody_else_does(platform):
    stolen = platform.kafka.ap("ap-stolen")
    flood = Flood(stolen, "ap.packets.v1", "one")
    flood.send(12 * QUOTA // 65_536)  # the broker looks at the last 11 s
    until(flood.polled, "the broker makes the stolen access point wait")
    other_name = Flood(stolen, "ap.events.v1", "two")
    other_name.send(1)
    until(other_name.polled, "whatever it calls itself")

    neighbour = Flood(platform.kafka.ap("ap-0001"), "ap.packets.v1", "one")
    neighbour.send(1)
    neighbour.producer.flush(20)
    service = Flood(platform.kafka.client("stream-jobs"), "dead.letters.v1", "one")
    service.send(16 * QUOTA // 65_536)
    service.producer.flush(60)
    assert service.taken > 15 * QUOTA
    assert neighbour.taken and not neighbour.waits_s and not service.waits_s
    for each in (flood, other_name, neighbour, service):
        each.end()
        assert not [error for error in each.errors if error.code() not in PURGED]


def test_an_access_point_with_more_to_send_is_given_more_and_keeps_it(platform):
    platform.kafka.ap("ap-many", plays=3)
    pki = str(platform.state.pki)
    quotas.apply(platform.kafka.bootstrap, pki, quotas.wanted(SPEC))  # as the next `topics` does
    with quotas.connect(platform.kafka.bootstrap, pki) as broker:
        assert quotas.describe(broker, quotas.principal("ap-many"))["producer_byte_rate"] == 3 * QUOTA
        assert quotas.describe(broker, None)["producer_byte_rate"] == QUOTA
