"""Is control helping or hurting?"""
from oal_grafana import panels as p
from oal_grafana.board import Board, ap_variables, variable
from oal_grafana.colours import ALARM, OK, PLAIN, TEAL, WARN
from oal_grafana.events import EVENTS, GUARD
from oal_grafana.sql import APS, CLASS_BOUNDS, RANGE, known, last_of_range, latest, may_be_empty
from oal_grafana.units import CLOCK

PER_MINUTE = f"FROM oal.v_control_1m({RANGE}) AS x WHERE {APS}"
#: Policies (folders of policies/) that did something, or would have, in the time shown.
POLICIES = """SELECT policy FROM (
  SELECT DISTINCT toString(policy) AS policy FROM oal.action WHERE $__timeFilter(ts) UNION DISTINCT SELECT 'rwnd-fair'
) ORDER BY policy"""
OF_POLICY = "policy IN (${policy:singlequote})"
#: Files of policies/in-force/. What was decided under no known release is of the file `none`.
FILES = """SELECT in_force FROM (
  SELECT DISTINCT toString(x.last.5) AS in_force FROM oal.bundle_release AS x WHERE x.last.5 != '' UNION ALL \
SELECT 'none'
) ORDER BY in_force"""


def file_of(table: str) -> str:
    """Name of the file in force under which a row came to be; `policy` is its column in views of windows."""
    return f"ifNull(nullIf({table}.policy, ''), 'none')"


def of_file(table: str) -> str:
    """Whether that file is chosen."""
    return f"{file_of(table)} IN (${{in_force:singlequote}})"


#: What an action's value means, by action.
VALUE = """multiIf(value = 0, 'given up', action = 'rwnd', formatReadableSize(value), action = 'mark', \
transform(value, [1, 2, 3], ['ECT(1)', 'ECT(0)', 'ECT(0) and ECT(1)'], toString(value)), \
action = 'cc', congestion_control, toString(value))"""
NO_POLICY = "no policy is in force where nobody has released one"
#: Without a row nobody knows whether no policy is in force or the rows are late.
NO_REPORT = "no report"
NOW = f"FROM oal.control_1m AS x WHERE {latest(3)} AND {APS}"

#: An access point's minutes, with and without a clamp in force, from rollups: what control sees against what users got.
MINUTES = f"""FROM (SELECT ap_id, t, sum(x.offered_bytes) AS offered_bytes, sum(x.lost_bytes) AS lost_bytes, \
sum(x.offered_pkts) AS offered_pkts, sum(x.congestion_lost_pkts) AS lost_pkts, sum(x.tiles) AS tiles
  FROM oal.label_1m AS x WHERE $__timeFilter(t) AND {APS} GROUP BY ap_id, t) AS l
LEFT JOIN (SELECT ap_id, t, sum(x.clamped_rows) AS clamped, max(x.enforce_rows) AS enforced FROM oal.control_1m AS x \
WHERE $__timeFilter(t) AND {APS} GROUP BY ap_id, t) AS c ON l.ap_id = c.ap_id AND l.t = c.t"""
KIND = "multiIf(c.clamped >= 10, 'clamped', c.enforced > 0, 'enforcing, calm', 'not enforcing')"
KIND_COLOURS = {"clamped": WARN, "enforcing, calm": OK, "not enforcing": PLAIN}


