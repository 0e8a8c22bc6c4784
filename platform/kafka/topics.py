"""Topics, ACLs and quotas as the YAML says: creates what is missing, alters what differs, adds partitions, removes ACLs
not named. Quotas of users that are not named stay.

A topic that exists and is not named is left alone: deleting data is for people.

usage: topics.py SPEC.yaml BOOTSTRAP PKI_FOLDER PARTITIONS [--replication N]      (PARTITIONS 0: as the spec says)
"""
import argparse
import sys
import time

import quotas
import yaml
from broker_requests import RequestError
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

TIMEOUT_S = 30
RESOURCES = {
    "topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER
}
#: The rules of APs are everyone's, for each AP is a principal of its own. Whom no mapping rule knows is NOBODY.
AP, NOBODY = "ap", "nobody"


def wanted_topics(spec: dict, partitions: int, replication: int = 0) -> dict[str, NewTopic]:
    defaults = spec["defaults"]
    topics = {}
    for name, own in spec["topics"].items():
        config = {**defaults["config"], **own.get("config", {})}
        topics[name] = NewTopic(name, num_partitions=partitions or own.get("partitions", defaults["partitions"]),
                                replication_factor=replication or own.get("replication", defaults["replication"]),
                                config={key: str(value) for key, value in config.items()})
    return topics


def binding(principal: str, rule: dict, operation: str, permission=AclPermissionType.ALLOW) -> AclBinding:
    (kind, pattern), = ((k, v) for k, v in rule.items() if k != "allow")
    prefixed = pattern.endswith("*") and pattern != "*"
    return AclBinding(
        RESOURCES[kind], pattern.rstrip("*") if prefixed else pattern,
        ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL, f"User:{principal}", "*",
        AclOperation[operation.upper()], permission)


def wanted_acls(spec: dict) -> set[AclBinding]:
    """Who is named has what its rules say. What APs have is everyone's, and refused to those that are named."""
    bindings = set()
    for principal, rules in (spec["acls"] | {NOBODY: []}).items():
        bindings |= {binding("*" if principal == AP else principal, rule, operation)
                     for rule in rules for operation in rule["allow"]}
        if principal == AP:
            continue
        for rule in spec["acls"][AP]:
            own = {operation for other in rules if other.get("topic") in ("*", rule["topic"])
                   for operation in other["allow"]}
            bindings |= {binding(principal, rule, operation, AclPermissionType.DENY)
                         for operation in rule["allow"] if operation not in own}
    return bindings


def settle(futures: dict) -> None:
    for what, future in futures.items():
        try:
            future.result(TIMEOUT_S)
        except KafkaException as error:
            # Two `up` at once, or the answer of the first try was lost.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise SystemExit(f"topics: {what}: {error.args[0].str()}") from error


def apply_topics(admin: AdminClient, topics: dict[str, NewTopic]) -> None:
    there = admin.list_topics(timeout=TIMEOUT_S).topics
    missing = [topic for name, topic in topics.items() if name not in there]
    if missing:
        settle(admin.create_topics(missing))
    existing = {name: topic for name, topic in topics.items() if name in there}
    more = []
    for name, topic in existing.items():
        count = len(there[name].partitions)
        if count < topic.num_partitions:
            more.append(NewPartitions(name, topic.num_partitions))
        elif count > topic.num_partitions:
            print(f"topics: {name} keeps its {count} partitions; Kafka cannot go down to {topic.num_partitions}",
                  file=sys.stderr)
        copies = min(len(partition.replicas) for partition in there[name].partitions.values())
        if copies != topic.replication_factor:
            print(
                f"topics: {name} keeps its replication of {copies}, not {topic.replication_factor};"
                " kafka-reassign-partitions changes it",
                file=sys.stderr,
            )
    if more:
        settle(admin.create_partitions(more))
    if existing:
        settle(
            admin.incremental_alter_configs([
                ConfigResource(
                    ConfigResource.Type.TOPIC, name, incremental_configs=[
                        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
                        for key, value in topic.config.items()
                    ]) for name, topic in existing.items()
            ]))


def described_acls(admin: AdminClient) -> set[AclBinding]:
    """All that the broker which answers goes by."""
    everything = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                  AclPermissionType.ANY)
    return set(admin.describe_acls(everything).result(TIMEOUT_S))


def apply_acls(admin: AdminClient, wanted: set[AclBinding]) -> None:
    there = described_acls(admin)
    # What refuses comes first: at no moment may somebody do what is not theirs.
    for permission in (AclPermissionType.DENY, AclPermissionType.ALLOW):
        if new := [acl for acl in wanted - there if acl.permission_type == permission]:
            settle(admin.create_acls(new))
    if there - wanted:
        settle(
            admin.delete_acls([
                AclBindingFilter(a.restype, a.name, a.resource_pattern_type, a.principal, a.host, a.operation,
                                 a.permission_type) for a in there - wanted
            ]))


def wait_for_acls(admin: AdminClient, wanted: set[AclBinding]) -> None:
    """The controller acknowledges an ACL before the brokers have heard of it: a client that comes first is refused."""
    deadline = time.monotonic() + TIMEOUT_S
    while missing := wanted - described_acls(admin):
        if time.monotonic() > deadline:
            raise SystemExit(f"topics: not in force within {TIMEOUT_S} s: {missing}")
        time.sleep(0.05)


def wait_for_leaders(admin: AdminClient, topics: dict[str, NewTopic]) -> None:
    """A created topic cannot be written to before each partition has a leader."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        there = admin.list_topics(timeout=TIMEOUT_S).topics
        if all(name in there and len(there[name].partitions) >= topic.num_partitions
               and all(p.leader >= 0 for p in there[name].partitions.values()) for name, topic in topics.items()):
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"topics: not every partition got a leader within {TIMEOUT_S} s")
        time.sleep(0.05)


def connect(bootstrap: str, pki: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "security.protocol": "ssl", "ssl.ca.location": f"{pki}/ca.crt",
                        "ssl.certificate.location": f"{pki}/admin.crt", "ssl.key.location": f"{pki}/admin.key"})


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(prog="topics", description=__doc__.split("\n\nusage")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", metavar="SPEC", help="YAML: topics, ACLs and quotas")
    parser.add_argument("bootstrap", metavar="BOOTSTRAP", help="HOST:PORT of brokers, several separated by commas")
    parser.add_argument("pki", metavar="PKI", help="folder with ca.crt, admin.crt and admin.key")
    parser.add_argument("partitions", metavar="PARTITIONS", type=int, help="of each topic; 0: as SPEC says")
    parser.add_argument("--replication", type=int, default=0, metavar="N",
                        help="of topics that are made, at most as many as there are brokers (default: as SPEC says)")
    options = parser.parse_args(arguments)
    with open(options.spec) as file:
        spec = yaml.safe_load(file)
    admin = connect(options.bootstrap, options.pki)
    topics = wanted_topics(spec, options.partitions, options.replication)
    try:
        apply_topics(admin, topics)
        # Before rights: who may write has a quota.
        quotas.apply(options.bootstrap, options.pki, quotas.wanted(spec))
        acls = wanted_acls(spec)
        apply_acls(admin, acls)
        wait_for_acls(admin, acls)
        wait_for_leaders(admin, topics)
    except KafkaException as error:
        raise SystemExit(f"topics: {options.bootstrap}: {error.args[0].str()}") from None
    except (OSError, RequestError) as error:
        raise SystemExit(f"topics: {options.bootstrap}: {error}") from None


if __name__ == "__main__":
    main()
