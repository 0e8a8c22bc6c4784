"""Who made a batch, and who may, on the running platform: forged, unsigned and revoked batches are refused once each,
whatever dies meanwhile, and the access points in whose names they come lose nothing."""

from __future__ import annotations

import json
import time

from confluent_kafka import Producer
from flow import assert_every_row_once, kill, until, until_back, until_drained, until_rows_flow
from items import assert_instants_once, until_items_drained
from ledger import totals
from oal_schema import mac
from virtual_ap import TOPICS, VirtualAp, VirtualFleet, mac_masters

FORGERIES = 40


def send(producer: Producer, *records) -> None:
    failed = []
    for topic, key, value, headers in records:
        producer.produce(topic, key=key, value=value, headers=headers, on_delivery=lambda error, _: failed.append(error)
                         if error else None)
    left = producer.flush(60)
    assert not left and not failed, (left, failed[:1])


def forgeries(platform, victim: str):
    """An access point with a certificate and a key of its own writes batches as another, far ahead in its sequence."""
    masters = mac_masters(platform)
    key_id = max(masters)
    own = mac.ap_key(masters[key_id], "intruder", "lab")
    made_up = VirtualAp(victim, 999)
    made_up.seq = 1_000_000
    for _ in range(FORGERIES):
        for topic, record in made_up.interval(int(time.time() * 1e6)):
            yield TOPICS[topic], victim, record, [(mac.HEADER, mac.header(key_id, own, TOPICS[topic], record))]
            yield TOPICS[topic], victim, record, []
            yield TOPICS[topic], victim, record, [(mac.HEADER, mac.header(key_id + 1, own, TOPICS[topic], record))]


def refused(platform) -> dict[str, list[int]]:
    """By reason: dead letters, and how many different records of Kafka they are."""
    rows = platform.clickhouse.query(
        "SELECT reason, count(), uniqExact(topic, kafka_partition, kafka_offset) FROM oal.dead_letter GROUP BY reason")
    return {
        reason: [int(n), int(different)] for reason, n, different in (line.split("\t") for line in rows.splitlines())
    }


def count(platform, sql: str) -> int:
    return int(platform.clickhouse.query(sql))


def test_forged_and_revoked_batches_stay_out_whatever_is_killed(platform):
    good = VirtualFleet(platform, seed=700).start()
    gone = VirtualFleet(platform, count=1, seed=800).start()
    try:
        until_rows_flow(platform, good.ap_ids + gone.ap_ids)
        send(Producer(platform.kafka.ap("intruder")), *forgeries(platform, good.ap_ids[0]))
        deploy = Producer(platform.kafka.client("deploy"))
        # Ahead of now, so that the job has read it by then however busy the machine is: who is revoked at once is out a
        # moment later.
        revoked_at_us = int((time.time() + 20) * 1e6)
        send(deploy, ("ap.access.v1", "nobody", b"{}", []),
             ("ap.access.v1", gone.ap_ids[0],
              json.dumps({"ap_id": gone.ap_ids[0], "revoked_at_us": revoked_at_us, "who": "test", "reason": "stolen"
                          }).encode(), []))
        for service in ("taskmanager", "jobmanager", "clickhouse"):
            until_back(platform, service, kill(platform, service))
            until_rows_flow(platform, good.ap_ids)
        n = 3 * FORGERIES
        until("every forgery is a dead letter",
              lambda: all(refused(platform).get(reason) == [n, n] for reason in ("forged", "unsigned", "unknown_key")))
        until("batches are refused as revoked", lambda: refused(platform).get("revoked", [0])[0] >= 30)

        good.stop()
        gone.stop()
        made = good.rows_made()
        names = ", ".join(f"'{ap_id}'" for ap_id in good.ap_ids)
        until_drained(platform, made)
        until_items_drained(platform, good)
        assert_every_row_once(platform, made)
        assert_instants_once(platform, good, contiguous=True)
        assert count(
            platform,
            f"SELECT count() FROM oal.gap WHERE ap_id IN ({names})") == 0, "no forgery moved a victim's sequence"

        of_gone = sum(gone.rows_made()[key] for key in gone.rows_made() if key[0] == "batch")
        late = f"SELECT count() FROM oal.batch WHERE ap_id = '{gone.ap_ids[0]}'"
        until("every batch of the revoked access point is somewhere",
              lambda: count(platform, late) + refused(platform)["revoked"][1] == of_gone)
        assert count(platform, late + f" AND toUnixTimestamp64Milli(kafka_ts) * 1000 >= {revoked_at_us}") == 0
        assert refused(platform)["revoked"][0] == refused(platform)["revoked"][1]
        assert refused(platform)["malformed"] == [1, 1], "the broken record of ap.access.v1"
        detail = platform.clickhouse.rows(
            "SELECT any(detail) AS detail FROM oal.dead_letter WHERE reason = 'forged'")[0]["detail"]
        assert f"ap_id '{good.ap_ids[0]}'" in detail and "key_id" in detail and "offset" in detail, detail
        print(f"\n  every row once: {totals(made)}; refused: {refused(platform)}")

        # Restored: the next batches are taken.
        send(deploy, ("ap.access.v1", gone.ap_ids[0], None, []))
        back = VirtualFleet(platform, count=1, seed=800)
        back.aps[0].boot_id ^= 1  # another incarnation, or its batches would be known already
        back.start()
        try:
            until_rows_flow(platform, gone.ap_ids)
        finally:
            back.abandon()
    finally:
        good.abandon()
        gone.abandon()
