package rollouts

import (
	"context"
	"errors"
	"fmt"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// Errors of approvals.
var (
	ErrApproved   = errors.New("the rollout is approved")
	ErrOwn        = errors.New("the user who promoted a version cannot approve it")
	ErrUnapproved = errors.New("the rollout needs an approval first")
)

// Approve lets a rollout reach more APs than a canary. The user who promoted its version, where that is
// known, can do so only in an emergency.
func (rn *Runner) Approve(ctx context.Context, id string, a rollout.Approval) (*rollout.Rollout, error) {
	return rn.byHand(ctx, id, func(r *rollout.Rollout) (*rollout.Rollout, error) {
		switch {
		case !r.Live():
			return nil, fmt.Errorf("%w: it is %s", ErrEnded, r.Step)
		case r.Approval != nil && r.Step != rollout.Stalled:
			return nil, fmt.Errorf("%w: %s", ErrApproved, r.Approval.Reason)
		case r.PromotedBy != "" && r.PromotedBy == a.By && !a.Emergency:
			return nil, fmt.Errorf("%w, and this one was by %s", ErrOwn, r.PromotedBy)
		}
		a.TSUS = rn.us()
		return rollout.Approve(r, a, rn.known(r)), nil
	})
}

// known are the APs in a rollout's scope that can have its policy.
func (rn *Runner) known(r *rollout.Rollout) []string {
	policy := r.Policy
	if policy == "" {
		policy = bundle.RwndFair
	}
	return rn.fleet.IDs(r.Scope, policy)
}

// earlier is a rollout that reached everyone in a release's scope with the same models and no smaller mode, that of the
// greatest mode, or nil. What was aborted since is none. The caller holds the lock.
func (rn *Runner) earlier(rel *release.Release) (best *rollout.Rollout) {
	mode, spoiledUS := rel.Bundle.Mode.String(), int64(-1)
	for _, stored := range rn.rollouts {
		r := rn.described(stored)
		if r.Models != rel.Bundle.Models {
			continue
		}
		if r.Spoiled || r.Step == rollout.Aborted {
			spoiledUS = max(spoiledUS, r.StartedUS)
			continue
		}
		if r.All && rollout.Covers(r.Scope, rel.Scope) && rollout.NoGreater(mode, r.Mode) &&
			(best == nil || rollout.NoGreater(best.Mode, r.Mode)) {
			best = &r
		}
	}
	if best != nil && best.StartedUS <= spoiledUS {
		return nil
	}
	return best
}

// approvedSince is a rollout that has reached everyone, so that this one need not wait for an approval, or nil: that of
// the fleet, of which it is a site's variant, may have been approved meanwhile.
func (rn *Runner) approvedSince(r *rollout.Rollout) *rollout.Rollout {
	rn.lock.Lock()
	defer rn.lock.Unlock()
	rel := rn.byHash[r.Hash]
	if r.Approval != nil || rel == nil || !r.Unapproved(rn.Gate) {
		return nil
	}
	return rn.earlier(rel)
}

// described is a rollout with models and mode, if it was stored before those were.
func (rn *Runner) described(stored *rollout.Rollout) rollout.Rollout {
	r := *stored
	if rel := rn.byHash[r.Hash]; r.Models == "" && rel != nil {
		r.Models, r.Mode = rel.Bundle.Models, rel.Bundle.Mode.String()
	}
	return r
}
