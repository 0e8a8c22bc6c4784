package rollout

import "oal/deploy/internal/release"

// RejectedShare is the metric that every rollout has: rejections among the answers of its APs.
const RejectedShare = release.RejectedShare

// MetricQuery is how a rollout metric is read: a number that grows as a bundle gets worse than what else is in force.
// It gives one row: APs with the bundle, the evidence that they gave, the rest's APs and evidence, and the value.
//
// Parameters: bundle; policy; site, empty for the fleet; since, when the evidence of the present step begins; started,
// when the rollout did; baseline, how far back before that the comparison reaches. Times are in µs.
type MetricQuery struct {
	SQL  string
	Min  int    // of the evidence, of APs with the bundle and, with Rest, of the others each
	Unit string // of the evidence
	Rest bool   // there must be others to compare with
}

const (
	// minPredictions is five minutes of one AP, ten a second: those of a few seconds are one moment of one radio.
	minPredictions = 3000
	// minMinutes, of APs with traffic: ten of each of three.
	minMinutes = 30
)

// MetricQueries by name. release.RolloutMetrics has the same names, but for RejectedShare.
var MetricQueries = map[string]MetricQuery{
	"onset_recall_drop": ofPredictions(
		"countIf(NOT member AND onset AND hit) / countIf(NOT member AND onset) - countIf(member AND onset AND hit) / " +
			"countIf(member AND onset)"),
	"macro_accuracy_drop": ofPredictions(`arrayAvg(arrayFilter(x -> isFinite(x), arrayMap(c ->
			countEqual(groupArrayIf(truth, NOT member AND judged AND truth = predicted), c)
				/ countEqual(groupArrayIf(truth, NOT member AND judged), c)
			- countEqual(groupArrayIf(truth, member AND judged AND truth = predicted), c)
				/ countEqual(groupArrayIf(truth, member AND judged), c),
			[0, 1, 2, 3])))`),
	"brier_rise": ofPredictions(
		"avgIf(pow(congested - (truth >= 2), 2), member AND judged) - avgIf(pow(congested - (truth >= 2), 2), " +
			"NOT member AND judged)"),
	"throughput_drop":    ofChange(delivered, "1 - exp(avgIf(change, member) - avgIf(change, NOT member))"),
	"rtt_rise":           ofChange(roundTrips, "exp(avgIf(change, member) - avgIf(change, NOT member)) - 1"),
	"guard_reverts_rise": {guardReverts, minMinutes, "minutes of APs under control", false},
}

// chosen are the bundle's predictions in the present step, and those of all of the policy's other bundles in the scope
// since the baseline's begin, so that there is something to compare with when every AP has the new one.
const chosen = `
	FROM prediction
	WHERE policy = {policy:String} AND class >= 0 AND class_now >= 0 AND (complete = 1 OR ` + actedUpon + `)
		AND ts >= fromUnixTimestamp64Micro({baseline:Int64}, 'UTC')
		AND (bundle != {bundle:UInt64} OR ts >= fromUnixTimestamp64Micro({since:Int64}, 'UTC'))
		AND ({site:String} = '' OR site = {site:String})`

// actedUpon are alarms of a time at which a policy acted: what they foresaw may have been kept away, so nobody can know
// whether they were right. Other predictions of such a time are not complete.
const actedUpon = `(prediction.under_control = 'yes' AND toInt8(class_now) < 2 AND toInt8(prediction.predicted) >= 2)`

// predictions with a known outcome, and alarms acted upon. `onset` is not congested, and congested a horizon later, or
// an alarm acted upon: it counts as right, for otherwise a bundle that acts would be left with what it did not foresee.
// `hit`: congestion was predicted. `judged` by outcome are the same of both sides: where either acts, the alarms of
// both are left out, since outcomes of the alarms are known of one side only.
const predictions = `(
	SELECT ap_id, ts, bundle = {bundle:UInt64} AS member,
		toInt8(class_now) AS now, toInt8(class) AS truth, toInt8(predicted) AS predicted,
		` + actedUpon + ` AS acted, acted OR now IN (0, 1) AND truth >= 2 AS onset,
		predicted >= 2 AS hit, congested_permille / 1000 AS congested,
		complete = 1 AND NOT (hit AND (SELECT countIf(` + actedUpon + `) > 0 ` + chosen + `)) AS judged
	` + chosen + `
)`

func ofPredictions(expression string) MetricQuery {
	return MetricQuery{`SELECT uniqExactIf(ap_id, member AND judged), countIf(member AND judged),
	uniqExactIf(ap_id, NOT member AND judged), countIf(NOT member AND judged), toFloat64(` + expression + `)
FROM ` + predictions + `
FORMAT JSONCompact`, minPredictions, "predictions with a known outcome", true}
}

// OnsetsQuery gives one row of one number: congestion onsets since `since` at APs with the bundle. Those of one AP in
// the same ten seconds are one: its windows overlap.
const OnsetsQuery = `SELECT uniqExactIf((ap_id, toStartOfInterval(ts, INTERVAL 10 SECOND)), onset)
FROM ` + predictions + `
WHERE member
FORMAT JSONCompact`
