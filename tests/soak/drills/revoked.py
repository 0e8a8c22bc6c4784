"""A stolen access point that was revoked sends at many times a full rate: its victims lose nothing, and it fills no
topic of dead letters.
"""

from __future__ import annotations

import json
import time

from confluent_kafka import Producer
from flow import until
from ledger import read_topic

from soak.checks import complete, say
from soak.figures import Figure
from soak.stage import stage

FOR_S = 120
SPEED = 20  # of a real one
BEHIND_S = 3600  # its batches begin so long ago, so that none is from the future
COPIED_A_MINUTE = 256 << 10  # of one sender: stream-jobs/README.md


def revoked() -> list[Figure]:
    """A revoked access point sends 20 times as much as a real one for two minutes, beside three others."""
    drill = "revoked"
    with stage() as on:
        others = on.fleet(3)
        begin_us = on.clock.now_us()
        thief = on.fleet(1, now_us=lambda: begin_us - BEHIND_S * 1_000_000 + SPEED * (on.clock.now_us() - begin_us))
        on.flowing(thief)
        on.flowing(others)
        ap_id = thief.ap_ids[0]
        producer = Producer(on.platform.kafka.client("deploy") | {"log_level": 2})
        producer.produce("ap.access.v1", key=ap_id, value=json.dumps({
            "ap_id": ap_id, "revoked_at_us": on.clock.now_us(), "who": "soak", "reason": "stolen"}))
        assert producer.flush(30) == 0, "the revocation was not sent"
        say(f"{drill}: revoked; it goes on for {FOR_S} s at {SPEED} times a real one's rate")
        begun = time.monotonic()
        on.clock.wait_s(FOR_S)
        thief.stop()
        others.stop()
        passed = time.monotonic() - begun
        figures = complete(on.platform, others, f"{drill}.others")
        made = 3 * thief.aps[0].seq

        def counted() -> tuple[int, int] | None:
            taken = int(on.platform.clickhouse.query(f"SELECT count() FROM oal.batch WHERE ap_id = '{ap_id}'"))
            refused = int(on.platform.clickhouse.query(
                f"SELECT count() FROM oal.dead_letter WHERE key = '{ap_id}' AND reason = 'revoked'"))
            return (taken, refused) if taken + refused >= made else None

        taken, refused = until("every batch of the thief is a row or refused", counted)
        copied = sum(len(m.value()) for m in read_topic(on.platform, "dead.letters.v1") if m.key() == ap_id.encode())
        return [
            Figure(f"{drill}.sent", made, "records", f"by the revoked one, {made / passed:,.0f} a second"),
            Figure(f"{drill}.refused", refused, "records", f"as revoked; {taken} came before"),
            Figure(f"{drill}.neither", made - taken - refused, "records", "neither a row nor counted as refused",
                   ("==", 0)),
            Figure(f"{drill}.copied", copied, "B", "to dead.letters.v1, of at most 256 KiB a minute and sender",
                   ("<=", COPIED_A_MINUTE * (passed / 60 + 2))),
        ] + figures