def verdicts() -> list:
    """The figures that answer the question."""
    return [
        p.number(
            "Enforcing",
            "Access points that may set windows, last three minutes shown; *no report*: no policy is in force, or rows"
            " are late. More than you expect: someone raised a"
            " policy's mode (see *Releases* on *Is the model right?*).",
            may_be_empty(NO_POLICY, f"SELECT {known('uniqExactIf(ap_id, x.enforce_rows > 0)')} AS enforcing {NOW}"),
            "none",
            if_null=NO_REPORT,
        ),
        p.number(
            "In shadow",
            "Access points that only say what they would do. Turn one site to enforce when *Would have been clamped*"
            " below has been sensible for a day.",
            may_be_empty(
                NO_POLICY,
                f"SELECT {known('uniqExactIf(ap_id, x.shadow_rows > 0 AND x.enforce_rows = 0)')} AS shadow {NOW}"),
            "none",
            if_null=NO_REPORT,
        ),
        p.number(
            "Kill switch on",
            "Access points with the kill switch on (the push service's or their own). 0 unless somebody meant it:"
            " `oal-deploy ctl unkill` ends it.",
            may_be_empty(NO_POLICY, f"SELECT {known('uniqExactIf(ap_id, x.killed_rows > 0)')} AS killed {NOW}"),
            "none",
            p.rising(1, 1),
            if_null=NO_REPORT,
        ),
        p.number(
            "Guard reverts",
            "Times that the guard took all clamps back, because throughput fell by more than the policy allows, time"
            " shown. A few are the guard at work; many: the policy is too sharp, raise its `target_us`.",
            may_be_empty(NO_POLICY, f"SELECT {known('sum(x.guard_reverts)')} AS reverts {PER_MINUTE}"),
            "none",
            p.rising(1, 10),
            if_null=NO_REPORT,
        ),
        p.number(
            "Windows not set",
            "Share of windows that the data path refused. Anything but 0: the backend (bpf, ovs) is missing something;"
            " see *Not set* by access point below.",
            may_be_empty("no window was set",
                         f"SELECT sum(x.set_errors) / nullIf(sum(x.sets), 0) AS failed {PER_MINUTE}"),
            "percentunit",
            p.rising(0.001, 0.01),
            if_null="no window known of",
            decimals=2,
        ),
        p.number(
            "Throughput with clamps",
            "Mean throughput of an access point in minutes with clamps over that in minutes of the same access points"
            " without, where they enforce. Clamps are set in bad minutes, so a little below 1 is no harm; below 0.8"
            " with reverts is. *nothing to compare*: there are minutes of one kind only.",
            may_be_empty(
                "where nothing is enforced, or everything is clamped, there is nothing to compare",
                f"""SELECT (sumIf(l.offered_bytes - l.lost_bytes, c.clamped >= 10) / \
nullIf(sumIf(l.tiles, c.clamped >= 10), 0))
  / nullIf(sumIf(l.offered_bytes - l.lost_bytes, c.clamped < 10 AND c.enforced > 0) / \
nullIf(sumIf(l.tiles, c.clamped < 10 AND c.enforced > 0), 0), 0) AS ratio
{MINUTES}""",
            ),
            "none",
            p.falling(0.8, 0.95),
            decimals=2,
            if_null="nothing to compare",
        ),
    ]


