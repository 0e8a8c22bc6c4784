package rollout

import (
	"fmt"
	"strings"

	"oal/deploy/internal/release"
)

// upgrade completes a rollout that was stored before plans had steps.
func (r *Rollout) upgrade() {
	if len(r.Plan) == 0 && (!r.All || r.SoakS > 0) {
		r.Plan = []release.Step{{Share: r.Share, SoakS: r.SoakS, MinAPs: 1}}
		if r.SoakS > 0 && r.Share < 1 {
			r.Plan = append(r.Plan, release.Step{Share: 1})
		}
	}
	if r.Guards == nil && r.Metric != "" && r.Metric != RejectedShare && r.Limit != nil && r.ProgressUS == 0 {
		r.Guards = []release.Guard{{Metric: r.Metric, Limit: *r.Limit}}
	}
	if r.ProgressUS == 0 {
		r.PlanUS, r.ProgressUS = r.StepUS, r.StepUS
	}
	if r.DeadlineS == 0 {
		r.DeadlineS = release.DefaultDeadlineS
	}
}

// present is the step of the plan that it is in.
func (r *Rollout) present() release.Step {
	if r.At < len(r.Plan) {
		return r.Plan[r.At]
	}
	return release.Step{Share: r.Share, SoakS: r.SoakS}
}

// following is the step after that: everyone after a soak of everyone.
func (r *Rollout) following() release.Step {
	if r.At+1 < len(r.Plan) {
		return r.Plan[r.At+1]
	}
	return release.Step{Share: r.Share}
}

// more says whether something follows the soak.
func (r *Rollout) more() bool { return r.At+1 < len(r.Plan) || r.All && r.SoakS > 0 }

func (r *Rollout) soaked(nowUS int64) bool {
	return r.SoakS > 0 && r.AppliedUS != 0 && nowUS >= r.SinceUS()+seconds(r.SoakS)
}

// advance takes the next step of the plan: more APs, or everyone.
func (r *Rollout) advance(aps []string, nowUS int64) {
	next, fewer := r.following(), r.fewer()
	if fewer != "" {
		fewer = fmt.Sprintf("; %d of its APs were enough%s", r.MinAPs(), fewer)
	}
	if r.All || next.Share >= 1 {
		r.expand(nowUS)
		r.Detail = strings.TrimPrefix(fewer, "; ")
		return
	}
	r.At++
	r.take(Soaking, nowUS, fmt.Sprintf("step %d of %d: a share of %g, for %g s%s", r.At+1, len(r.Plan), next.Share,
		next.SoakS, fewer))
	r.Share, r.SoakS = next.Share, next.SoakS
	r.Threshold = max(r.Threshold, Threshold(r.ID, r.Share, aps)) // who has it keeps it
	r.PlanUS, r.ProgressUS, r.Onsets, r.Value = nowUS, nowUS, 0, nil
	if r.ActivateInS > 0 {
		r.ActivateUS = nowUS + seconds(r.ActivateInS)
	}
}
