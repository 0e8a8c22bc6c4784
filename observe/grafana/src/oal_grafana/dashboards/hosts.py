"""How do hosts serve their clients? Which network, by which congestion control, and what that gained."""
from oal_grafana import panels as p
from oal_grafana.board import NO_HOST, Board, ap_variables, host_variable, variable
from oal_grafana.sql import RANGE, known, last_of_range, latest, may_be_empty

CHOSEN = "ap_id IN (${host:singlequote})"
OF_HOST = "host IN (${host:singlequote})"
SENT = f"FROM oal.batch_1m WHERE $__timeFilter(t) AND {CHOSEN}"
OPEN = f"FROM oal.sender_tcp_1m AS s WHERE $__timeFilter(t) AND {CHOSEN}"
ENDED = f"FROM oal.sender_session_1m AS s WHERE $__timeFilter(t) AND {CHOSEN}"
NETWORKS = may_be_empty(
    "no connection has ended, or its addresses are deleted after seven days",
    f"SELECT client_network FROM oal.sender_session_1m AS s WHERE $__timeFilter(t) AND {CHOSEN}"
    " GROUP BY client_network ORDER BY sum(s.sessions) DESC, client_network LIMIT 500")
OF_NETWORK = "client_network = ${network:singlequote}"
#: A connection that was over before the first look has none that is known.
ALGORITHM = "if(congestion_control = '', 'not known', congestion_control)"
PER_S = "(60 * uniqExact(t))"
ABOVE = "sum(s.above_us) / nullIf(sum(s.above_rows), 0)"

#: Each figure, its sign when it is better, and what a difference beyond chance is called.
_WORDS = (("speed_log", 1, "faster", "slower"), ("rtt_above_ms", -1, "waits less", "waits more"),
          ("sent_again", -1, "repeats less", "repeats more"))
_NONE = " AND ".join(f"isNull({figure})" for figure, *_ in _WORDS)
_SAID = ", ".join(f"multiIf({figure} * {sign} > {figure}_within, '{better}', {figure} * {sign} < -{figure}_within,"
                  f" '{worse}', '')" for figure, sign, better, worse in _WORDS)
BEYOND_CHANCE = f"""if({_NONE}, 'too few', \
ifNull(nullIf(arrayStringConcat(arrayFilter(x -> x != '', [{_SAID}]), ', '), ''), 'no difference seen'))"""
GAINS = ("round(exp(speed_log) - 1, 4) AS speed_gain, round(rtt_above_ms, 2) AS rtt_above_gain_ms,"
         " round(sent_again, 5) AS sent_again_gain")
_POOLED = ", ".join(
    f"sum(g.weight * g.{figure}) / nullIf(sumIf(g.weight, g.{has}), 0) AS {figure}, "
    f"sqrt(sum(pow(g.weight * g.{figure}_within, 2))) / nullIf(sumIf(g.weight, g.{has}), 0) AS {figure}_within"
    for figure, has in (("speed_log", "has_speed"), ("rtt_above_ms", "has_above"), ("sent_again", "has_again")))
GAIN = f"oal.v_congestion_control_gain({RANGE})"

#: What policy cc-select said, raw rows; networks as in `sender_session_1m`, but the highest bit.
CHOICES = f"FROM oal.action WHERE $__timeFilter(ts) AND {CHOSEN} AND kind = 3"
NO_CHOICE = "no policy that chooses congestion controls is in force"
#: 0: given up, connections that begin get the host's default again.
CHOICE = "if(value = 0, 'given up', congestion_control)"

