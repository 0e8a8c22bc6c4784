"""Clocks an hour off, at an access point, at the broker and at the trainer: what is refused is counted, nothing else is
lost, and all goes on when the clock is right again.
"""

from __future__ import annotations

import time
from collections import Counter

from flow import until
from ledger import clickhouse_ledger, differences, read_topic
from oal_local import demo, health
from oal_local import trainer as trainer_service
from oal_local.errors import PlatformError
from oal_schema import keys, release
from oal_schema.nodes import BundleError

from soak.checks import NONE, complete, count, drained, names, say
from soak.clock import Clock
from soak.figures import Figure
from soak.fleet import PlayedFleet
from soak.learning import decisions, eager
from soak.stage import Stage, stage

HOUR_S = 3600
FOR_S = 35
BROKER_FOR_S = 25
BORDER = 8  # batches about a step of the clock, which may be on either side of it
BROKER, TRAINER = "kafka.Kafka", "oal_training"  # words of their command lines
ROWS_S = 8  # what was decided before is rows then


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
        f"SELECT count() FROM oal.dead_letter WHERE key IN ({names(fleet)}) AND reason = 'time_range'"))


def broker() -> list[Figure]:
    """The broker's clock is an hour ahead, then an hour behind: what is refused then is counted, all else arrives."""
    drill = "clock-broker"
    with stage(services_of=(BROKER,)) as on:
        clock = on.apart[BROKER]
        say(f"{drill}: an hour ahead, then right")
        ahead = on.fleet()
        on.flowing(ahead)
        for seconds in (HOUR_S, -HOUR_S):
            clock.step(seconds)
            on.clock.wait_s(BROKER_FOR_S)
        ahead.stop()
        figures = complete(on.platform, ahead, f"{drill}.ahead")
        say(f"{drill}: an hour behind, then right")
        behind, restarts = _joined(on)
        figures.append(Figure(f"{drill}.restarts", restarts, "restarts", "of the broker, which took no change of its"
                              " settings after its clock had gone back", ("<=", 1)))
        on.flowing(behind)
        figures += _behind(on, drill, behind, clock)
        after = on.fleet()
        on.flowing(after)
        on.clock.wait_s(BROKER_FOR_S)
        after.stop()
        return figures + complete(on.platform, after, f"{drill}.after")


def _joined(on: Stage) -> tuple[PlayedFleet, int]:
    """New access points; how often the broker was started anew for that. KRaft's controller writes a record when the
    wall clock has gone on by some milliseconds: one that waits when the clock is set back waits for an hour, and all
    after it. Data flows on meanwhile (docs/troubleshoot.md).
    """
    try:
        return on.fleet(), 0
    except PlatformError as error:
        say(f"the broker is started anew: {str(error).strip().splitlines()[-1]}")
        on.platform.restart("kafka")
        return until("the broker takes a quota", on.fleet), 1


def _behind(on: Stage, drill: str, fleet: PlayedFleet, clock: Clock) -> list[Figure]:
    """The contract takes the broker's time for now: to it every access point is an hour ahead, and it refuses them."""
    clock.step(-HOUR_S)
    first = {ap.boot_id: ap.seq - BORDER for ap in fleet.aps}
    on.clock.wait_s(BROKER_FOR_S)
    clock.step(HOUR_S)
    last = {ap.boot_id: ap.seq + BORDER for ap in fleet.aps}
    on.flowing(fleet)
    fleet.stop()
    sent = 3 * sum(ap.seq for ap in fleet.aps)

    def settled() -> tuple[int, int] | None:
        found = count(on.platform, "batch", fleet), _refused(on.platform, fleet)
        return found if sum(found) >= sent else None

    taken, refused = until("every batch is a row or refused", settled, 120)
    made = Counter({key: n for key, n in fleet.rows_made().items() if not first[key[2]] <= key[3] < last[key[2]]})
    held = clickhouse_ledger(on.platform, fleet.ap_ids)
    wrong = differences(made, Counter({key: n for key, n in held.items()
                                       if not first[key[2]] <= key[3] < last[key[2]]}))
    return [
        Figure(f"{drill}.behind.refused", refused, "records", f"time_range, within {BROKER_FOR_S} s"),
        Figure(f"{drill}.behind.neither", sent - taken - refused, "records", "neither a row nor refused", NONE),
        Figure(f"{drill}.behind.rows_lost", sum(w[2] for w in wrong.values()), "rows",
               f"of batches before and after, two seconds apart: {wrong}", NONE),
        Figure(f"{drill}.behind.rows_twice", sum(w[3] for w in wrong.values()), "rows", "", NONE),
    ]


def trainer() -> list[Figure]:
    """The trainer's clock is an hour ahead, right, an hour behind, right: it signs nothing by a wrong one, and says so.
    """
    drill = "clock-trainer"
    with eager() as settings, stage(("data", "trainer"), services_of=(TRAINER,), trainer_settings=settings) as on:
        clock, folder = on.apart[TRAINER], on.platform.state.dir / "captures"
        folder.mkdir()
        source = demo.Replay(on.platform, folder, 3)
        source.start()
        try:
            until("a tree is released", lambda: _trees(on))
            figures = []
            for word, seconds in (("ahead", HOUR_S), ("behind", -HOUR_S)):
                say(f"{drill}: an hour {word}, then right")
                figures += _trainer_off(on, f"{drill}.{word}", clock, seconds)
        finally:
            source.stop()
        return figures + [
            Figure(f"{drill}.trees", _trees(on), "trees", "released in all", (">=", 1)),
            Figure(f"{drill}.do_not_count", _do_not_count(on), "records",
                   "of ap.bundles.v1, that nobody would take by a right clock", NONE),
        ]


def _trainer_off(on: Stage, name: str, clock: Clock, seconds: int) -> list[Figure]:
    """The trainer's clock is off for a while, and right again."""
    def well() -> bool:
        return health.ok(trainer_service.url(on.platform.settings) + "/healthz")

    clock.step(seconds)
    stepped = time.monotonic()
    until("it calls itself ill", lambda: not well(), 60)
    said = time.monotonic() - stepped
    on.clock.wait_s(ROWS_S)
    before = decisions(on.platform)
    on.clock.wait_s(BROKER_FOR_S)
    decided = decisions(on.platform) - before
    clock.step(-seconds)
    righted, last = time.monotonic(), decisions(on.platform)
    until("it decides again", lambda: well() and decisions(on.platform) > last)
    return [
        Figure(f"{name}.said_after", round(said, 1), "s", "until its health named the clock"),
        Figure(f"{name}.decided", decided, "decisions", f"within {BROKER_FOR_S} s of a wrong clock", NONE),
        Figure(f"{name}.again_after", round(time.monotonic() - righted, 1), "s",
               "of a right clock, until a decision was a row"),
    ]


def _trees(on: Stage) -> int:
    return int(on.platform.clickhouse.query("SELECT count() FROM oal.release WHERE slot = 'online'"))


def _do_not_count(on: Stage) -> int:
    trusted, wrong = keys.TrustedFile(str(on.platform.state.trusted_keys)).keys, 0
    for record in read_topic(on.platform, "ap.bundles.v1"):
        try:
            release.verify(release.parse(record.key(), record.value()), trusted, on.clock.now_us())
        except (release.ReleaseError, BundleError):
            wrong += 1
    return wrong