def board():
    b = Board(
        "oal-control",
        "What control does, whether users get more or less of the air by it, and when it took itself back.",
        time="now-6h",
        variables=[
            *ap_variables(),
            variable("policy", "Policy", "Policies that acted, or would have, in the time shown", POLICIES),
            variable("in_force", "File in force",
                     "Files in force that were ever released; none: what acted under no known release", FILES),
        ],
        annotations=(*EVENTS, GUARD),
    )
    b.row("Is it good?")
    b.add(*verdicts()).add_firing()
    b.row("What it does")
    b.add(
        p.series(
            "Flows clamped",
            "Mean number of flows that are clamped in enforce mode, or would be in shadow mode, over all chosen access"
            " points.",
            f"""SELECT $__timeInterval(t) AS time, sumIf(x.clamps_avg, x.enforce_s > 0) / uniqExact(t) AS `clamped`, \
sumIf(x.clamps_avg, x.enforce_s = 0) / uniqExact(t) AS `would have been clamped`
{PER_MINUTE} GROUP BY time ORDER BY time""",
            "none",
            "flows",
            colours={"clamped": WARN, "would have been clamped": PLAIN},
        ),
        p.series(
            "Windows set and given up",
            "Per minute. *could not be set* is never right; many *given up* for few *set*: the law changes its mind,"
            " lengthen `hold_us`.",
            f"""SELECT $__timeInterval(t) AS time, sum(x.sets) / uniqExact(t) AS `set or renewed`, \
sum(x.releases) / uniqExact(t) AS `given up`, sum(x.set_errors) / uniqExact(t) AS `could not be set`
{PER_MINUTE} GROUP BY time ORDER BY time""",
            "none",
            "per minute",
            colours={"set or renewed": TEAL, "given up": PLAIN, "could not be set": ALARM},
        ),
        p.series(
            "Guard reverts by site",
            "Reverts per interval. One site only: its air differs, give it a policy of its own.",
            f"SELECT $__timeInterval(t) AS time, site, sum(x.guard_reverts) AS reverts {PER_MINUTE} GROUP BY time, site"
            " ORDER BY time, site",
            "none",
            "reverts",
            bars=True,
            stack=True,
            name="${__field.labels.site}",
        ),
        p.series(
            "Standing queue",
            "Time that data wait at the access points (what the control law steers by): mean and the largest of an"
            " access point. With clamps it should come down towards the policy's target.",
            "SELECT $__timeInterval(t) AS time, avg(x.queue_us_avg) AS mean, toFloat64(max(x.queue_us_max)) AS largest"
            f" {PER_MINUTE} GROUP BY time ORDER BY time",
            "µs",
            "time waiting",
            colours={"mean": WARN, "largest": PLAIN},
        ),
    )
    b.row("Policy by policy")
    b.add(
        p.series(
            "Changes by policy",
            "What each policy did to flows and stations, per minute, by what carried it out; *shadow*: it only said so."
            " A policy that is not here did nothing.",
            may_be_empty(
                NO_POLICY,
                f"""SELECT $__timeInterval(ts) AS time, toString(policy) AS policy, \
transform(backend, [0, 1, 2, 3], ['none', 'shadow', 'ovs', 'bpf'], 'unknown') AS backend, \
count() * 60 / $__interval_s AS changes
FROM oal.action WHERE $__timeFilter(ts) AND {APS} AND {OF_POLICY} GROUP BY time, policy, backend \
ORDER BY time, policy, backend""",
            ),
            "none",
            "per minute",
            size=(24, 7),
            name="${__field.labels.policy} ${__field.labels.backend}",
        ),
        p.rows(
            "What each policy does",
            "Last hour of the time shown at most. *Given up* near *Changes*: it was right to act for a moment only, or"
            " the law changes its mind.",
            may_be_empty(
                NO_POLICY,
                f"""SELECT toString(policy) AS policy, action, backend, uniqExact(ap_id) AS aps, \
uniqExact(ap_id, subject) AS subjects, count() AS changes, countIf(value = 0) AS given_up, \
topK(1)(reason)[1] AS most_common_reason, round(avgIf(queue_us, value > 0)) AS queue_us
FROM oal.v_actions({last_of_range('1 HOUR')}) WHERE {APS} AND {OF_POLICY} \
GROUP BY policy, action, backend ORDER BY policy, action, backend""",
            ),
            {"queue_us": "µs"},
            size=(24, 6),
        ),
        p.rows(
            "Latest actions",
            "The newest hundred changes of the last ten minutes shown, of the policies chosen above: what was done to"
            " which flow or station, and why. Windows with all their figures: *Latest windows* below.",
            may_be_empty(
                NO_POLICY,
                f"""SELECT ts, ap_id, toString(policy) AS policy, action, {VALUE} AS done, \
ifNull(station, '') AS station, subject, reason, backend, class, queue_us, \
ifNull(nullIf(a.in_force, ''), 'none') AS in_force
FROM oal.v_actions({last_of_range('10 MINUTE')}) AS a WHERE {APS} AND {OF_POLICY} ORDER BY ts DESC LIMIT 100""",
            ),
            {"ts": CLOCK, "queue_us": "µs"},
            size=(24, 8),
        ),
    )
    b.row("What users get")
    b.add(
        p.series(
            "Throughput, with and without clamps",
            "Payload per access point that came for the first time, by what control did in that minute. Read the lines"
            " over hours: clamps come in busy minutes.",
            f"SELECT $__timeInterval(l.t) AS time, {KIND} AS minutes, sum(l.offered_bytes - least(l.lost_bytes,"
            f" l.offered_bytes)) * 8 / nullIf(sum(l.tiles), 0) AS throughput {MINUTES} GROUP BY time, minutes ORDER BY"
            " time, minutes",
            "bps",
            "throughput",
            name="${__field.labels.minutes}",
            colours=KIND_COLOURS,
        ),
        p.series(
            "Loss, with and without clamps",
            "Congestion-loss ratio, by what control did in that minute. *clamped* should be below *not enforcing* at"
            " like throughput.",
            f"SELECT $__timeInterval(l.t) AS time, {KIND} AS minutes, sum(l.lost_pkts) / nullIf(sum(l.offered_pkts), 0)"
            f" AS loss {MINUTES} GROUP BY time, minutes ORDER BY time, minutes",
            "percentunit",
            "loss ratio",
            name="${__field.labels.minutes}",
            colours=KIND_COLOURS,
        ),
        p.rows(
            "Effect by file in force and site",
            "Seconds with and without clamps, last hour of the time shown at most: throughput, loss, round trips"
            " between access point and receiver. Compare sites or spans that differ in mode; clamped seconds are worse"
            " than others because clamps are set when it is bad.",
            f"""SELECT site, {file_of('e')} AS in_force, nullIf(e.policy_version, 0) AS in_force_version, mode, \
if(clamped = 1, 'yes', 'no') AS clamps_in_force, seconds, \
throughput_kbps, congestion_loss_ratio, rtt_p50_ms, rtt_p95_ms, clamps_avg
FROM oal.v_control_effect({last_of_range('1 HOUR')}) AS e WHERE per = 'site, policy' AND {of_file('e')} \
ORDER BY site, in_force, in_force_version, mode, clamped""",
            {
                "throughput_kbps": "Kbits",
                "congestion_loss_ratio": "percentunit",
                "rtt_p50_ms": "ms",
                "rtt_p95_ms": "ms",
                "seconds": "s",
            },
            size=(24, 7),
            coloured={"congestion_loss_ratio": p.rising(*CLASS_BOUNDS[1:])},
        ),
    )
    b.row("Why, one by one")
    b.add(
        p.rows(
            "Why windows changed",
            "Changes by file in force, site and reason, last hour at most. *guard*: taken back; *killed*, *off*: the"
            " switch; *no_capacity*, *unknown_scale*, *failed*: it could not act.",
            may_be_empty(
                NO_POLICY,
                f"""SELECT {file_of('r')} AS in_force, nullIf(r.policy_version, 0) AS in_force_version, site, reason, \
count() AS changes, uniqExact(ap_id) AS aps, \
uniqExact(flow) AS flows, round(avg(r.window_bytes)) AS window_avg
FROM oal.v_rewrites({last_of_range('1 HOUR')}) AS r WHERE {APS} AND {of_file('r')} \
GROUP BY in_force, in_force_version, site, reason ORDER BY changes DESC LIMIT 100""",
            ),
            {"window_avg": "bytes"},
            size=(24, 7),
        ),
        p.rows(
            "Control by access point",
            "Time shown; reverts first. An access point with reverts and few clamps has a capacity estimate that is"
            " off.",
            may_be_empty(
                NO_POLICY,
                f"""SELECT site, ap_id, argMax(x.backend, x.t) AS backend, sum(x.enforce_s) AS enforcing, \
sum(x.clamped_s) AS clamped, sum(x.guard_reverts) AS reverts, sum(x.set_errors) AS set_errors,
  round(sum(x.acks_clamped) / nullIf(sum(x.acks_seen), 0), 4) AS acks_lowered, \
round(avg(x.capacity_kbps_avg)) AS capacity, toFloat64(max(x.step_max_ns)) AS longest_step
{PER_MINUTE} GROUP BY site, ap_id ORDER BY reverts DESC, set_errors DESC, ap_id LIMIT 200""",
            ),
            {
                "enforcing": "s",
                "clamped": "s",
                "acks_lowered": "percentunit",
                "capacity": "Kbits",
                "longest_step": "ns",
            },
            coloured={"reverts": p.rising(1, 10), "set_errors": p.rising(1, 100)},
            size=(24, 7),
        ),
        p.rows(
            "Latest windows",
            "The newest hundred changes of the last ten minutes shown: what was seen (*CWND*: the sender's window) and"
            " what was set. In shadow mode (backend *shadow*) nothing was written. Who talked to whom: click the flow.",
            may_be_empty(
                NO_POLICY,
                f"""SELECT ts, ap_id, ifNull(station, '') AS station, flow, reason, \
 backend, class, window_bytes, cwnd_bytes, rate_kbps, share_kbps, queue_us, \
{file_of('r')} AS in_force
FROM oal.v_rewrites({last_of_range('10 MINUTE')}) AS r WHERE {APS} AND {of_file('r')} ORDER BY ts DESC LIMIT 100""",
            ),
            {
                "ts": CLOCK,
                "window_bytes": "bytes",
                "cwnd_bytes": "bytes",
                "rate_kbps": "Kbits",
                "share_kbps": "Kbits",
                "queue_us": "µs",
            },
            size=(24, 8),
        ),
    )
    return b
