package control

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

// Rollouts are all that are kept, newest first, with the present numbers of the active ones.
func (c *Control) Rollouts() []rollout.Rollout {
	c.lock.Lock()
	defer c.lock.Unlock()
	sorted := c.sorted()
	all := make([]rollout.Rollout, 0, len(sorted))
	for i := len(sorted) - 1; i >= 0; i-- {
		r := *sorted[i]
		if r.Live() {
			counts := c.fleet.Count(r.Hash, r.Scope)
			r.APs, r.Applied, r.Rejected = counts.APs, counts.Applied, counts.Rejected
		}
		all = append(all, r)
	}
	return all
}

// Abort gives the members of a rollout back what they had.
func (c *Control) Abort(ctx context.Context, id, reason string) (*rollout.Rollout, error) {
	return c.byHand(ctx, id, func(r *rollout.Rollout) (*rollout.Rollout, error) {
		if !r.Live() {
			return nil, fmt.Errorf("%w: it is %s", ErrEnded, r.Step)
		}
		return rollout.Abort(r, reason, c.us()), nil
	})
}

// Expand gives a rollout to everyone in its scope without waiting for the end of its soak.
func (c *Control) Expand(ctx context.Context, id string) (*rollout.Rollout, error) {
	return c.byHand(ctx, id, func(r *rollout.Rollout) (*rollout.Rollout, error) {
		if !r.Live() || r.All && r.Step != rollout.Soaking {
			return nil, fmt.Errorf("%w: it is %s", ErrEnded, r.Step)
		}
		return rollout.Expand(r, c.us()), nil
	})
}

// byHand steps a rollout on any replica: the store takes only the next revision, so the leader cannot be crossed.
func (c *Control) byHand(ctx context.Context, id string, step func(*rollout.Rollout) (*rollout.Rollout, error)) (*rollout.Rollout, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for attempt := 0; ; attempt++ {
		if _, err := c.reload(ctx); err != nil {
			return nil, err
		}
		r := c.rollouts[id]
		if r == nil {
			return nil, ErrNoRollout
		}
		next, err := step(r)
		if err != nil {
			return nil, err
		}
		err = c.commit(ctx, r, next)
		if errors.Is(err, store.ErrConflict) && attempt < 5 {
			continue
		}
		if err == nil {
			c.publish()
		}
		return next, err
	}
}
