package rollout

import (
	"fmt"
	"math"
)

// Gate is what a rollout may do without an approval.
type Gate struct {
	Required bool    // approvals are; otherwise everything
	Share    float64 // of the APs in scope, that may have a release without one: a canary
}

// Approval says that a rollout may reach more APs than a canary.
type Approval struct {
	By        string `json:"by"`
	Reason    string `json:"reason"`
	TSUS      int64  `json:"ts_us"`
	Emergency bool   `json:"emergency,omitempty"` // without a second person
	// Of is the earlier rollout of the same models, with no smaller mode, that was approved; empty: this one was.
	Of string `json:"of,omitempty"`
}

// allows says whether a share of the APs in scope may have the rollout.
func (g Gate) allows(r *Rollout, share float64) bool {
	return !g.Required || r.Approval != nil || share <= g.Share
}

// Admit is for a rollout that begins: it waits for an approval if its first step takes one. earlier is a rollout of the
// same models, for this scope or a wider one, that reached everyone with no smaller mode; nil: there is none. What only
// takes power away goes to everyone at once: no canary is needed to do less.
func (r *Rollout) Admit(g Gate, earlier *Rollout) {
	if earlier != nil {
		r.inherit(earlier, r.StartedUS)
	}
	if !g.allows(r, r.Share) {
		r.Step, r.All, r.Threshold = Held, false, 0
		r.Detail = r.unapproved()
	}
}

// Inherit is a rollout that waits for an approval, once such an earlier one has reached everyone.
func Inherit(r, earlier *Rollout, aps []string, nowUS int64) *Rollout {
	n := *r
	n.upgrade()
	n.inherit(earlier, nowUS)
	if n.phase() == Held {
		n.begin(aps, nowUS)
	}
	return &n
}

func (r *Rollout) inherit(earlier *Rollout, nowUS int64) {
	r.Approval = &Approval{Of: earlier.ID, TSUS: nowUS,
		Reason: fmt.Sprintf("its models, in mode %s, reached everyone in rollout %s", earlier.Mode, earlier.ID)}
	if a := earlier.Approval; a != nil {
		r.Approval.By = a.By
	}
	if begins := r.AppliedUS == 0; begins && modeOf(r.Mode) < modeOf(earlier.Mode) {
		r.Plan, r.Guards, r.Share, r.SoakS, r.All, r.Threshold = nil, nil, 1, 0, true, math.MaxUint64
	}
}

// Approve lets it go on: what was held begins, what stalled has its deadline again.
func Approve(r *Rollout, a Approval, aps []string) *Rollout {
	n := *r
	n.upgrade()
	n.Approval, n.ProgressUS = &a, a.TSUS
	switch {
	case n.phase() == Held:
		n.begin(aps, a.TSUS)
	case n.Step == Stalled:
		n.Step = n.Was
	}
	n.StepUS = a.TSUS
	n.Detail = fmt.Sprintf("approved by %s: %s", a.By, a.Reason)
	if a.Emergency {
		n.Detail = "in an emergency " + n.Detail
	}
	return &n
}

// begin gives what was held to those of its first step.
func (r *Rollout) begin(aps []string, nowUS int64) {
	r.take(Started, nowUS, "")
	r.StartedUS, r.PlanUS, r.ProgressUS, r.Was = nowUS, nowUS, nowUS, ""
	r.Threshold, r.All = Threshold(r.ID, r.Share, aps), r.Share >= 1
	if r.ActivateInS > 0 {
		r.ActivateUS = nowUS + seconds(r.ActivateInS)
	}
}

// Unapproved says whether it waits, now or at its next step, for an approval.
func (r *Rollout) Unapproved(g Gate) bool {
	return r.Active() && (r.phase() == Held || r.more() && !r.All && !g.allows(r, r.following().Share))
}

// MayExpand says whether it may be given to everyone.
func (r *Rollout) MayExpand(g Gate) bool { return g.allows(r, 1) }

// Covers says whether what reached everyone in one scope reached everyone in the other.
func Covers(wide, narrow string) bool { return wide == "fleet" || wide == narrow }

// NoGreater says whether a mode lets APs do no more than another. One that is not known may do everything.
func NoGreater(mode, than string) bool { return modeOf(mode) <= modeOf(than) && than != "" }

func modeOf(mode string) int {
	switch mode {
	case "off":
		return 0
	case "shadow":
		return 1
	}
	return 2
}

func (r *Rollout) unapproved() string {
	return fmt.Sprintf("it waits for an approval: `oal-deploy ctl approve %s --reason TEXT`", r.ID)
}
