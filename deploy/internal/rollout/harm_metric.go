package rollout

// What users get is compared twice over: each AP with itself before the rollout, since APs differ far more than
// releases do, and that change with the change of the scope's other APs over the same time, since hours and days differ
// too. Changes are logarithms of ratios, and each AP counts once: a busy one does not hide the others, and one of three
// that lost half is seen. An AP counts with five minutes of traffic on each side.

// having are the APs that took the bundle.
const having = `(SELECT ap_id FROM bundle_status WHERE bundle = {bundle:UInt64} AND state IN (1, 3)
	AND ts >= fromUnixTimestamp64Micro({started:Int64}, 'UTC'))`

// inTime are the minutes that count: whole ones, before the rollout and of its present step.
const inTime = `t >= fromUnixTimestamp64Micro({baseline:Int64}, 'UTC') AND (late OR
	t < toStartOfMinute(fromUnixTimestamp64Micro({started:Int64}, 'UTC')))`

const isLate = `t >= toStartOfMinute(fromUnixTimestamp64Micro({since:Int64}, 'UTC')) + INTERVAL 1 MINUTE AS late`

// delivered are bytes that got through, by second with traffic, of an AP's minute. The one byte is for the logarithm.
const delivered = `SELECT ap_id, t, ` + isLate + `,
		1 + greatest(0, toInt64(sum(offered_bytes)) - toInt64(sum(lost_bytes))) AS amount, sum(tiles) AS weight
	FROM label_1m
	WHERE ` + inTime + ` AND ({site:String} = '' OR site = {site:String})
	GROUP BY ap_id, t
	HAVING sum(offered_pkts) > 0`

// roundTrips are those of downlink flows between AP and station.
const roundTrips = `SELECT ap_id, t, ` + isLate + `,
		sum(rtt_down_us_sum) AS amount, sum(rtt_down_rows) AS weight
	FROM flow_1m
	WHERE ` + inTime + ` AND direction = 0 AND ({site:String} = '' OR ap_id IN (
		SELECT ap_id FROM label_1m
		WHERE site = {site:String} AND t >= fromUnixTimestamp64Micro({baseline:Int64}, 'UTC')))
	GROUP BY ap_id, t
	HAVING weight > 0`

func ofChange(minutes, expression string) MetricQuery {
	return MetricQuery{`SELECT countIf(member), sumIf(minutes, member), countIf(NOT member), sumIf(minutes, NOT member),
	toFloat64(` + expression + `)
FROM (
	SELECT ap_id IN ` + having + ` AS member, countIf(late) AS minutes,
		log(sumIf(amount, late) / sumIf(weight, late))
			- log(sumIf(amount, NOT late) / sumIf(weight, NOT late)) AS change
	FROM (` + minutes + `)
	GROUP BY ap_id
	HAVING minutes >= 5 AND countIf(NOT late) >= 5 AND isFinite(change)
)
FORMAT JSONCompact`, minMinutes, "minutes of APs with traffic", true}
}

// guardReverts are those in an hour of control, with the bundle and without. Without any control of the others they
// have none: nothing was clamped, so nothing was taken back. Counters run for an incarnation of the exporter.
const guardReverts = `SELECT uniqExactIf(ap_id, member), toUInt64(sumIf(seconds, member) / 60),
	uniqExactIf(ap_id, NOT member), toUInt64(sumIf(seconds, NOT member) / 60),
	toFloat64(3600 * (sumIf(reverts, member) / sumIf(seconds, member)
		- if(sumIf(seconds, NOT member) = 0, 0, sumIf(reverts, NOT member) / sumIf(seconds, NOT member))))
FROM (
	SELECT ap_id, ap_id IN ` + having + ` AS member, sum(rows) AS seconds,
		max(c.guard_reverts) - min(c.guard_reverts_first) AS reverts
	FROM (SELECT *, ` + isLate + ` FROM control_1m) AS c
	WHERE late AND ({site:String} = '' OR ap_id IN (
		SELECT ap_id FROM label_1m
		WHERE site = {site:String} AND t >= fromUnixTimestamp64Micro({baseline:Int64}, 'UTC')))
	GROUP BY ap_id, boot_id, backend
)
FORMAT JSONCompact`
