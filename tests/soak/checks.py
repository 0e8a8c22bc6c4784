"""Whether everything that a fleet made has arrived, once: rows by table, labels, items, predictions."""

from __future__ import annotations

import sys
import time
from collections import Counter

from flow import until
from ledger import clickhouse_ledger, differences, read_topic
from oal_local.errors import PlatformError
from oal_schema import item
from oal_schema.codec import contract

from soak.figures import Figure

#: Nothing new for so long: it will not come any more.
STANDSTILL_S = 120
NONE = ("==", 0)


def say(text: str) -> None:
    print(f"soak: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def names(fleet) -> str:
    return ", ".join(f"'{ap_id}'" for ap_id in fleet.ap_ids)


def count(platform, table: str, fleet) -> int:
    return int(platform.clickhouse.query(f"SELECT count() FROM oal.{table} WHERE ap_id IN ({names(fleet)})"))


def refusals(platform, fleet) -> int:
    """Rows that say that something of these access points did not come, came late or was refused."""
    refused = platform.clickhouse.query(f"SELECT count() FROM oal.dead_letter WHERE key IN ({names(fleet)})")
    return count(platform, "gap", fleet) + count(platform, "late", fleet) + int(refused)


def flowing(platform, fleet, batches: int = 24) -> None:
    """Wait until that many more batches are rows."""
    before = until("ClickHouse answers", lambda: [count(platform, "batch", fleet)])[0]
    until(f"{batches} more batches are rows", lambda: count(platform, "batch", fleet) >= before + batches)


def last_item_us(platform, fleet) -> int:
    """Of the AP that is furthest behind; 0 while one has none."""
    found = platform.clickhouse.rows(f"SELECT ap_id, toUnixTimestamp64Micro(max(ts)) AS last FROM oal.item"
                                     f" WHERE ap_id IN ({names(fleet)}) GROUP BY ap_id")
    return min((row["last"] for row in found), default=0) if len(found) == len(fleet.ap_ids) else 0


def drained(platform, fleet, standstill_s: float = STANDSTILL_S) -> float:
    """Wait until all batches and the items of all but the last seconds are rows, or until nothing new comes any more;
    the seconds that took.
    """
    s = contract().settings
    expected = sum(ap.seq for ap in fleet.aps) * 3
    slack_us = 4_000_000 + s["label_window_us"] + s["horizon_us"] + s["loss_wait_us"]
    end_us = min(fleet.end_us(ap_id) for ap_id in fleet.ap_ids) - slack_us
    begun = moved = time.monotonic()
    before = None
    while time.monotonic() - moved < standstill_s:
        try:
            now = count(platform, "batch", fleet), last_item_us(platform, fleet), count(platform, "prediction", fleet)
        except (OSError, PlatformError):
            now = before
        if now is not None and now[0] >= expected and now[1] >= end_us and now == before:
            break
        if now != before:
            before, moved = now, time.monotonic()
        time.sleep(2)
    return time.monotonic() - begun


def _instants(platform, table: str, fleet, more: str = "") -> list[dict]:
    # Each policy has an item of an instant, known by its features: those beyond the first are not counted.
    rows = "count() - uniqExact(ts, feature_hash) + uniqExact(ts)" if table == "item" else "count()"
    return platform.clickhouse.rows(
        f"SELECT ap_id, {rows} AS rows, uniqExact(ts) AS distinct_rows, toUnixTimestamp64Micro(min(ts)) AS first,"
        f" toUnixTimestamp64Micro(max(ts)) AS last{more} FROM oal.{table} WHERE ap_id IN ({names(fleet)})"
        " GROUP BY ap_id ORDER BY ap_id")


def _once(platform, drill: str, table: str, fleet, more: str = "") -> tuple[list[dict], list[Figure]]:
    """One row an instant, from the fleet's first seconds to its last."""
    s = contract().settings
    step, slack = s["decision_interval_us"], 4_000_000 + s["label_window_us"] + s["horizon_us"] + s["loss_wait_us"]
    found = _instants(platform, table, fleet, more)
    missing = 0
    for ap_id in fleet.ap_ids:
        row = next((r for r in found if r["ap_id"] == ap_id), None)
        begin, end = fleet.begin_us(ap_id), fleet.end_us(ap_id) - slack
        if row is None:
            missing += max(0, (end - begin) // step)
            continue
        missing += (row["last"] - row["first"]) // step + 1 - row["distinct_rows"]
        missing += max(0, row["first"] - begin - 4_000_000) // step + max(0, end - row["last"]) // step
    rows = sum(r["rows"] for r in found)
    twice = rows - sum(r["distinct_rows"] for r in found)
    return found, [
        Figure(f"{drill}.{table}.rows", rows, "rows"),
        Figure(f"{drill}.{table}.missing", missing, "instants", "between the fleet's first seconds and its last", NONE),
        Figure(f"{drill}.{table}.twice", twice, "rows", "", NONE),
    ]


def complete(platform, fleet, drill: str, allowed_incomplete: int = 0) -> list[Figure]:
    """The fleet has stopped: wait for all of it, then count. `allowed_incomplete`: items."""
    took = drained(platform, fleet)
    made = fleet.rows_made()
    held = clickhouse_ledger(platform, fleet.ap_ids)
    wrong = differences(made, held)
    figures = [
        Figure(f"{drill}.drained", round(took, 1), "s", "from the end of the source until all of it was rows"),
        Figure(f"{drill}.rows", sum(made.values()), "rows", "of raw tables and `batch`, made at the source"),
        Figure(f"{drill}.rows_lost", sum(w[2] for w in wrong.values()), "rows", str(wrong) if wrong else "", NONE),
        Figure(f"{drill}.rows_twice", sum(w[3] for w in wrong.values()), "rows", "", NONE),
    ]
    figures += _once(platform, drill, "label", fleet)[1]
    items, more = _once(platform, drill, "item", fleet, ", countIf(NOT complete) AS incomplete,"
                        " countIf(lacked_input = 'yes') AS lacked")
    # The first items of an access point look back to before its start.
    early = sum(int(platform.clickhouse.query(
        f"SELECT count() FROM oal.item WHERE ap_id = '{ap}' AND NOT complete AND toUnixTimestamp64Micro(ts) <"
        f" {fleet.begin_us(ap) + 4_000_000}")) for ap in fleet.ap_ids)
    figures += more + [
        Figure(f"{drill}.item.incomplete", sum(r["incomplete"] for r in items) - early, "items",
               "after the first 4 s of each access point", ("<=", allowed_incomplete)),
        Figure(f"{drill}.item.lacked_input", sum(r["lacked"] for r in items), "items", "", ("<=", allowed_incomplete)),
    ]
    figures += _items_in_kafka(platform, fleet, drill, sum(r["rows"] for r in items))
    figures += predictions(platform, fleet, drill)
    refused = refusals(platform, fleet)
    return figures + [Figure(f"{drill}.gaps_late_refused", refused, "rows", "of gap, late and dead_letter",
                             NONE if not allowed_incomplete else None)]


def _items_in_kafka(platform, fleet, drill: str, expected: int) -> list[Figure]:
    """What a reader of committed transactions finds in training.items.v1, beside ClickHouse."""
    found: Counter = Counter()
    for record in read_topic(platform, item.topic()):
        if record.key().decode() in fleet.ap_ids:
            parsed = item.parse(record.value())
            found[parsed.ap_id, parsed.ts_us] += 1
    return [
        Figure(f"{drill}.items_in_kafka.missing", expected - len(found), "items", "of those in ClickHouse", NONE),
        Figure(f"{drill}.items_in_kafka.twice", sum(found.values()) - len(found), "items", "", NONE),
    ]


def predictions(platform, fleet, drill: str) -> list[Figure]:
    """A row a decision, the class that came true, features as the reference interpreter has them."""
    s = contract().settings
    slack = 4_000_000 + s["label_window_us"] + s["horizon_us"] + s["loss_wait_us"]
    found = platform.clickhouse.rows(
        "SELECT ap_id, count() AS rows, uniqExact(ts) AS distinct_rows,"
        " countIf(features_match = 'same') AS same, countIf(features_match = 'differ') AS differ,"
        f" countIf(features_match = 'lacked input') AS lacked FROM oal.prediction WHERE ap_id IN ({names(fleet)})"
        " GROUP BY ap_id")
    unknown = sum(int(platform.clickhouse.query(
        f"SELECT countIf(class = 'unknown') FROM oal.prediction WHERE ap_id = '{ap}' AND toUnixTimestamp64Micro(ts)"
        f" BETWEEN {fleet.begin_us(ap) + 4_000_000} AND {fleet.end_us(ap) - slack}")) for ap in fleet.ap_ids)
    decisions = sum(ap.decisions for ap in fleet.aps)
    # The decisions of the last seconds wait for items that do not come.
    waiting = len(fleet.ap_ids) * slack // s["decision_interval_us"]
    rows = sum(r["rows"] for r in found)
    return [
        Figure(f"{drill}.prediction.rows", rows, "rows", f"of {decisions} decisions"),
        Figure(f"{drill}.prediction.missing", max(0, decisions - waiting - rows), "rows",
               "of decisions before the last seconds", NONE),
        Figure(f"{drill}.prediction.twice", rows - sum(r["distinct_rows"] for r in found), "rows", "", NONE),
        Figure(f"{drill}.prediction.unknown", unknown, "rows", "no class came true, in the middle of the stream", NONE),
        Figure(f"{drill}.features.same", sum(r["same"] for r in found), "rows"),
        Figure(f"{drill}.features.differ", sum(r["differ"] for r in found), "rows", "", NONE),
        Figure(f"{drill}.features.lacked_input", sum(r["lacked"] for r in found), "rows"),
    ]
