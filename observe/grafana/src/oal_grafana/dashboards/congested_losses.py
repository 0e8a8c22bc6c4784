""""Queue or air, for this user", of "Where is it congested, and why?": losses by station and cause (loss_event)."""
from oal_grafana import panels as p
from oal_grafana.board import Board
from oal_grafana.colours import ALARM, MAGENTA, PLAIN, TEAL, WARN
from oal_grafana.dashboards.congested_detail import CHOSEN, UNKNOWN
from oal_grafana.sql import ONE, by_resolution, from_of_last, rows_of_last

#: Losses are raw rows: at most so much of the range is read, and each text says so.
LAST = "1 DAY"
COUNTED = "queue_counter != 'none' AND mac_failed_pkts IS NOT NULL"
CAUSES = {
    "queue": "cause = 'queue'", "air": "cause = 'air'", "either": "cause = 'both'",
    "not_here": f"cause = 'unknown' AND {COUNTED}", "not_counted": f"cause = 'unknown' AND NOT ({COUNTED})"
}
#: With fewer in all nothing is said of a station.
FEW = 10
NOTE = f"""-- Losses are raw rows: of the last day of the range. A station that told of itself and lost nothing has 0.
WITH lost AS (
  SELECT toDateTime(ts) AS t, if(station_mac = 0, '{UNKNOWN}', MACNumToString(station_mac)) AS station,
    {', '.join(f'pkts * ({when}) AS {cause}' for cause, when in CAUSES.items())},
    if(cause = 'queue', dateDiff('microsecond', seen, ts) / 1000, NULL) AS queued_ms,
    dateDiff('microsecond', ts, resent) / 1000 AS known_ms
  FROM oal.loss_event WHERE {rows_of_last(LAST)} AND {ONE}
), told AS (
  SELECT toDateTime(t) AS t, station, tx_pkts
  FROM {by_resolution('station', f'{ONE} AND {CHOSEN} AND t >= {from_of_last(LAST)}', 't, station, tx_pkts')}
)"""
SUMS = ", ".join(f"sum({cause}) AS {cause}" for cause in CAUSES)
NONE = ", ".join(f"0 AS {cause}" for cause in CAUSES)


def _over_time(select: str, columns: str = "", where: str = "") -> str:
    """Segments a second; `columns` come after the time, `where` limits the stations."""
    by = f"time{columns}"
    return f"""{NOTE}
SELECT {by}, {select}
FROM (
  SELECT $__timeInterval(t) AS time, station, {', '.join(CAUSES)} FROM lost WHERE {CHOSEN}
  UNION ALL
  SELECT $__timeInterval(t) AS time, station, {NONE} FROM told
) {where} GROUP BY {by} ORDER BY {by}"""


def _rates(*causes: str) -> str:
    return ", ".join(f"sum({cause}) / $__interval_s AS `{cause.replace('_', ' ')}`" for cause in causes)


USERS = f"""{NOTE}
SELECT station,
  multiIf(queue + air + either = 0, if(not_counted > 0, 'not known', 'nowhere'),
    queue + air + either < {FEW}, 'too few',
    queue >= 2 * air, 'queue', air >= 2 * queue, 'air', 'both') AS lost_in,
  queue AS lost_in_queue, air AS lost_on_air, either, not_here, not_counted,
  (queue + air + either) / nullIf(frames, 0) AS loss, queued_p50_ms, known_after_p50_ms
FROM (
  SELECT station, {SUMS}, sum(tx_pkts) AS frames, quantileOrNull(0.5)(queued_ms) AS queued_p50_ms,
    quantileOrNull(0.5)(known_ms) AS known_after_p50_ms
  FROM (
    SELECT station, {', '.join(CAUSES)}, 0 AS tx_pkts, queued_ms, known_ms FROM lost WHERE {CHOSEN}
    UNION ALL
    SELECT station, {NONE}, tx_pkts, NULL AS queued_ms, NULL AS known_ms FROM told
  ) GROUP BY station
) ORDER BY queue + air + either DESC, station LIMIT 50"""


def add(b: Board) -> None:
    """Put them on the board."""
    b.row("Queue or air, for this user")
    b.add(
        p.series(
            "Queue or air: lost a second",
            "Downlink segments that TCP sent again, by what had dropped them, of the stations chosen above (choose one:"
            " this user). *queue*: too much traffic for the air that it gets; *air*: frames given up, look at signal"
            " and interference. *not here*: lost behind the access point, or not lost. At most the last day shown.",
            _over_time(_rates(*CAUSES)),
            "count:/s",
            "lost",
            colours={"queue": WARN, "air": ALARM, "either": MAGENTA, "not here": TEAL, "not counted": PLAIN},
            stack=True,
            bars=True,
            finest="10s",
        ),
        p.series(
            "Queue or air, by station",
            "The same of the four stations that lose most. One station on *air* alone: its link, not the network."
            " All on *queue*: the access point has too little air for them. At most the last day shown.",
            _over_time(
                _rates("queue", "air"), ", station",
                f"WHERE station IN (SELECT station FROM lost WHERE {CHOSEN} GROUP BY station ORDER BY"
                " sum(queue + air) DESC, station LIMIT 4)"),
            "count:/s",
            "lost",
            name="${__field.labels.station} ${__field.name}",
            long_names=True,
        ),
        p.rows(
            "Queue or air, for this user",
            "What each station lost, and where, at most the last day shown. *Lost in* says air or queue where one is"
            " twice the other. *Either*: times do not tell. *Not here*: counters stood still, so it was lost behind the"
            " access point or not at all. *Not counted*: the driver has no such counters. What to do:"
            " docs/loss-cause.md.",
            USERS,
            {"loss": "percentunit", "queued_p50_ms": "ms", "known_after_p50_ms": "ms"},
            size=(24, 7),
            coloured={"loss": p.rising(0.01, 0.05)},
        ),
    )
