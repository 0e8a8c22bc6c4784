package control

import (
	"context"

	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// latest is the rollout that a slot had last.
func (c *Control) latest(key string) *rollout.Rollout { return c.latestBut(key, "") }

func (c *Control) latestBut(key, id string) (last *rollout.Rollout) {
	for _, r := range c.rollouts {
		if release.Key(r.Slot, r.Scope) == key && r.ID != id && (last == nil || r.StartedUS > last.StartedUS) {
			last = r
		}
	}
	return last
}

// publish gives the fleet what the slots hold. The caller holds the lock.
func (c *Control) publish() {
	if !c.complete {
		return // half a desired state would send APs to and fro
	}
	var offers []*rollout.Offer
	for _, rel := range c.current {
		if offer := c.offer(rel); offer != nil {
			offers = append(offers, offer)
		}
	}
	known := make([]*release.Release, 0, len(c.releases))
	for _, rel := range c.releases {
		known = append(known, rel)
	}
	c.fleet.SetOffers(offers, known)
}

func (c *Control) offer(rel *release.Release) *rollout.Offer {
	r := c.rollouts[rel.ID()]
	if r == nil {
		// The leader has not begun it. Everyone at once needs no rollout; a share waits for its members to be chosen.
		r = rollout.New(rel, c.latestBut(rel.Key(), rel.ID()), nil, c.us())
		if rel.Plan != nil {
			r.Step = rollout.Aborted // not begun: the slot still holds what it had
		}
	}
	offer := &rollout.Offer{Slot: rel.Slot, Scope: rel.Scope, Release: rel, Rollout: r.ID, Threshold: r.Threshold, All: r.All,
		Off: r.Step == rollout.Aborted, ActivateUS: r.ActivateUS}
	if f := r.Fallback; f != nil && c.releases[f.Hash] != nil {
		offer.Fallback = &rollout.Offer{Slot: rel.Slot, Scope: rel.Scope, Release: c.releases[f.Hash], Rollout: f.ID, Threshold: f.Threshold, All: f.All}
	}
	return offer
}

// reload reads the rollouts and the releases that they need; true when something is new. The caller holds the lock.
func (c *Control) reload(ctx context.Context) (changed bool, err error) {
	stored, err := c.store.Rollouts(ctx)
	if err != nil {
		return false, err
	}
	next := make(map[string]*rollout.Rollout, len(stored))
	for _, r := range stored {
		if old := c.rollouts[r.ID]; old == nil || old.Revision != r.Revision {
			changed = true
		}
		next[r.ID] = r
		if err := c.fetch(ctx, r.Hash); err != nil {
			return changed, err
		}
		if r.Fallback != nil {
			if err := c.fetch(ctx, r.Fallback.Hash); err != nil {
				return changed, err
			}
		}
	}
	changed = changed || len(next) != len(c.rollouts)
	c.rollouts = next
	return changed, nil
}

// fetch makes a release known that only the store still has.
func (c *Control) fetch(ctx context.Context, hash string) error {
	if c.releases[hash] != nil {
		return nil
	}
	key, raw, err := c.store.Release(ctx, hash)
	if err != nil || raw == nil {
		return err
	}
	rel, err := release.Parse(key, raw, c.keys())
	if err != nil { // its key is no longer trusted: not to be gone back to
		c.logger.Warn("a stored release is no longer accepted", "key", key, "error", err)
		return nil
	}
	c.releases[hash] = rel
	return nil
}
