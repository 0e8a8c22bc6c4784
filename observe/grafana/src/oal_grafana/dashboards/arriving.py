"""Is data arriving?"""
from oal_grafana import panels as p
from oal_grafana.board import Board, ap_variables
from oal_grafana.colours import ALARM, MAGENTA, PLAIN, TEAL, WARN
from oal_grafana.sql import APS, known, last_of_range, latest, latest_raw, may_be_empty, rows_of_last

SENT = f"FROM oal.batch_1m WHERE $__timeFilter(t) AND {APS}"
#: Minutes that a row of a series stands for: as many as fell into its interval.
MINUTES = "uniqExact(t)"

ACCESS_POINTS = f"""-- The rollup per minute says what was sent, \
the table of batches is read for the last two minutes of the range only.
SELECT s.site AS site, s.ap_id AS ap_id, s.last_minute AS last_minute, s.kbytes_per_s AS kbytes_per_s, \
s.missed_ratio AS missed_ratio,
  s.ring_drops AS ring_drops, s.rows_dropped AS rows_dropped, g.missing AS missing_batches, g.reboots AS reboots, \
l.late AS late_batches, d.refused AS refused,
  transform(c.clock_state, [1, 2, 3], ['synchronised', 'unsynchronised', 'stepped'], 'unknown') AS clock, \
if(c.clock_state = 0, NULL, c.clock_error_us) AS clock_error_us
FROM (
  SELECT any(b.site) AS site, ap_id, max(b.t) AS last_minute, \
round(sum(b.bytes) / nullIf(sum(b.ticks) * 0.004, 0) * uniqExact(b.topic) / 1000, 2) AS kbytes_per_s,
    round(sum(b.ticks_missed) / nullIf(sum(b.ticks), 0), 5) AS missed_ratio, sum(b.ring_drops) AS ring_drops, \
sum(b.rows_dropped) AS rows_dropped
  FROM oal.batch_1m AS b WHERE $__timeFilter(t) AND {APS} GROUP BY ap_id
) AS s
LEFT JOIN (SELECT ap_id, sumIf(x.batches, x.kind = 'missing') AS missing, \
uniqExactIf(x.boot_id, x.kind = 'reboot') AS reboots FROM oal.gap AS x WHERE $__timeFilter(ts) \
GROUP BY ap_id) AS g ON s.ap_id = g.ap_id
LEFT JOIN (SELECT ap_id, count() AS late FROM oal.late WHERE $__timeFilter(ts) GROUP BY ap_id) AS l ON s.ap_id = l.ap_id
LEFT JOIN (SELECT key AS ap_id, count() AS refused FROM oal.dead_letter WHERE $__timeFilter(ts) GROUP BY key) \
AS d ON s.ap_id = d.ap_id
LEFT JOIN (SELECT ap_id, argMax(x.clock_state, x.ts) AS clock_state, argMax(x.clock_error_us, x.ts) AS clock_error_us
  FROM oal.batch AS x WHERE {latest_raw(2)} GROUP BY ap_id) AS c ON s.ap_id = c.ap_id
ORDER BY last_minute, missed_ratio DESC, ap_id LIMIT 1000"""

def _age_ms(column: str) -> str:
    """From the end of a batch's last tick (ticks of 4 ms from ts on) to a moment."""
    return f"toUnixTimestamp64Milli({column}) - toUnixTimestamp64Micro(ts) / 1000 - 4 * ticks"


SILENT = f"""SELECT {known("countIf(last < toStartOfMinute($__toTime) - INTERVAL 3 MINUTE)")} AS silent
FROM (SELECT ap_id, max(t) AS last {SENT} GROUP BY ap_id)"""

LATENCY = f"""-- Raw rows, so at most the last hour of the range. From the end of a \
batch's last tick, three clocks take part.
SELECT time, 'to the broker' AS until, round(quantile(0.5)(broker_ms)) AS p50, round(quantile(0.99)(broker_ms)) AS p99
FROM (SELECT $__timeInterval(ts) AS time, {_age_ms('kafka_ts')} AS broker_ms
  FROM oal.batch WHERE {rows_of_last('1 HOUR')} AND {APS})
GROUP BY time ORDER BY time"""


