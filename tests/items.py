"""Labels and items, of which there is one per access point and decision instant."""

from __future__ import annotations

from collections import Counter

from flow import until
from ledger import read_topic
from oal_schema import item
from oal_schema.codec import contract


def instants(platform, table: str, fleet) -> list[tuple[str, int, int, int, int]]:
    """(ap_id, rows, distinct instants, first instant, last instant), µs. Each policy has an item of an instant,
    told by its features: those beyond the first are not counted, one that is there twice is.
    """
    rows = "count() - uniqExact(ts, feature_hash) + uniqExact(ts)" if table == "item" else "count()"
    names = ", ".join(f"'{a}'" for a in fleet.ap_ids)
    answer = platform.clickhouse.query(
        f"SELECT ap_id, {rows}, uniqExact(ts), toUnixTimestamp64Micro(min(ts)), toUnixTimestamp64Micro(max(ts))"
        f" FROM oal.{table} WHERE ap_id IN ({names}) GROUP BY ap_id ORDER BY ap_id")
    return [(ap, *map(int, rest)) for ap, *rest in (line.split("\t") for line in answer.splitlines())]


def until_items_drained(platform, fleet) -> None:
    """Wait for the items whose label window ended well before the source did; the last ones wait for a watermark that
    no longer comes.
    """
    s = contract().settings
    slack_us = 4_000_000 + s["label_window_us"] + s["horizon_us"] + s["loss_wait_us"]
    until(
        "items up to the end of the source", lambda: len(found := instants(platform, "item", fleet)) == len(
            fleet.ap_ids) and all(last >= fleet.end_us(ap) - slack_us for ap, _, _, _, last in found))


def _assert_once(platform, table: str, fleet, contiguous: bool) -> None:
    interval = contract().settings["decision_interval_us"]
    found = instants(platform, table, fleet)
    assert [ap for ap, *_ in found] == sorted(fleet.ap_ids)
    for ap, rows, distinct, first, last in found:
        assert rows == distinct, f"{rows - distinct} {table} rows of {ap} are there twice"
        expected = (last - first) // interval + 1
        assert not contiguous or distinct == expected, f"{table} of {ap}: {distinct} instants of {expected}"
        assert first <= fleet.begin_us(
            ap) + 4_000_000, f"{table} of {ap} begin {first - fleet.begin_us(ap)} µs after its data"


def assert_instants_once(platform, fleet, contiguous: bool) -> None:
    """One label and one item per decision instant, in ClickHouse and in training.items.v1. `contiguous`: none left out
    either; a capture that starts over has a seam."""
    _assert_once(platform, "label", fleet, contiguous)
    _assert_once(platform, "item", fleet, contiguous)
    in_kafka: Counter = Counter()
    for record in read_topic(platform, item.topic()):
        found = item.parse(record.value())
        assert found.ap_id == record.key().decode()
        in_kafka[found.ap_id] += 1
    for ap in fleet.ap_ids:
        rows = int(platform.clickhouse.query(f"SELECT count() FROM oal.item WHERE ap_id = '{ap}'"))
        assert in_kafka[ap] == rows, f"{item.topic()} holds {in_kafka[ap]} items of {ap}, ClickHouse {rows}"
