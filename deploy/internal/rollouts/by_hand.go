package rollouts

import (
	"context"
	"errors"
	"fmt"

	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

// Errors of what people ask for.
var (
	ErrNoRollout = errors.New("there is no such rollout")
	ErrEnded     = errors.New("the rollout has ended")
)

// All are the rollouts that are kept, newest first, with the present numbers of the active ones.
func (rn *Runner) All() []rollout.Rollout {
	sorted := rn.sorted()
	all := make([]rollout.Rollout, 0, len(sorted))
	for i := len(sorted) - 1; i >= 0; i-- {
		r := *sorted[i]
		if r.Live() {
			counts := rn.fleet.Count(r.Hash, r.Scope)
			r.APs, r.Applied, r.Rejected = counts.APs, counts.Applied, counts.Rejected
		}
		all = append(all, r)
	}
	return all
}

// Abort gives the members of a rollout back what they had.
func (rn *Runner) Abort(ctx context.Context, id, reason string) (*rollout.Rollout, error) {
	return rn.byHand(ctx, id, func(r *rollout.Rollout) (*rollout.Rollout, error) {
		if !r.Live() {
			return nil, fmt.Errorf("%w: it is %s", ErrEnded, r.Step)
		}
		return rollout.Abort(r, reason, rn.us()), nil
	})
}

// Expand gives a rollout to everyone in its scope whatever was seen of it; not without an approval, where it takes one.
func (rn *Runner) Expand(ctx context.Context, id string) (*rollout.Rollout, error) {
	return rn.byHand(ctx, id, func(r *rollout.Rollout) (*rollout.Rollout, error) {
		if !r.Live() || r.All && r.Step != rollout.Soaking {
			return nil, fmt.Errorf("%w: it is %s", ErrEnded, r.Step)
		}
		if !r.MayExpand(rn.Gate) {
			return nil, fmt.Errorf("%w: ctl approve %s --reason TEXT", ErrUnapproved, r.ID)
		}
		return rollout.Expand(r, rn.us()), nil
	})
}

// byHand steps a rollout on any replica: the store takes only the next revision, so the leader cannot be crossed.
func (rn *Runner) byHand(ctx context.Context, id string, step func(*rollout.Rollout) (*rollout.Rollout, error)) (
	*rollout.Rollout, error) {
	if err := rn.permit.Acquire(ctx); err != nil {
		return nil, err
	}
	defer rn.permit.Return()
	for attempt := 0; ; attempt++ {
		if err := rn.reload(ctx); err != nil {
			return nil, err
		}
		r := rn.stored(id)
		if r == nil {
			return nil, ErrNoRollout
		}
		next, err := step(r)
		if err != nil {
			return nil, err
		}
		err = rn.commit(ctx, r, next)
		if errors.Is(err, store.ErrConflict) && attempt < 5 {
			continue
		}
		return next, err
	}
}
