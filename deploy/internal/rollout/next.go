package rollout

import "fmt"

// DefaultRejectedLimit is the share of rejections that aborts a rollout whose limit is for another metric, or which
// names none.
const DefaultRejectedLimit = 0.1

// evidence is how many answers (or all members, if there are fewer) it takes before the share of rejections counts.
const evidence = 20

// Counts are the APs of a rollout as they are now.
type Counts struct {
	APs      int // have it as their desired state
	Applied  int
	Rejected int
	Pending  int // connected and have not answered
	InScope  int // known APs in its scope
}

// Measure is a reading of the abort metric.
type Measure struct {
	Value *float64 // nil: there is none
	Why   string   // there is none
}

// Next is the rollout after a look at its APs: the same pointer if nothing happened, otherwise a copy that took one
// step (Step differs or only numbers do). measured is nil while no metric is due.
func Next(r *Rollout, c Counts, measured *Measure, nowUS int64) *Rollout {
	if !r.Active() {
		return r
	}
	n := *r
	n.APs, n.Applied, n.Rejected = c.APs, max(r.Applied, c.Applied), c.Rejected
	if measured != nil {
		n.Value = measured.Value
	}
	if n.Applied > 0 && n.AppliedUS == 0 {
		n.AppliedUS = nowUS
	}
	switch {
	case n.staged() && n.tooManyRejections(c, nowUS):
		n.take(Aborted, nowUS, fmt.Sprintf("%d of %d answers are rejections, the limit is a share of %g", c.Rejected,
			c.Applied+c.Rejected, n.rejectedLimit()))
	case n.beyondLimit():
		n.take(Aborted, nowUS, fmt.Sprintf("%s is %.4g, the limit is %g", n.Metric, *n.Value, *n.Limit))
	case n.Step == Started && n.staged() && n.AppliedUS != 0:
		n.take(Soaking, nowUS, n.soakDetail())
	case n.Step == Soaking && n.soaked(nowUS):
		if why := n.unmeasured(measured); why != "" {
			n.Detail = why
			break
		}
		n.expand(nowUS)
	case (n.Step == Expanded || n.Step == Started && !n.staged()) && c.Pending == 0 && c.InScope > 0 && n.All:
		n.take(Completed, nowUS, "")
	}
	if n.Step == r.Step && n.APs == r.APs && n.Applied == r.Applied && n.Rejected == r.Rejected &&
		n.Detail == r.Detail &&
		same(n.Value, r.Value) {
		return r
	}
	return &n
}

// Abort takes a rollout back by hand.
func Abort(r *Rollout, reason string, nowUS int64) *Rollout {
	n := *r
	n.take(Aborted, nowUS, reason)
	return &n
}

// Expand ends the soak by hand.
func Expand(r *Rollout, nowUS int64) *Rollout {
	n := *r
	n.expand(nowUS)
	n.Detail = "by hand"
	return &n
}

// Supersede ends a rollout whose slot has another release now, or none: it was withdrawn.
func Supersede(r *Rollout, reason string, withdrawn bool, nowUS int64) *Rollout {
	n := *r
	n.take(Superseded, nowUS, reason)
	n.Withdrawn = withdrawn
	return &n
}

func (r *Rollout) take(step Step, nowUS int64, detail string) {
	r.Step, r.StepUS, r.Detail = step, nowUS, detail
}

func (r *Rollout) expand(nowUS int64) {
	r.take(Expanded, nowUS, "")
	if !r.All && r.ActivateInS > 0 {
		r.ActivateUS = nowUS + seconds(r.ActivateInS)
	}
	r.All = true
}

// staged: it can be aborted by what is seen of it, and expands or completes only after that.
func (r *Rollout) staged() bool { return !r.All || r.SoakS > 0 && r.Step != Expanded }

func (r *Rollout) soaked(nowUS int64) bool {
	return r.SoakS > 0 && nowUS >= max(r.AppliedUS, r.ActivateUS)+seconds(r.SoakS)
}

func (r *Rollout) soakDetail() string {
	if r.SoakS == 0 {
		return "it stays with its share: the release names no soak time"
	}
	return fmt.Sprintf("for %g s", r.SoakS)
}

func (r *Rollout) rejectedLimit() float64 {
	if r.Limit != nil && (r.Metric == "" || r.Metric == RejectedShare) {
		return *r.Limit
	}
	return DefaultRejectedLimit
}

func (r *Rollout) tooManyRejections(c Counts, nowUS int64) bool {
	answers := c.Applied + c.Rejected
	enough := answers >= min(c.APs, evidence) || r.AppliedUS != 0 && r.soaked(nowUS)
	return c.Rejected > 0 && enough && float64(c.Rejected)/float64(answers) > r.rejectedLimit()
}

// FromClickHouse says whether the abort metric is one that has to be asked for.
func (r *Rollout) FromClickHouse() bool {
	_, known := AbortMetrics[r.Metric]
	return known && r.Limit != nil
}

func (r *Rollout) beyondLimit() bool {
	return r.Step == Soaking && r.FromClickHouse() && r.Value != nil && *r.Value > *r.Limit
}

// unmeasured says why a rollout that has soaked cannot expand: a metric was asked for and there is no reading of it.
func (r *Rollout) unmeasured(m *Measure) string {
	switch {
	case !r.FromClickHouse() || r.Value != nil:
		return ""
	case m == nil:
		return "soaked; waiting for a reading of " + r.Metric
	default:
		return "soaked; " + r.Metric + " cannot be read: " + m.Why
	}
}

func same(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