AGENTS = may_be_empty(
    NO_HOST, f"""-- Minutes say what was sent, health is read for the last ten minutes of the range only.
SELECT s.site AS site, s.ap_id AS host, nullIf(e.version, '') AS version, s.last_minute AS last_minute, \
o.rows_per_s AS rows_per_s, o.connections AS connections, o.looked_at_each_ms AS looked_at_each_ms,
  if(e.version = '', NULL, e.cpu_ratio) AS cpu, if(e.version = '', NULL, toFloat64(e.rss_bytes_max)) AS memory, \
s.missed_ratio AS missed_ratio, s.rows_dropped AS rows_dropped, g.missing AS missing_batches, d.refused AS refused
FROM (
  SELECT any(b.site) AS site, ap_id, max(b.t) AS last_minute, sum(b.rows_dropped) AS rows_dropped,
    round(sum(b.ticks_missed) / nullIf(sum(b.ticks), 0), 5) AS missed_ratio
  FROM oal.batch_1m AS b WHERE $__timeFilter(t) AND {CHOSEN} GROUP BY ap_id
) AS s
LEFT JOIN (
  SELECT ap_id, toNullable(round(sum(s.rows) / {PER_S}, 1)) AS rows_per_s, \
toNullable(uniqMergeIf(s.connections, t >= $__toTime - INTERVAL 5 MINUTE)) AS connections, \
toNullable(toFloat64(max(s.interval_ms_max))) AS looked_at_each_ms
  {OPEN} GROUP BY ap_id
) AS o ON s.ap_id = o.ap_id
LEFT JOIN (SELECT ap_id, sumIf(x.batches, x.kind = 'missing') AS missing FROM oal.gap AS x \
WHERE $__timeFilter(ts) GROUP BY ap_id) AS g ON s.ap_id = g.ap_id
LEFT JOIN (SELECT key AS ap_id, count() AS refused FROM oal.dead_letter WHERE $__timeFilter(ts) GROUP BY key) \
AS d ON s.ap_id = d.ap_id
LEFT JOIN (SELECT ap_id, argMax(v.version, v.last_row) AS version, argMax(v.cpu_ratio, v.last_row) AS cpu_ratio, \
argMax(v.rss_bytes_max, v.last_row) AS rss_bytes_max
  FROM oal.v_exporters({last_of_range('10 MINUTE')}) AS v WHERE {CHOSEN} GROUP BY ap_id) AS e ON s.ap_id = e.ap_id
ORDER BY last_minute, missed_ratio DESC, host LIMIT 500""")


def verdicts() -> list:
    """The figures that answer the question."""
    return [
        p.number(
            "Hosts sending",
            "Hosts with a batch in the last two whole minutes of the time shown. If it falls, see *Hosts silent* and"
            " the table of agents below.",
            may_be_empty(NO_HOST, f"SELECT {known('uniqExactIf(ap_id, ' + latest(2) + ')')} AS sending {SENT}"),
            "none",
        ),
        p.number(
            "Hosts silent",
            "Hosts that sent in the time shown but not in its last three minutes. Look at the agent"
            " (`systemctl status oal-host`), its link and its certificate.",
            may_be_empty(
                NO_HOST,
                f"SELECT {known('countIf(last < toStartOfMinute($__toTime) - INTERVAL 3 MINUTE)')} AS silent"
                f" FROM (SELECT ap_id, max(t) AS last {SENT} GROUP BY ap_id)"),
            "none",
            p.rising(1, 2),
        ),
        p.number(
            "Connections ended",
            "TCP connections of these hosts that ended in the time shown: what the figures beside it and the tables"
            " below are made of. At most the last seven days, when addresses are deleted.",
            may_be_empty(NO_HOST, f"SELECT {known('sum(s.sessions)')} AS sessions {ENDED}"),
            "short",
        ),
        p.number(
            "Sent again",
            "Segments that the hosts sent again over segments sent, connections that ended. Above 1 %: see in"
            " *Networks* where, and *Where is it congested?* for whether it is queue or air there.",
            may_be_empty(NO_HOST,
                         f"SELECT sum(s.retrans_pkts) / nullIf(sum(s.data_segs_out), 0) AS again {ENDED}"),
            "percentunit",
            p.rising(0.01, 0.05),
            decimals=2,
        ),
        p.number(
            "Round trip above least",
            "How long data wait on their way: mean round trip of open connections above the smallest one of each, time"
            " shown. Tens of milliseconds: a queue stands somewhere, see which network.",
            may_be_empty(NO_HOST, f"SELECT {ABOVE} AS above {OPEN}"),
            "µs",
            p.rising(25_000, 100_000),
        ),
        p.number(
            "Networks to gain on",
            "Networks on which another congestion control than the one that their host uses most is faster beyond"
            " chance: see *Gained by network*. *nothing to compare*: no network has twenty connections of two.",
            may_be_empty(
                "hosts with one congestion control have nothing to compare",
                f"SELECT if(countIf(has_speed) = 0, NULL, uniqExactIf((host, client_network),"
                f" speed_log > speed_log_within)) AS networks FROM {GAIN} WHERE {OF_HOST}"),
            "none",
            if_null="nothing to compare",
        ),
    ]


