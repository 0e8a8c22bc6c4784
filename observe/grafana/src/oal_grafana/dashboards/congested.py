"""Where is it congested, and why?"""
from oal_grafana import panels as p
from oal_grafana.board import Board, radio_variables
from oal_grafana.colours import CLASS_NAMES, CLASSES, POOR, TEAL
from oal_grafana.dashboards import congested_detail, congested_losses
from oal_grafana.events import EVENTS, GUARD
from oal_grafana.sql import APS, CLASS_BOUNDS, FROM, NEVER, SHORT, TO, WORST_FIRST, known, latest

LABELS = f"FROM oal.label_1m WHERE $__timeFilter(t) AND {APS}"
NOW = f"FROM oal.label_1m WHERE {latest(5)} AND {APS}"
CLASS_COLOURS = dict(zip(CLASS_NAMES, CLASSES))
LOSS = "sum(congestion_lost_pkts) / nullIf(sum(offered_pkts), 0)"
ACCEPTABLE_FROM, POOR_FROM, BAD_FROM = CLASS_BOUNDS
CLASS_OF = f"multiIf(loss < {ACCEPTABLE_FROM}, 0, loss < {POOR_FROM}, 1, loss < {BAD_FROM}, 2, 3)"

#: Rows of the heat map, lowest first: (name, from, to).
BUCKETS = (("0", 0, 1e-9), ("to 1 %: Good", 1e-9, ACCEPTABLE_FROM), ("to 5 %: Acceptable", ACCEPTABLE_FROM, POOR_FROM),
           ("to 12 %: Poor", POOR_FROM, BAD_FROM), ("to 25 %: Bad", BAD_FROM, 0.25), ("above 25 %: Bad", 0.25, 9))
HEAT = ", ".join(f"countIf(loss >= {low} AND loss < {high}) AS `{name}`" for name, low, high in BUCKETS)

CDF_POINTS = (0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.08, 0.12, 0.2, 0.4)
CDF = f"""-- Up to an hour from single windows of a second, beyond that from access \
points' minutes: at most 36 million rows with 1,000 access points.
WITH [{', '.join(map(str, CDF_POINTS))}] AS points
SELECT concat(toString(round(point * 100, 1)), ' %') AS `loss at most`, \
sum(w.n * (w.ratio <= point)) / sum(w.n) AS `all chosen`, sumIf(w.n * (w.ratio <= point), w.worst) / \
nullIf(sumIf(w.n, w.worst), 0) AS `worst access point`
FROM (
  SELECT ratio, n, ap_id IN (SELECT ap_id {LABELS} GROUP BY ap_id {WORST_FIRST} LIMIT 1) AS worst
  FROM (
    SELECT ap_id, loss_ratio AS ratio, 1 AS n FROM oal.label
    WHERE ts >= if({SHORT}, {FROM}, {NEVER}) AND ts <= {TO} AND {APS} AND complete AND offered_pkts > 0
    UNION ALL
    SELECT ap_id, congestion_lost_pkts / offered_pkts AS ratio, windows AS n FROM oal.label_1m
    WHERE t >= if({SHORT}, toDateTime('2100-01-01 00:00:00'), $__fromTime) AND t <= $__toTime AND {APS} \
AND offered_pkts > 0
  )
) AS w ARRAY JOIN points AS point GROUP BY point ORDER BY point"""

WORST = f"""SELECT any(l.site) AS site, ap_id, round(sum(l.poor + l.bad) / sum(l.windows), 4) AS poor_or_bad, \
round(sum(l.congestion_lost_pkts) / nullIf(sum(l.offered_pkts), 0), 4) AS congestion_loss,
  round(sum(l.mac_lost_pkts) / nullIf(sum(l.offered_pkts), 0), 4) AS loss_on_air,
  multiIf(sum(l.congestion_lost_pkts) + sum(l.mac_lost_pkts) = 0, 'nowhere', \
sum(l.congestion_lost_pkts) >= 2 * sum(l.mac_lost_pkts), 'queue', \
sum(l.mac_lost_pkts) >= 2 * sum(l.congestion_lost_pkts), 'air', 'both') AS lost_in,
  sum(l.queue_drop_pkts) AS queue_drops, round(sum(l.offered_bytes) * 8 / 1e6 / nullIf(sum(l.tiles), 0), 2) AS \
mbit_per_s, sum(l.incomplete) AS incomplete_windows
FROM oal.label_1m AS l WHERE $__timeFilter(t) AND {APS} GROUP BY ap_id \
ORDER BY poor_or_bad DESC, congestion_loss DESC NULLS LAST, ap_id LIMIT 50"""

CLASSES_BY_AP = f"""-- The 40 access points with the largest share of Poor and Bad windows. The class is that of the \
interval's loss ratio.
SELECT time, ap_id, toInt8({CLASS_OF}) AS class
FROM (
  SELECT $__timeInterval(t) AS time, ap_id, ifNull({LOSS}, 0) AS loss FROM oal.label_1m
  WHERE $__timeFilter(t) AND ap_id IN (SELECT ap_id {LABELS} GROUP BY ap_id {WORST_FIRST} LIMIT 40) GROUP BY time, ap_id
) ORDER BY time, ap_id"""