def verdicts() -> list:
    """The figures that answer the question."""
    return [
        p.number(
            "Sending",
            "Access points with a batch in the last two whole minutes of the time shown. If it falls, see *Silent* and"
            " the table below.",
            f"SELECT uniqExact(ap_id) AS sending FROM oal.batch_1m WHERE {latest(2)} AND {APS}",
            "none",
            size=(3, 4),
        ),
        p.number(
            "Silent",
            "Access points that sent in the time shown but not in its last three minutes. Look for them in the table"
            " (sorted by last minute), then at their power, link and certificate.",
            SILENT,
            "none",
            p.rising(1, 2),
            size=(3, 4),
        ),
        p.number(
            "Ticks missed",
            "Share of the 4 ms ticks on which an access point could not sample. Above 0.1 % an access point is"
            " overloaded: see which one in the table, and its CPU in `v_exporters`.",
            f"SELECT sum(ticks_missed) / nullIf(sum(ticks), 0) AS missed {SENT}",
            "percentunit",
            p.rising(0.001, 0.01),
            size=(3, 4),
            decimals=3,
        ),
        p.number(
            "Batches missing",
            "Batches that never came (holes in the sequence numbers). Labels around them are incomplete. Look at the"
            " access point's uplink and its `let_go_batches` in `v_exporters`.",
            "SELECT sumIf(g.batches, g.kind = 'missing') AS missing FROM oal.gap AS g WHERE $__timeFilter(ts) AND"
            f" {APS}",
            "none",
            p.rising(1, 100),
            size=(3, 4),
        ),
        p.number(
            "Late batches",
            "Batches that came after their windows were closed: their rows are kept, labels did not see them. Look at"
            " lag, and at clocks in the table.",
            f"SELECT count() AS late FROM oal.late WHERE $__timeFilter(ts) AND {APS}",
            "none",
            p.rising(1, 100),
            size=(3, 4),
        ),
        p.number(
            "Refused",
            "Records that could not be used (dead letters), of all access points: see *Why records were refused*.",
            "SELECT count() AS refused FROM oal.dead_letter WHERE $__timeFilter(ts)",
            "none",
            p.rising(1, 100),
            size=(3, 4),
        ),
        p.number(
            "To the broker, p99",
            "Age of a batch's last sample when Kafka took it, over the last five minutes shown. Above a second the"
            " access points' uplink or the broker is slow; negative: a clock is off.",
            f"""SELECT quantile(0.99)({_age_ms('kafka_ts')}) AS ms
FROM oal.batch WHERE {latest_raw(5)} AND {APS}""",
            "ms",
            p.rising_from_0(1000, 5000),
            size=(3, 4),
            decimals=0,
        ),
        p.number(
            "To a row, p99",
            "Age of a batch's last sample when it could be read, over the last five minutes shown. Far above the"
            " checkpoint interval: look at lag and checkpoints on *Is the platform well?*.",
            f"""SELECT quantile(0.99)({_age_ms('inserted_at')}) AS ms
FROM oal.batch WHERE {latest_raw(5)} AND {APS}""",
            "ms",
            p.rising_from_0(5000, 30000),
            size=(3, 4),
            decimals=0,
        ),
    ]


