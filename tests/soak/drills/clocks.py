"""Clocks an hour off, at an access point and at the broker: what is refused is counted, nothing else is lost, and all
goes on when the clock is right again.
"""

from __future__ import annotations

from collections import Counter

from ledger import clickhouse_ledger, differences

from soak.checks import NONE, complete, count, drained, say, until
from soak.figures import Figure
from soak.fleet import PlayedFleet
from soak.stage import stage

HOUR_S = 3600
FOR_S = 35
BROKER = "kafka.Kafka"


def access_point() -> list[Figure]:
    """An access point's clock is an hour ahead, then an hour behind, then right, beside three right ones."""
    drill = "clock-access-point"
    with stage() as on:
        right = on.fleet(3)
        ahead_us = 0
        wrong = on.fleet(1, now_us=lambda: on.clock.now_us() + ahead_us)
        on.flowing(wrong)
        ap, made, refused = wrong.aps[0], Counter(), 0

        def to(us: int) -> int:
            """Set the clock; the first batch after that."""
            nonlocal ahead_us
            wrong.shift(us - ahead_us)
            ahead_us = us
            return ap.seq

        say(f"{drill}: an hour ahead")
        first = to(HOUR_S * 1_000_000)
        on.clock.wait_s(FOR_S)
        say(f"{drill}: an hour behind")
        last = to(-HOUR_S * 1_000_000)
        on.clock.wait_s(FOR_S)
        say(f"{drill}: right")
        to(0)
        again_us = ap.next_us
        on.clock.wait_s(FOR_S)
        wrong.stop()
        right.stop()
        drained(on.platform, right)
        expected = 3 * (last - first)
        refused = until("what is refused is counted", lambda: _refused(on.platform, wrong) >= expected and _refused(
            on.platform, wrong), 60)
        made = Counter({key: n for key, n in wrong.rows_made().items() if not first <= key[3] < last})
        until("its rows", lambda: count(on.platform, "batch", wrong) >= 3 * (ap.seq - last + first), 120)
        wrongly = differences(made, clickhouse_ledger(on.platform, wrong.ap_ids))
        items = int(on.platform.clickhouse.query(
            f"SELECT count() FROM oal.item WHERE ap_id = '{ap.ap_id}' AND complete AND toUnixTimestamp64Micro(ts) >="
            f" {again_us}"))
        return [
            Figure(f"{drill}.refused", refused, "records", "time_range: an hour ahead", ("==", expected)),
            Figure(f"{drill}.rows_lost", sum(w[2] for w in wrongly.values()), "rows",
                   "of the wrong one's batches an hour behind, and right: " + str(wrongly), NONE),
            Figure(f"{drill}.rows_twice", sum(w[3] for w in wrongly.values()), "rows", "", NONE),
            Figure(f"{drill}.items_again", items, "items", f"complete, in the {FOR_S} s after it was right again",
                   (">=", 10 * (FOR_S - 25))),
        ] + complete(on.platform, right, f"{drill}.others")


def _refused(platform, fleet: PlayedFleet) -> int:
    return int(platform.clickhouse.query(
        f"SELECT count() FROM oal.dead_letter WHERE key = '{fleet.ap_ids[0]}' AND reason = 'time_range'"))


def broker() -> list[Figure]:
    """The broker's clock is set an hour ahead, right, an hour behind, and right again."""
    drill = "clock-broker"
    with stage(services_of=(BROKER,)) as on:
        clock = on.apart[BROKER]
        fleet = on.fleet()
        on.flowing(fleet)
        for seconds in (HOUR_S, -HOUR_S):
            say(f"{drill}: {seconds:+} s")
            clock.step(seconds)
            on.clock.wait_s(FOR_S)
            clock.step(-seconds)
            on.clock.wait_s(FOR_S)
            on.flowing(fleet)
        fleet.stop()
        return complete(on.platform, fleet, drill)
