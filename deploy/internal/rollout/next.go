package rollout

import (
	"fmt"
	"strings"
)

const (
	// DefaultRejectedLimit is the share of rejections that aborts a rollout whose limit is for another metric, or which
	// names none.
	DefaultRejectedLimit = 0.1

	// answers is how many (or all members, if there are fewer) it takes before the share of rejections counts.
	answers = 20

	// FreshUS, in microseconds, is how old a reading may be that lets a rollout go on: three readings may fail.
	FreshUS = 60e6
)

// Counts are the APs of a rollout as they are now.
type Counts struct {
	APs      int // have it as their desired state
	Applied  int
	Rejected int
	Pending  int // connected and have not answered
	InScope  int // known APs in its scope
}

// Look is what is seen of a rollout at a moment.
type Look struct {
	Counts
	IDs     func() []string // the known APs in its scope; nil: none
	Measure *Measure        // the latest that this leader read; nil: none yet
	Gate    Gate
	NowUS   int64
}

func (l *Look) ids() []string {
	if l.IDs == nil {
		return nil
	}
	return l.IDs()
}

// Next is the rollout after a look at it: the same pointer if nothing happened, otherwise a copy that took one step
// (Step or At differs, or only numbers do). What was stored of a metric before decides nothing: only a reading that was
// begun in the present step of the plan, and not long ago, does.
func Next(r *Rollout, l Look) *Rollout {
	if !r.Active() {
		return r
	}
	n := *r
	n.upgrade()
	n.APs, n.Applied, n.Rejected = l.APs, max(r.Applied, l.Applied), l.Rejected
	n.StepAPs = members(n.present().Share, l.InScope)
	if n.Applied > 0 && n.AppliedUS == 0 && !n.Off() {
		n.AppliedUS = l.NowUS
	}
	m := n.fresh(&l)
	n.note(m)
	switch guard := n.beyondLimit(m); {
	case n.Step == Held:
		if l.Gate.allows(&n, n.Share) {
			n.begin(l.ids(), l.NowUS)
		}
	case !n.Off() && n.staged() && n.tooManyRejections(l.Counts, l.NowUS):
		n.take(Aborted, l.NowUS, fmt.Sprintf("%d of %d answers are rejections, the limit is a share of %g", l.Rejected,
			l.Applied+l.Rejected, n.rejectedLimit()))
	case guard != nil:
		n.Metric, n.Limit, n.Value = guard.Metric, &guard.Limit, m.Readings[guard.Metric].Value
		n.take(Aborted, l.NowUS, fmt.Sprintf("%s is %.4g, the limit is %g", n.Metric, *n.Value, *n.Limit))
	case n.Step == Started && n.staged() && n.AppliedUS != 0:
		n.take(Soaking, l.NowUS, n.soakDetail())
	case n.Step == Soaking && n.more() && n.soaked(l.NowUS):
		if waits := n.waits(&l, m); len(waits) > 0 {
			n.Detail = "soaked; " + strings.Join(waits, "; ")
			break
		}
		n.advance(l.ids(), l.NowUS)
	case n.done(l.Counts):
		n.take(Completed, l.NowUS, "")
	}
	n.stall(&l)
	if n.Step == r.Step && n.At == r.At && n.APs == r.APs && n.Applied == r.Applied && n.Rejected == r.Rejected &&
		n.StepAPs == r.StepAPs &&
		n.Detail == r.Detail && n.Onsets == r.Onsets && n.AppliedUS == r.AppliedUS && same(n.Value, r.Value) {
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

// Expand gives it to everyone by hand, whatever was seen of it.
func Expand(r *Rollout, nowUS int64) *Rollout {
	n := *r
	n.upgrade()
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
	r.Spoiled = r.Spoiled || step == Aborted
}

func (r *Rollout) expand(nowUS int64) {
	r.take(Expanded, nowUS, "")
	if !r.All && r.ActivateInS > 0 {
		r.ActivateUS = nowUS + seconds(r.ActivateInS)
	}
	r.All, r.PlanUS, r.ProgressUS = true, nowUS, nowUS
	r.At = max(0, len(r.Plan)-1)
}

// staged: it can be aborted by what is seen of it, and expands or completes only after that.
func (r *Rollout) staged() bool { return !r.All || r.SoakS > 0 && r.phase() != Expanded }

// done says whether everyone who can answer has: at least one AP, and all that are connected.
func (r *Rollout) done(c Counts) bool {
	reached := r.Applied > 0 || c.Rejected > 0
	return (r.phase() == Expanded || r.phase() == Started && !r.staged()) && r.All && reached && c.Pending == 0 &&
		c.InScope > 0
}

// stall says so when the present step has taken longer than its soak and the deadline.
func (r *Rollout) stall(l *Look) {
	waiting := r.Step == Held || r.Step == Started || r.Step == Expanded || r.Step == Soaking && r.more()
	due := max(r.ProgressUS, r.ActivateUS) + seconds(r.SoakS+r.DeadlineS)
	if !waiting || l.InScope == 0 || l.NowUS < due {
		return
	}
	r.Was = r.Step
	why := r.Detail
	if r.Step == Started || r.Step == Expanded {
		why = fmt.Sprintf("%d of %d APs applied it, %d are connected and have not answered", l.Applied, l.APs,
			l.Pending)
	}
	r.take(Stalled, l.NowUS, fmt.Sprintf("no progress in %g s: %s", r.SoakS+r.DeadlineS, why))
}

func (r *Rollout) soakDetail() string {
	if !r.more() {
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
	given := c.Applied + c.Rejected
	enough := given >= min(c.APs, answers) || r.AppliedUS != 0 && r.soaked(nowUS)
	return c.Rejected > 0 && enough && float64(c.Rejected)/float64(given) > r.rejectedLimit()
}

func same(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