def verdicts() -> list:
    """The figures that answer the question."""
    return [
        p.dial(
            "Poor or Bad now",
            "Share of label windows (one second) that were Poor or Bad in the last five minutes shown. Above 5 %: see"
            " which access points in *Worst access points*.",
            f"SELECT sum(poor + bad) / nullIf(sum(windows), 0) AS share {NOW}",
            "percentunit",
            p.rising(0.05, 0.2),
            0,
            1,
        ),
        p.number(
            "Access points Poor or Bad",
            "Access points with a loss ratio of 5 % or more in the last five minutes shown.",
            f"SELECT {known(f'countIf(loss >= {POOR_FROM})')} AS aps"
            f" FROM (SELECT ap_id, {LOSS} AS loss {NOW} GROUP BY ap_id)",
            "none",
            p.rising(1, 5),
        ),
        p.number(
            "Worst loss",
            "Largest congestion-loss ratio of an access point in the last five minutes shown. From 5 % it is Poor, from"
            " 12 % Bad: TCP has halved its rate long before.",
            f"SELECT max(loss) AS loss FROM (SELECT ap_id, {LOSS} AS loss {NOW} GROUP BY ap_id)",
            "percentunit",
            p.rising(POOR_FROM, BAD_FROM),
            decimals=1,
        ),
        p.number(
            "Lost in queues",
            "Segments lost to congestion over segments offered, all chosen access points, time shown. If this leads:"
            " less queue, more air (channel, width), or control.",
            f"SELECT {LOSS} AS loss {LABELS}",
            "percentunit",
            p.rising(0.01, 0.05),
            decimals=2,
        ),
        p.number(
            "Lost on the air",
            "Frames that the MAC gave up over segments offered. If this leads, it is no congestion: look at signal,"
            " interference and rate control.",
            f"SELECT sum(mac_lost_pkts) / nullIf(sum(offered_pkts), 0) AS loss {LABELS}",
            "percentunit",
            p.rising(0.01, 0.05),
            decimals=2,
        ),
        p.number(
            "Incomplete windows",
            "Windows with a gap: their class may be wrong. If it grows, first see *Is data arriving?*.",
            f"SELECT sum(incomplete) / nullIf(sum(windows), 0) AS share {LABELS}",
            "percentunit",
            p.rising(0.01, 0.1),
            decimals=2,
        ),
    ]


def board():
    b = Board("oal-congested",
              "Which access points lose packets to congestion, and whether queue, air or stations are the cause.",
              variables=[*radio_variables(), *congested_detail.variables()], annotations=(*EVENTS, GUARD))
    b.row("Is it good?")
    b.add(*verdicts()).add_firing()
    b.row("The fleet")
    b.add(
        p.heat_map(
            "Access points by loss",
            "How many access points had which congestion-loss ratio. The upper three rows are Poor and Bad; a bright"
            " row that moves up together is a common cause (uplink, server, an event).",
            f"""SELECT time, {HEAT}
FROM (SELECT $__timeInterval(t) AS time, ap_id, ifNull({LOSS}, 0) AS loss {LABELS} GROUP BY time, ap_id) GROUP BY time \
ORDER BY time""",
            "access points",
            "loss ratio",
            size=(12, 9),
        ),
        p.series(
            "Windows by class",
            "Share of all label windows by class. Thick orange and red: congestion is wide, not just at one access"
            " point.",
            "SELECT $__timeInterval(t) AS time, sum(good) AS Good, sum(acceptable) AS Acceptable, sum(poor) AS Poor,"
            f" sum(bad) AS Bad {LABELS} GROUP BY time ORDER BY time",
            "percentunit",
            "share of windows",
            colours=CLASS_COLOURS,
            stack=True,
            percent=True,
            size=(12, 9),
            least=None,
        ),
        p.classes_over_time(
            "Class of the worst access points",
            "A row an access point (the 40 worst). Regular spans: a schedule (backup, class, shift). One row alone:"
            " choose it as *In detail*.",
            CLASSES_BY_AP,
            "${__field.labels.ap_id}",
            size=(24, 9),
        ),
        p.bars(
            "How loss is distributed",
            "Share of windows with a loss ratio of at most so much. The two should be close; a worst access point far"
            " below has a cause of its own.",
            CDF,
            "percentunit",
            "share of windows",
            "loss at most",
            size=(8, 9),
            colours={"all chosen": TEAL, "worst access point": POOR},
            most=1,
        ),
        p.rows(
            "Worst access points",
            "By share of Poor and Bad windows in the time shown. *Queue loss* is what queues dropped; *Lost in*: queue"
            " means too much traffic for the air that it gets, air means bad links. Click one for its details below.",
            WORST,
            {
                "poor_or_bad": "percentunit",
                "congestion_loss": "percentunit",
                "loss_on_air": "percentunit",
                "mbit_per_s": "Mbits",
            },
            size=(16, 9),
            links={
                "ap_id": (
                    "In detail",
                    "/d/oal-congested?${__url_time_range}&${site:queryparam}&${band:queryparam}"
                    "&${channel:queryparam}&${ap:queryparam}&var-detail=${__data.fields.ap_id}",
                )
            },
            coloured={"poor_or_bad": p.rising(0.05, 0.2), "congestion_loss": p.rising(POOR_FROM, BAD_FROM)},
        ),
    )
    congested_detail.add(b)
    congested_losses.add(b)
    congested_detail.add_flow(b)
    return b
