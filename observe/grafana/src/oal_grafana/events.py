"""What is marked on every dashboard's time axis: what somebody did, and what acted by itself."""
from oal_grafana.colours import ALARM, MAGENTA, PLAIN, TEAL, WARN
from oal_grafana.sql import APS, FROM, RANGE, TO, may_be_empty

#: What follows it in a release's reason is the policy that it was made anew for (model-registry/policy_reconciler.py).
POLICY_MARK = "; policy "

#: The online trainer releases a tree an access point every few seconds: those are on *Is the model right?*.
_RELEASED = f"FROM oal.release WHERE ts >= {FROM} AND ts <= {TO} AND source != 'online'"
RELEASES = may_be_empty(
    "nothing was released", f"""SELECT ts AS time, concat(toString(action), ' ', model, ' ', toString(version), \
' as ', toString(slot), ' for ', scope, if(reason = '', '', concat(': ', reason))) AS text, 'release' AS tags
{_RELEASED} AND position(reason, '{POLICY_MARK}') = 0 ORDER BY time LIMIT 200""")
POLICIES = may_be_empty(
    "no policy was changed", f"""SELECT ts AS time, concat('policy ', splitByString('{POLICY_MARK}', reason)[-1], \
' for ', scope) AS text, 'policy' AS tags
{_RELEASED} AND position(reason, '{POLICY_MARK}') > 0 ORDER BY time LIMIT 200""")
KILLS = may_be_empty(
    "no kill switch was turned", """SELECT time, if(killed > before, concat('kill switch on at ', toString(killed), \
' access points'), concat('kill switch left on at ', toString(killed))) AS text, 'kill' AS tags
FROM (
  SELECT time, killed, lagInFrame(killed) OVER (ORDER BY time) AS before
  FROM (SELECT t AS time, uniqExactIf(ap_id, x.killed_rows > 0) AS killed FROM oal.control_1m AS x \
WHERE $__timeFilter(t) GROUP BY t)
) WHERE killed != before ORDER BY time LIMIT 200""")
UPGRADES = may_be_empty(
    "nothing was upgraded or started anew", f"""SELECT time, text, 'upgrade' AS tags FROM (
  SELECT max(applied_at) AS time, concat('database upgraded to migration ', toString(max(version))) AS text
  FROM oal.schema_migrations FINAL WHERE applied_at >= {FROM} AND applied_at <= {TO} \
GROUP BY toStartOfFiveMinutes(applied_at)
  UNION ALL
  SELECT t AS time, concat('ClickHouse started: ', instance) AS text FROM (
    SELECT t, instance, uptime_s, lagInFrame(uptime_s) OVER (PARTITION BY instance ORDER BY t) AS before
    FROM oal.v_platform_clickhouse({RANGE})
  ) WHERE uptime_s < before
  UNION ALL
  SELECT t AS time, concat('stream job started anew: ', job) AS text FROM (
    SELECT t, job, uptime_s, lagInFrame(uptime_s) OVER (PARTITION BY job ORDER BY t) AS before
    FROM oal.v_platform_flink_job({RANGE})
  ) WHERE uptime_s < before
) ORDER BY time LIMIT 200""")
#: (name, shown at first, colour, query)
EVENTS = (("Releases", True, TEAL, RELEASES), ("Policy changes", True, WARN, POLICIES),
          ("Kill switch", True, ALARM, KILLS), ("Upgrades and restarts", True, MAGENTA, UPGRADES))
GUARD = ("Guard reverts", True, PLAIN,
         may_be_empty(
             "the guard has had nothing to take back",
             f"""-- A mark for five minutes: one for each minute of each access point hides the lines.
SELECT toStartOfFiveMinutes(t) AS time, concat('guard took the clamps back ', toString(sum(x.guard_reverts)), \
' times at ', arrayStringConcat(arraySlice(arraySort(groupUniqArray(ap_id)), 1, 10), ', ')) AS text, 'guard' AS tags
FROM oal.v_control_1m({RANGE}) AS x WHERE {APS} AND guard_reverts > 0 GROUP BY time ORDER BY time LIMIT 500"""))
