"""Rows of access points at work, made by ClickHouse itself: SELECTs whose columns are those of the tables, in order.

Used by the tests and the samples in README.md (two minutes) and by the benchmark (an hour), and the same each time:
every number comes from cityHash64 of its position, none from a clock or rand(). Synthetic, and shaped after the
contract: batches of 63 ticks, a keyframe of every live entity at each batch's first tick, counters that only grow, rows
in between where something changed. Rows a second of one AP: station 79, station_ac 198, queue 32, channel 32, beacon
79, packet 300, flow 99, drop_event 4, health 1, neighbour_ap 8, label 10, item 10, decision 10, prediction 10, batch 9,
loss_event 2;
of one with online trees, and so a policy, also control 1, tree_decision 1, action 1 (0 while nothing is clamped).

APs whose number is a multiple of 3 are congested (backlog, drops, loss); those with number mod 3 = 1 have a bad link.

In the expressions below: a is the AP's number (from 1), m the batch, e the entity, j the row in the batch, n the
entity's row since the start, h a hash of all of these, tick the row's tick in its batch, f the flow.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ap_columns import (  # noqa: E402
    AP_ID,
    BAD_LINK,
    BATCH_US,
    BEACON,
    BOOT_ID,
    CHANNEL,
    CONGESTED,
    COUNTER_REFRESH,
    DROP_EVENT,
    FLOW_STATE,
    FLOWS,
    HEALTH,
    INSTANT_US,
    ITEM,
    LABEL,
    LOSS_EVENT,
    NEIGHBOUR_AP,
    PACKET,
    PACKETS,
    PLACE,
    QUEUE,
    STATION,
    STATION_AC,
    STATIONS,
    TICK_US,
    WAVE,
)
from columns import Contract  # noqa: E402
from model_columns import (  # noqa: E402
    ACTION,
    BUNDLE_STATUS,
    CLAMPS,
    CONTROL,
    DECISION,
    PREDICTION,
    REGISTRY,
    RELEASE,
    ROLLOUT,
    SENDER_SESSION,
    SENDER_TCP,
    TREE_DECISION,
)


def batch(t0_us: int) -> dict[str, str]:
    """One record of samples and one of packets a batch (e = 0, 1), one of events every fourth (e = 2)."""
    start = f"({t0_us} + m * {BATCH_US})"
    return PLACE | {
        "ts": f"fromUnixTimestamp64Micro({start}, 'UTC')",
        "topic": "arrayElement(['ap.samples.v1', 'ap.packets.v1', 'ap.events.v1'], 1 + e)",
        "boot_id": BOOT_ID,
        "seq": "if(e = 2, intDiv(m, 4), m)",
        "ticks": "if(e = 2, 252, 63)",
        "ticks_missed": "0",
        "tick_late_max_us": "toUInt32(h % 400)",
        "ring_drops": "0",
        "rows_dropped": "0",
        "dumps_interrupted": "0",
        "clock_state": "1",
        "clock_error_us": "toUInt32(200 + h % 90)",
        "rows": "toUInt32(arrayElement([105, 101, 1], 1 + e))",
        "bytes": "toUInt32(arrayElement([4200, 6100, 300], 1 + e) + h % 500)",
        "kafka_ts": f"fromUnixTimestamp64Milli(intDiv({start}, 1000) + ticks * 4 + 5 + h % 40, 'UTC')",
        "kafka_partition": "a % 8",
        "kafka_offset": "m * 3 + e",
    }


def _select(types: dict[str, str], columns: dict[str, str], source: str) -> str:
    """The table's columns in its order. One that nothing is made up for has its type's default value."""
    unknown = columns.keys() - types.keys()
    if unknown:
        raise ValueError(f"no table has the columns {sorted(unknown)}")

    def made(name: str, type_: str) -> str:
        escaped = type_.replace("'", "\\'")
        return columns.get(name, f"defaultValueOfTypeName('{escaped}')")

    return f"SELECT {', '.join(f'{made(n, ty)} AS {n}' for n, ty in types.items())} FROM {source}"


def selects(aps: int, t0_us: int, first_batch: int, batches: int) -> dict[str, str]:
    """table → SELECT of the rows of `batches` batches of every AP, from batch number `first_batch`, whose time is
    t0_us + number * 252 ms.
    """

    def positions(table: str, entities: int, rows: int) -> str:
        """A row per AP, batch, entity and row of the batch, in the order in which rows arrive. The first row is the
        keyframe.
        """
        between = max(1, rows - 1)
        return f"""(
            SELECT
                1 + intDiv(number, {batches * entities * rows}) AS a,
                {first_batch} + intDiv(number, {entities * rows}) % {batches} AS m,
                intDiv(number, {rows}) % {entities} AS e, number % {rows} AS j,
                cityHash64(a, m, e, j, '{table}') AS h, m * {rows} + j AS n,
                if(j = 0, 0, 1 + intDiv((j - 1) * 62, {between}) + h % {62 // between}) AS tick
            FROM numbers({aps * batches * entities * rows})
        )"""

    def instants() -> str:
        """A row per AP and decision instant, with what was offered and lost in the second that follows."""
        each = batches * BATCH_US // INSTANT_US
        first = -(-(t0_us + first_batch * BATCH_US) // INSTANT_US)
        return f"""(
            SELECT
                1 + intDiv(number, {each}) AS a, ({first} + number % {each}) * {INSTANT_US} AS us,
                cityHash64(a, us, 'label') AS h,
                if({CONGESTED}, pow({WAVE.format('a').replace('m /', '(us / 252000) /')}, 3) * 0.16, 0.002) AS level,
                toUInt32(180 + h % 40) AS offered, toUInt32(offered * if({BAD_LINK}, 0.02, 0.001)) AS mac_lost,
                mac_lost + toUInt32(offered * level * (0.8 + (h % 40) / 100)) AS lost,
                (lost - mac_lost) / offered AS ratio
            FROM numbers({aps * each})
        )"""

    def shipped() -> str:
        """A row per AP and tree that was shipped, at the instant at which it is applied."""
        return f"(SELECT * FROM {instants()} WHERE us % 40000000 = 0 AND NOT {REGISTRY})"

    def raw(columns: dict[str, str], source: str, offset_us: str = f"tick * {TICK_US}") -> tuple[dict[str, str], str]:
        head = {
            "ap_id": AP_ID, "ts": f"fromUnixTimestamp64Micro({t0_us} + m * {BATCH_US} + {offset_us}, 'UTC')",
            "boot_id": BOOT_ID, "batch_seq": "m"
        }
        return head | columns, source

    second_best_effort = (
        "(SELECT *, if(e >= 40, 31 + h % 31, 0) AS tick2, m * 2 + if(e >= 40, 1, 0) AS n2 FROM"
        f" {positions('station_ac', 5 * STATIONS, 1)})"
    )
    rows = {
        "station": raw(STATION, positions("station", STATIONS, 2)),
        "station_ac": raw(STATION_AC, second_best_effort, f"tick2 * {TICK_US}"),
        "channel": raw(CHANNEL, positions("channel", 1, 8)),
        "queue": raw(QUEUE, positions("queue", 2, 4)),
        "beacon": raw(BEACON, positions("beacon", 20, 1)),
        "packet": raw(
            PACKET,
            f"(SELECT *, cityHash64(h, 'f') % {FLOWS} AS f FROM {positions('packet', 1, PACKETS)})",
            "j * 3315 + h % 3315",
        ),
        "flow": raw(FLOW_STATE, f"(SELECT *, e AS f FROM {positions('flow', FLOWS, 1)})"),
        "drop_event": raw(DROP_EVENT, positions("drop_event", 1, 1)),
        "health": raw(HEALTH, f"(SELECT * FROM {positions('health', 1, 1)} WHERE m % 4 = 0)"),
        "counter_refresh": raw(COUNTER_REFRESH, positions("counter_refresh", 2, 1)),
        "control": raw(CONTROL, f"(SELECT * FROM {positions('control', 1, 1)} WHERE m % 4 = 0 AND NOT {REGISTRY})"),
        "action": raw(
            ACTION,
            f"(SELECT *, h % {FLOWS} AS f, {t0_us} + m * {BATCH_US} AS us FROM {positions('rewrite', 1, 1)} WHERE m % 4"
            f" = 0 AND NOT {REGISTRY} AND {CLAMPS} > 0)",
        ),
        "neighbour_ap": raw(NEIGHBOUR_AP, positions("neighbour_ap", 2, 1)),
        "label": (LABEL, instants()),
        "loss_event": (LOSS_EVENT, f"(SELECT *, h % {FLOWS} AS f FROM {instants()} WHERE lost > 0 AND h % 3 = 0)"),
        "item": (ITEM, instants()),
        "decision": (
            {
                "ap_id": AP_ID,
                "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
                "boot_id": BOOT_ID,
                "batch_seq": f"intDiv(us - {t0_us}, 1000000)",
            }
            | DECISION,
            instants(),
        ),
        "prediction": (PREDICTION, instants()),
        "tree_decision": (
            TREE_DECISION, f"(SELECT * FROM {instants()} WHERE us % 1000000 = 0 AND NOT {REGISTRY})"
        ),
        "release": (RELEASE, shipped()),
        "bundle_status": (
            {
                "ap_id": AP_ID,
                "ts": "fromUnixTimestamp64Micro(us, 'UTC')",
                "boot_id": BOOT_ID,
                "batch_seq": f"intDiv(us - {t0_us}, 1000000)",
            }
            | BUNDLE_STATUS,
            shipped(),
        ),
        "rollout": (ROLLOUT, shipped()),
        "sender_tcp": (SENDER_TCP, f"(SELECT * FROM {instants()} WHERE a = 1)"),
        "sender_session": (SENDER_SESSION, f"(SELECT * FROM {instants()} WHERE a = 1 AND us % 1000000 = 0)"),
        "batch": (batch(t0_us), f"(SELECT * FROM {positions('batch', 3, 1)} WHERE e < 2 OR m % 4 = 0)"),
    }
    types = Contract().types
    return {table: _select(types(table), *of) for table, of in rows.items()}
