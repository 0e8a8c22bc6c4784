"""The lower part of "Where is it congested, and why?": one access point, its stations, one flow."""
from oal_grafana import panels as p
from oal_grafana.board import DETAIL, Board, variable
from oal_grafana.colours import ACCEPTABLE, ALARM, OK, PLAIN, TEAL, WARN
from oal_grafana.sql import ONE, RANGE, RESOLUTION, SHORT, by_resolution, last_of_range, may_be_empty

#: Flows whose station is not known have this one.
UNKNOWN = "unknown"
STATIONS = f"""SELECT station FROM (
  SELECT MACNumToString(mac) AS station, toFloat64(max(s.tx_bytes)) AS sent FROM oal.station_1m AS s
  WHERE $__timeFilter(t) AND {ONE} GROUP BY mac
  UNION ALL
  SELECT '{UNKNOWN}' AS station, -1 AS sent
) ORDER BY sent DESC, station LIMIT 500"""
CHOSEN = "station IN (${station:singlequote})"
FLOWS = f"""(SELECT * REPLACE if(station = '', '{UNKNOWN}', station) AS station
FROM oal.v_flows({last_of_range('1 HOUR')}) WHERE {ONE})"""
FLOW_IDS = f"SELECT DISTINCT flow FROM (SELECT flow FROM {FLOWS} WHERE {CHOSEN} LIMIT 200)"

#: The minutes of the one flow, with what its counters grew by since the minute before.
MINUTES = f"""(
  SELECT t, direction, rtt_min, rtt_mean, rtt_max,
    sent - lagInFrame(sent, 1, sent) OVER (PARTITION BY direction ORDER BY t) AS sent_grown,
    again - lagInFrame(again, 1, again) OVER (PARTITION BY direction ORDER BY t) AS again_grown,
    delivered - lagInFrame(delivered, 1, delivered) OVER (PARTITION BY direction ORDER BY t) AS delivered_grown
  FROM (
    SELECT t, if(direction = 0, 'down', 'up') AS direction, toInt64(max(f.sent_pkts)) AS sent,
      toInt64(max(f.retrans_pkts)) AS again, toInt64(max(f.delivered_bytes)) AS delivered,
      toFloat64(min(f.rtt_down_us_min)) AS rtt_min, toFloat64(max(f.rtt_down_us_max)) AS rtt_max,
      sum(f.rtt_down_us_sum) / nullIf(sum(f.rtt_down_rows), 0) AS rtt_mean
    FROM oal.flow_1m AS f WHERE $__timeFilter(t) AND {ONE} AND lower(hex(flow_id)) = ${{flow:singlequote}}
    GROUP BY t, direction
  )
)"""


def variables() -> list:
    return [
        variable("detail", "In detail", "The access point of the lower half, the worst one first", DETAIL, many=False),
        variable("station", "Station", "Stations of the access point in detail, the busiest first", STATIONS),
        variable("flow", "Flow", "Flows of these stations in the last hour shown, most inflated round trip first",
                 FLOW_IDS, many=False)
    ]


def _ap(select: str, view: str = "ap") -> str:
    """Over time, of the access point in detail."""
    return (
        f"{RESOLUTION}\nSELECT $__timeInterval(t) AS time, {select}\nFROM {by_resolution(view, ONE)} AS x GROUP BY time"
        " ORDER BY time"
    )


def _per_station(value: str, view: str, top: str) -> str:
    """The eight stations that matter most, and a line each."""
    rows = by_resolution(
        view, f"{ONE} AND {CHOSEN}",
        "t, station, span_s, tx_airtime_us, rx_airtime_us" if view == "station" else "t, station, backlog_bytes_avg")
    return f"""{RESOLUTION}
WITH x AS {rows}
SELECT $__timeInterval(t) AS time, station, {value} AS figure FROM x
WHERE station IN (SELECT station FROM x GROUP BY station ORDER BY {top} DESC, station LIMIT 8) GROUP BY time, station \
ORDER BY time, station"""