def board():
    b = Board("oal-arriving", "Do the access points send, does all of it come, and how soon can it be read?",
              variables=ap_variables())
    b.row("Is it good?")
    b.add(*verdicts()).add_firing()
    b.row("Over time")
    b.add(
        p.series(
            "Access points sending",
            "By site, per minute. A step down is a site, an uplink or a broker; a slope is a roll-out or a battery.",
            f"SELECT $__timeInterval(t) AS time, site, uniqExact(ap_id) AS aps {SENT} GROUP BY time, site ORDER BY"
            " time, site",
            "none",
            "access points",
            name="${__field.labels.site}",
        ),
        p.series(
            "Batches by topic",
            "Batches per second. An access point sends about four a second of each topic that it has rows for; less"
            " means gaps.",
            f"SELECT $__timeInterval(t) AS time, topic, sum(batches) / (60 * {MINUTES}) AS batches_per_s {SENT} GROUP"
            " BY time, topic ORDER BY time, topic",
            "count:/s",
            "batches",
            name="${__field.labels.topic}",
        ),
        p.series(
            "Data rate of an access point",
            "What one access point sends, before compression: mean and the largest. A large one has many stations, or"
            " keyframes that do not shrink.",
            f"""SELECT time, round(avg(bytes_per_s)) AS mean, round(max(bytes_per_s)) AS largest
FROM (SELECT $__timeInterval(t) AS time, ap_id, sum(bytes) / (60 * {MINUTES}) AS bytes_per_s {SENT} \
GROUP BY time, ap_id)
GROUP BY time ORDER BY time""",
            "Bps",
            "data rate",
            colours={"mean": TEAL, "largest": PLAIN},
        ),
        p.series(
            "From the sample to the broker",
            "Age of a batch's last sample when Kafka took it, at most the last hour of the time shown. Growing: uplink,"
            " broker or a clock that drifts.",
            LATENCY,
            "ms",
            "age",
            name="${__field.name} ${__field.labels.until}",
            least=None,
            finest="10s",
        ),
        p.series(
            "Lost at the access points",
            "Per minute: ticks missed (overload), packets that the capture ring let go, rows that did not fit. All"
            " should be 0; an access point that is too slow needs a longer interval or fewer tables.",
            f"""SELECT $__timeInterval(t) AS time, sum(ticks_missed) / {MINUTES} AS `ticks missed`, \
sum(ring_drops) / {MINUTES} AS `ring drops`, sum(rows_dropped) / {MINUTES} AS `rows dropped`
{SENT} GROUP BY time ORDER BY time""",
            "none",
            "per minute",
            bars=True,
            colours={"ticks missed": ALARM, "ring drops": WARN, "rows dropped": MAGENTA},
        ),
        p.series(
            "Gaps, late and refused",
            "Per interval. *missing*: never came; *reordered*: came and was used; *late*: came, was not labelled;"
            " *refused*: dead letters. Only reorder is harmless.",
            f"""WITH marks AS (
  SELECT $__timeInterval(t) AS time, 0 AS missing, 0 AS duplicate, 0 AS reordered, 0 AS late, 0 AS refused {SENT} \
GROUP BY time
  UNION ALL
  SELECT $__timeInterval(ts) AS time, sumIf(g.batches, kind = 'missing'), sumIf(g.batches, kind = 'duplicate'), \
sumIf(g.batches, kind = 'reordered'), 0, 0
  FROM oal.gap AS g WHERE $__timeFilter(ts) AND {APS} GROUP BY time
  UNION ALL
  SELECT $__timeInterval(ts) AS time, 0, 0, 0, count(), 0 FROM oal.late WHERE $__timeFilter(ts) AND {APS} GROUP BY time
  UNION ALL
  SELECT $__timeInterval(ts) AS time, 0, 0, 0, 0, count() FROM oal.dead_letter WHERE $__timeFilter(ts) GROUP BY time
)
SELECT time, sum(m.missing) AS missing, sum(m.duplicate) AS duplicate, sum(m.reordered) AS reordered, \
sum(m.late) AS late, sum(m.refused) AS refused
FROM marks AS m GROUP BY time ORDER BY time""",
            "none",
            "batches",
            bars=True,
            colours={"missing": ALARM, "refused": MAGENTA, "late": WARN, "duplicate": PLAIN, "reordered": TEAL},
        ),
    )
    b.row("Access point by access point")
    b.add(
        p.rows(
            "Access points",
            "The one that has been silent longest first. Click an access point to see where it is congested. Clock"
            " *stepped* or *unsynchronised*: labels hold, latencies do not.",
            ACCESS_POINTS,
            {
                "kbytes_per_s": "KBs",
                "missed_ratio": "percentunit",
                "clock_error_us": "µs",
                "last_minute": "dateTimeAsIso",
            },
            size=(24, 10),
            coloured={
                "missed_ratio": p.rising(0.001, 0.01),
                "missing_batches": p.rising(1, 100),
                "late_batches": p.rising(1, 100),
                "refused": p.rising(1, 100),
            },
        ),
        p.rows(
            "What sampling costs",
            "Exporters, over the last ten minutes of the time shown at most; the one with the slowest driver first."
            " *late*: ticks without samples because a driver took longer than a tick. *halved*: how many times the"
            " budget (`sampling_cpu_percent`) halved the rate. *mended*: counters of drivers that ran backwards."
            " *bypassed*: stations whose packets the hardware takes past the tap; control is off for them.",
            may_be_empty(
                "no exporter has told of itself",
                f"""SELECT ap_id, version, cpu_ratio AS cpu, sampling_cpu_ratio AS of_it_sampling, \
toFloat64(sample_max_us) AS slowest_answer, samples_late AS late, sampling_pace AS halved, counters_mended AS mended, \
stations_bypassed AS bypassed, toFloat64(rss_bytes_max) AS memory, last_row
FROM oal.v_exporters({last_of_range('10 MINUTE')}) AS v WHERE ap_id IN (SELECT ap_id FROM oal.batch_1m \
WHERE {latest(10)} AND {APS}) ORDER BY slowest_answer DESC, ap_id LIMIT 200""",
            ),
            {
                "cpu": "percentunit",
                "of_it_sampling": "percentunit",
                "slowest_answer": "µs",
                "memory": "bytes",
                "last_row": "dateTimeAsIso",
            },
            size=(24, 8),
            coloured={"bypassed": p.rising(1, 8), "halved": p.rising(1, 4), "late": p.rising(1, 1000)},
        ),
        p.rows(
            "Why records were refused",
            "Dead letters by reason. *forged*, *revoked*, *unsigned*, *unknown_key*: somebody writes who should not, or"
            " an access point's keys are old; *malformed*, *truncated*: a broken exporter; *time_range*: a clock far"
            " off. Some of the records themselves are in the topic `dead.letters.v1`.",
            may_be_empty(
                "nothing was refused, which is how it should be",
                """SELECT toString(reason) AS reason, key AS written_as, count() AS records, max(ts) AS last_time, \
any(detail) AS example
FROM oal.dead_letter WHERE $__timeFilter(ts) GROUP BY reason, key ORDER BY records DESC LIMIT 100""",
            ),
            {"last_time": "dateTimeAsIso"},
            size=(24, 6),
        ),
        p.rows(
            "Time to read a row",
            "Per topic, over the last ten minutes of the time shown at most.",
            f"""SELECT topic, sum(batches) AS n_batches, round(sum(v.bytes_per_s)) AS total_bytes_per_s, \
round(sum(v.rows_per_s)) AS total_rows_per_s, max(sample_to_broker_p99_ms) AS worst_ap_to_broker_p99_ms,
  max(sample_to_row_p50_ms) AS worst_ap_to_row_p50_ms, max(sample_to_row_p99_ms) AS worst_ap_to_row_p99_ms
FROM oal.v_latency({last_of_range('10 MINUTE')}) AS v WHERE {APS} GROUP BY topic ORDER BY topic""",
            {
                "total_bytes_per_s": "Bps",
                "total_rows_per_s": "count:/s",
                "worst_ap_to_broker_p99_ms": "ms",
                "worst_ap_to_row_p50_ms": "ms",
                "worst_ap_to_row_p99_ms": "ms",
            },
            size=(24, 5),
        ),
    )
    return b
