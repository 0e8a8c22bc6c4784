package rollout

// RejectedShare is the metric that every rollout has: rejections among the answers of its APs.
const RejectedShare = "rejected_share"

// MinPredictions is how many predictions with a known outcome, of the bundle and of the rest each, a metric takes: with
// fewer, chance decides.
const MinPredictions = 50

// AbortMetric is a number that grows as a bundle gets worse than what else is in force. Expression is SQL over the
// columns `member` (the row is of the bundle, not of the rest), `onset` (not congested, and congested a horizon later),
// `hit` (congestion was predicted), `now`, `predicted`, `truth` (classes) and `congested` (probability of congestion, 0
// to 1).
type AbortMetric struct{ Meaning, Expression string }

// AbortMetrics by name. The rest are all predictions of the policy's other bundles in the scope, from one soak time (at
// least ten minutes) before the rollout: so there is something to compare with when every AP has the new one.
var AbortMetrics = map[string]AbortMetric{
	"onset_recall_drop": {
		"recall of congestion onsets, the rest's minus the bundle's",
		"countIf(NOT member AND onset AND hit) / countIf(NOT member AND onset) - countIf(member AND onset AND hit) / " +
			"countIf(member AND onset)",
	},
	"macro_accuracy_drop": {
		"share of right predictions, averaged over the classes that came true for both, the rest's minus the bundle's",
		`arrayAvg(arrayFilter(x -> isFinite(x), arrayMap(c ->
			countEqual(groupArrayIf(truth, NOT member AND truth = predicted), c)
				/ countEqual(groupArrayIf(truth, NOT member), c)
			- countEqual(groupArrayIf(truth, member AND truth = predicted), c)
				/ countEqual(groupArrayIf(truth, member), c),
			[0, 1, 2, 3])))`,
	},
	"brier_rise": {
		"Brier score of the probability of congestion, the bundle's minus the rest's",
		"avgIf(pow(congested - (truth >= 2), 2), member) - avgIf(pow(congested - (truth >= 2), 2), NOT member)",
	},
}

// Query gives one row: predictions of the bundle with a known outcome, those of the rest, and the metric.
func (m AbortMetric) Query() string {
	return `SELECT countIf(member) AS members, countIf(NOT member) AS rest, toFloat64(` + m.Expression + `) AS value
FROM (
	SELECT bundle = {bundle:UInt64} AS member,
		toInt8(class_now) AS now, toInt8(class) AS truth, toInt8(predicted) AS predicted,
		now IN (0, 1) AND truth >= 2 AS onset, predicted >= 2 AS hit, congested_permille / 1000 AS congested
	FROM prediction
	WHERE policy = {policy:String}
		AND ts >= fromUnixTimestamp64Micro({since:Int64}, 'UTC') AND class >= 0 AND class_now >= 0 AND complete = 1
		AND (bundle != {bundle:UInt64} OR ts >= fromUnixTimestamp64Micro({started:Int64}, 'UTC'))
		AND ({site:String} = '' OR site = {site:String})
)
FORMAT JSONCompact`
}