def _flow(select: str) -> str:
    """Over time, of the one flow."""
    return may_be_empty(
        "no flow is chosen, or its addresses are deleted after seven days",
        f"SELECT $__timeInterval(t) AS time, direction, {select}\nFROM {MINUTES} GROUP BY time, direction ORDER BY"
        " time, direction")


def add(b: Board) -> None:
    """Put the access point and its stations on the board."""
    b.row("Why: $detail")
    b.add(
        p.series(
            "Queue backlog",
            "Bytes that wait in station queues and queueing disciplines. Standing high: a bottleneck, every packet"
            " waits; peaks only: bursts, harmless.",
            _ap("avg(backlog_bytes_avg) AS mean, max(backlog_bytes_max) AS largest"),
            "bytes",
            "waiting",
            colours={"mean": WARN, "largest": PLAIN},
            finest="1s",
        ),
        p.series(
            "Channel",
            "Share of time that the channel was busy, and by whom. *other* high: neighbours or interference, change the"
            " channel; *sending* high: own traffic, more width or fewer stations.",
            _ap(
                "sum(busy_ms) / nullIf(sum(active_ms), 0) AS busy, sum(tx_ms) / nullIf(sum(active_ms), 0) AS sending,"
                " sum(rx_ms) / nullIf(sum(active_ms), 0) AS receiving,\n  greatest(0, sum(busy_ms) - sum(ifNull(tx_ms,"
                " 0)) - sum(ifNull(rx_ms, 0))) / nullIf(sum(active_ms), 0) AS other",
                "channel",
            ),
            "percentunit",
            "share of time",
            colours={"busy": PLAIN, "sending": OK, "receiving": ACCEPTABLE, "other": WARN},
            most=1,
            finest="1s",
        ),
        p.series(
            "Retries and failures",
            "Of the MAC: retries over attempts, frames given up over frames. Retries above 30 %: weak stations or"
            " interference; failures are loss on the air.",
            _ap(
                "sum(tx_retries) / nullIf(sum(tx_pkts) + sum(tx_retries), 0) AS retries, sum(tx_failed) /"
                " nullIf(sum(tx_pkts), 0) AS failed"
            ),
            "percentunit",
            "ratio",
            colours={"retries": WARN, "failed": ALARM},
            finest="1s",
        ),
        p.series(
            "Throughput",
            "Of all stations, as the MAC counts it. Flat on top with a backlog: this is the capacity.",
            f"""{RESOLUTION}
SELECT $__timeInterval(t) AS time, avg(x.tx_bytes * 8 / seconds) AS down, avg(x.rx_bytes * 8 / seconds) AS up
FROM (SELECT *, if({SHORT}, 1, 60) AS seconds FROM {by_resolution('ap', ONE)}) AS x GROUP BY time ORDER BY time""",
            "bps",
            "throughput",
            colours={"down": OK, "up": TEAL},
            finest="1s",
        ),
        p.series(
            "Airtime by station",
            "Share of time that the eight stations with the most airtime took. A station with much airtime and little"
            " data is slow: bad signal or an old device.",
            _per_station(
                # What a station's first row of the range grew by, nobody knows over how long: its span_s is 0.
                "sumIf(tx_airtime_us + rx_airtime_us, span_s > 0) / 1e6 / nullIf(sumIf(span_s, span_s > 0), 0)",
                "station",
                "sum(tx_airtime_us + rx_airtime_us)",
            ),
            "percentunit",
            "share of time",
            name="${__field.labels.station}",
            stack=True,
            finest="1s",
        ),
        p.series(
            "Transmit queue by station",
            "Bytes that wait for each of eight stations (all access categories). One line alone: that station cannot"
            " take what is sent to it.",
            _per_station(
                "sum(ifNull(backlog_bytes_avg, 0)) / uniqExact(t)",
                "station_ac",
                "sum(ifNull(backlog_bytes_avg, 0))",
            ),
            "bytes",
            "waiting",
            name="${__field.labels.station}",
            stack=True,
            finest="1s",
        ),
        p.rows(
            "How long packets wait",
            "By queue, whole minutes (Little's law). Tens of milliseconds in *BE*: every user feels it.",
            "SELECT source, queue, backlog_bytes_avg, backlog_bytes_max, pkts_per_s, delay_avg_ms, delay_max_ms, drops"
            f" FROM oal.v_queue_delay({RANGE}) WHERE {ONE} LIMIT 50",
            {
                "backlog_bytes_avg": "bytes",
                "backlog_bytes_max": "bytes",
                "pkts_per_s": "count:/s",
                "delay_avg_ms": "ms",
                "delay_max_ms": "ms",
            },
            size=(24, 7),
            coloured={"delay_avg_ms": p.rising(25, 100)},
        ),
        p.rows(
            "Stations",
            "Airtime against data, time shown. *Data per airtime* low with a good signal: look at the device, with a"
            " bad one: at the coverage.",
            "SELECT station, airtime_share, bytes_share, megabytes, mbit_per_airtime_s, signal_dbm_avg FROM"
            f" oal.v_airtime({RANGE}) WHERE {ONE} AND {CHOSEN} LIMIT 50",
            {
                "airtime_share": "percentunit",
                "bytes_share": "percentunit",
                "megabytes": "decmbytes",
                "mbit_per_airtime_s": "Mbits",
                "signal_dbm_avg": "dBm",
            },
            size=(24, 7),
            coloured={"signal_dbm_avg": p.falling(-80, -70)},
        ),
        p.rows(
            "Flows that suffer",
            "TCP flows of this access point, at most the last hour of the time shown; most inflated round trip first."
            " *RTT over least* of 5 means that packets wait four times as long as they travel."
            " Addresses are kept for seven days.",
            may_be_empty(
                "after seven days addresses, and with them flows, are deleted",
                f"""SELECT flow, client, server, data, station, sent_pkts, retrans_ratio, rtt_min_ms, rtt_avg_ms, \
rtt_max_ms, rtt_inflation
FROM {FLOWS} WHERE {CHOSEN} LIMIT 50""",
            ),
            {"retrans_ratio": "percentunit", "rtt_min_ms": "ms", "rtt_avg_ms": "ms", "rtt_max_ms": "ms"},
            coloured={"rtt_inflation": p.rising(3, 8), "retrans_ratio": p.rising(0.01, 0.05)},
        ),
    )