def _of_network(select: str) -> str:
    return may_be_empty(
        "no network is chosen, or its addresses are deleted after seven days",
        f"SELECT $__timeInterval(t) AS time, {ALGORITHM} AS algorithm, {select}\n{ENDED} AND {OF_NETWORK}"
        " GROUP BY time, algorithm ORDER BY time, algorithm")


def board():
    b = Board(
        "oal-hosts",
        "What agents on servers, proxies and caches see of their connections: which network was served by which"
        " congestion control, and what that gained.",
        time="now-6h",
        variables=[
            *ap_variables(hidden=True),
            host_variable(),
            variable("network", "Network", "Network of the last row of this board, the one with most connections"
                     " first", NETWORKS, many=False)
        ],
    )
    b.row("Is it good?")
    b.add(*verdicts()).add_firing()
    b.row("Agents")
    b.add(
        p.series(
            "Rows of connections",
            "Rows a second that each agent sends of open connections. None while its clients are served: see the"
            " agent; more than usual: more connections, or `interval_ms` is smaller.",
            may_be_empty(
                NO_HOST, f"SELECT $__timeInterval(t) AS time, ap_id AS host, sum(s.rows) / {PER_S} AS rows_per_s"
                f" {OPEN} GROUP BY time, host ORDER BY time, host"),
            "count:/s",
            "rows",
            name="${__field.labels.host}",
        ),
        p.series(
            "Connections by congestion control",
            "Connections that changed in the interval, by their congestion control, over all chosen hosts. A step is a"
            " change of a host's default, or of what is chosen.",
            may_be_empty(
                NO_HOST, f"SELECT $__timeInterval(t) AS time, {ALGORITHM} AS algorithm,"
                f" uniqMerge(s.connections) AS connections {OPEN} GROUP BY time, algorithm ORDER BY time, algorithm"),
            "none",
            "connections",
            name="${__field.labels.algorithm}",
        ),
        p.rows(
            "Host agents",
            "The one that has been silent longest first. *Looked at each*: time between two looks at a connection,"
            " which grows when looking costs more than `cpu_permille`. *Connections*: of the last five minutes."
            " *Missing*: batches that never came; *Refused*: records that could not be used, see *Is data arriving?*.",
            AGENTS,
            {
                "last_minute": "dateTimeAsIso",
                "rows_per_s": "count:/s",
                "looked_at_each_ms": "ms",
                "cpu": "percentunit",
                "memory": "bytes",
                "missed_ratio": "percentunit",
            },
            coloured={
                "missed_ratio": p.rising(0.001, 0.01),
                "missing_batches": p.rising(1, 100),
                "refused": p.rising(1, 100),
                "rows_dropped": p.rising(1, 1000),
            },
        ),
    )
    b.row("Which network, which congestion control")
    b.add(
        p.series(
            "Connections ended",
            "Per second, by congestion control. *not known*: over before the agent's first look.",
            may_be_empty(
                NO_HOST, f"SELECT $__timeInterval(t) AS time, {ALGORITHM} AS algorithm, sum(s.sessions) / {PER_S}"
                f" AS ended {ENDED} GROUP BY time, algorithm ORDER BY time, algorithm"),
            "count:/s",
            "ends",
            name="${__field.labels.algorithm}",
        ),
        p.series(
            "Round trip above least",
            "Of open connections, by congestion control: how long their data wait above the smallest round trip of"
            " each. Lines are of other networks and sizes too: what an algorithm gained stands below.",
            may_be_empty(
                NO_HOST, f"SELECT $__timeInterval(t) AS time, {ALGORITHM} AS algorithm, {ABOVE} AS above {OPEN}"
                " GROUP BY time, algorithm ORDER BY time, algorithm"),
            "µs",
            "above least",
            name="${__field.labels.algorithm}",
        ),
        p.rows(
            "Networks",
            "Connections that ended, by network of the client (/24, /64; a hash where addresses are pseudonyms) and"
            " congestion control, most connections first. *Throughput*: bytes over the time in which there was"
            " something to send. *Ends' limit*: share of that time in which receiver or application held it back, and"
            " no congestion control could help. *RTT above*: mean above the smallest, of connections longer than the"
            " initial window.",
            may_be_empty(
                NO_HOST, f"""SELECT host, client_network, {ALGORITHM} AS algorithm, sessions, bytes_acked, \
busy_kbps AS throughput_kbps, limited_by_ends_ratio, rtt_min_ms, v.rtt_above_ms AS rtt_above_ms, retrans_ratio, \
ce_ratio, ends_missed
FROM oal.v_sender_networks({RANGE}) AS v WHERE {OF_HOST} ORDER BY sessions DESC, host, client_network, algorithm \
LIMIT 500"""),
            {
                "bytes_acked": "bytes",
                "throughput_kbps": "Kbits",
                "limited_by_ends_ratio": "percentunit",
                "rtt_min_ms": "ms",
                "rtt_above_ms": "ms",
                "retrans_ratio": "percentunit",
                "ce_ratio": "percentunit",
            },
            size=(24, 10),
            coloured={"retrans_ratio": p.rising(0.01, 0.05), "rtt_above_ms": p.rising(25, 100)},
        ),
    )
    b.row("What it gained")
    b.add(
        p.rows(
            "Gained by congestion control",
            "Each against the one that its host uses most, on the same networks: those with twenty connections of"
            " either, added up by how much they say. *Faster by*: geometric means of connections longer than the"
            " initial window; *Waits more by*: round trip above the least; *Repeats more by*: share sent again."
            " *Beyond chance* is what a 95 % interval leaves no doubt about. No experiment: connections also differ in"
            " time and size.",
            may_be_empty(
                "hosts with one congestion control have nothing to compare",
                f"""SELECT host, algorithm, compared_with, networks, sessions, sessions_there, {GAINS}, \
{BEYOND_CHANCE} AS beyond_chance
FROM (
  SELECT host, g.congestion_control AS algorithm, any(g.compared_with) AS compared_with, \
countIf(g.has_speed) AS networks, sumIf(g.sessions, g.has_speed) AS sessions, \
sumIf(g.sessions_there, g.has_speed) AS sessions_there, {_POOLED}
  FROM {GAIN} AS g WHERE {OF_HOST} GROUP BY host, algorithm
) ORDER BY networks DESC, sessions DESC, host, algorithm LIMIT 200"""),
            {"speed_gain": "percentunit", "rtt_above_gain_ms": "ms", "sent_again_gain": "percentunit"},
            size=(24, 7),
        ),
        p.rows(
            "Gained by network",
            "The same of each network, most connections first. *too few*: below twenty connections on a side nothing is"
            " said. Where another one is *faster* and waits no more, it is worth choosing there; where the best one"
            " differs from network to network, no default is right.",
            may_be_empty(
                "hosts with one congestion control have nothing to compare",
                f"""SELECT host, client_network, g.congestion_control AS algorithm, compared_with, sessions, \
sessions_there, {GAINS}, {BEYOND_CHANCE} AS beyond_chance
FROM {GAIN} AS g WHERE {OF_HOST} ORDER BY has_speed DESC, sessions DESC, host, client_network, algorithm LIMIT 500"""),
            {"speed_gain": "percentunit", "rtt_above_gain_ms": "ms", "sent_again_gain": "percentunit"},
            size=(24, 9),
        ),
    )
    b.row("What was chosen")
    b.add(
        p.series(
            "Networks by choice",
            "Networks for which a policy chose a congestion control in the interval, by what it chose and what carried"
            " it out. *shadow*: it only said so. *given up*: its time was over, or it was killed. None: no such policy"
            " is in force, or none of its choices changed.",
            may_be_empty(
                NO_CHOICE, f"""SELECT $__timeInterval(ts) AS time, \
transform(value, [0, 1, 2, 3, 4, 5, 6, 7, 8], ['given up', 'cubic', 'reno', 'bbr', 'vegas', 'westwood', 'illinois', \
'dctcp', 'oal_lc'], 'unknown') AS choice, \
transform(backend, [0, 1, 2, 3], ['none', 'shadow', 'ovs', 'bpf'], 'unknown') AS carried_out_by, \
uniqExact(ap_id, subject) AS networks
{CHOICES} GROUP BY time, choice, carried_out_by ORDER BY time, choice, carried_out_by"""),
            "none",
            "networks",
            name="${__field.labels.choice} ${__field.labels.carried_out_by}",
            size=(24, 6),
        ),
        p.rows(
            "Chosen by network",
            "The last choice for each network, last hour of the time shown at most, newest first. *explore*: it tries"
            " another one on purpose; *released*: nothing there is better than the default; *killed*, *off*, *failed*:"
            " it could not act. What the choice is worth: *Gained by network*.",
            may_be_empty(
                NO_CHOICE, f"""SELECT max(v.ts) AS last_time, ap_id AS host, v.subject AS client_network, \
argMax({CHOICE}, v.ts) AS algorithm, argMax(v.reason, v.ts) AS reason, argMax(v.class, v.ts) AS class, \
argMax(v.backend, v.ts) AS backend, count() AS changes, countIf(v.reason = 'explore') AS explored, \
argMax(toString(v.policy), v.ts) AS policy
FROM oal.v_actions({last_of_range('1 HOUR')}) AS v WHERE {CHOSEN} AND action = 'cc' \
GROUP BY host, client_network ORDER BY last_time DESC, host, client_network LIMIT 500"""),
            {"last_time": "dateTimeAsIso"},
            size=(24, 8),
        ),
    )
    b.row("One network: $network", collapsed=True)
    b.add(
        p.series(
            "Speed on the network",
            "Geometric mean over connections longer than the initial window, by congestion control. Compare lines in"
            " the same interval only.",
            _of_network("exp(sum(s.speed_log) / nullIf(sum(s.speeds), 0)) AS speed"),
            "Kbits",
            "speed",
            name="${__field.labels.algorithm}",
            size=(8, 8),
        ),
        p.series(
            "Round trip above least on the network",
            "Mean over connections longer than the initial window, by congestion control. All of them high: the queue"
            " is somebody else's.",
            _of_network("sum(s.above_ms) / nullIf(sum(s.aboves), 0) AS above"),
            "ms",
            "above least",
            name="${__field.labels.algorithm}",
            size=(8, 8),
        ),
        p.series(
            "Sent again on the network",
            "Share of segments sent again, by congestion control. High with all: the path loses; with one: it fills the"
            " queue.",
            _of_network("sum(s.retrans_pkts) / nullIf(sum(s.data_segs_out), 0) AS again"),
            "percentunit",
            "sent again",
            name="${__field.labels.algorithm}",
            size=(8, 8),
        ),
    )
    return b