def add_flow(b: Board) -> None:
    """Put the one flow on the board."""
    b.row("One flow: $flow", collapsed=True)
    b.add(
        p.series(
            "Throughput of the flow",
            "Bytes that its receiver acknowledged, by direction, whole minutes. Flat while the round trip grows: the"
            " queue takes what the air does not.",
            _flow("sum(delivered_grown) * 8 / (60 * uniqExact(t)) AS throughput"),
            "bps",
            "throughput",
            name="${__field.labels.direction}",
            size=(8, 8),
        ),
        p.series(
            "Segments of the flow sent again",
            "Share of its segments that repeat payload. Above 1 %: it loses; see *Lost in queues* and *Lost on the"
            " air* above for where.",
            _flow("sum(again_grown) / nullIf(sum(sent_grown), 0) AS again"),
            "percentunit",
            "sent again",
            name="${__field.labels.direction}",
            size=(8, 8),
        ),
        p.series(
            "Round trip of the flow",
            "From the access point to the receiver and back: least, mean, largest. Mean far above least: its packets"
            " wait in the queue.",
            _flow("min(rtt_min) AS least, avg(rtt_mean) AS mean, max(rtt_max) AS largest"),
            "µs",
            "round trip",
            name="${__field.labels.direction} ${__field.name}",
            size=(8, 8),
        ),
    )
