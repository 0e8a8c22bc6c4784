package rollouts

import (
	"context"

	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// latest is the rollout that a slot had last. The caller holds the lock.
func (rn *Runner) latest(key string) *rollout.Rollout { return rn.latestBut(key, "") }

func (rn *Runner) latestBut(key, id string) (last *rollout.Rollout) {
	for _, r := range rn.rollouts {
		if r.Key() == key && r.ID != id && (last == nil || r.StartedUS > last.StartedUS) {
			last = r
		}
	}
	return last
}

// publish gives the fleet what the slots hold. The caller holds the lock.
func (rn *Runner) publish() {
	if !rn.complete {
		return // half a desired state would send APs to and fro
	}
	var offers []*rollout.Offer
	for _, rel := range rn.byKey {
		if offer := rn.offer(rel); offer != nil {
			offers = append(offers, offer)
		}
	}
	known := make([]*release.Release, 0, len(rn.byHash))
	for _, rel := range rn.byHash {
		known = append(known, rel)
	}
	rn.fleet.SetOffers(offers, known)
}

func (rn *Runner) offer(rel *release.Release) *rollout.Offer {
	r := rn.rollouts[rel.ID()]
	if r == nil {
		// The leader has not begun it. Everyone at once needs no rollout; a share waits for its members to be chosen.
		r = rollout.New(rel, rn.latestBut(rel.Key(), rel.ID()), nil, rn.us())
		r.Admit(rn.Gate, rn.earlier(rel))
		if len(r.Plan) > 0 {
			r.Step = rollout.Aborted // not begun: the slot still holds what it had
		}
	}
	offer := &rollout.Offer{Slot: rel.Slot, Scope: rel.Scope, Release: rel, Rollout: r.ID, Threshold: r.Threshold,
		All: r.All,
		Off: r.Off(), Held: r.Waits(), ActivateUS: r.ActivateUS}
	if f := r.Fallback; f != nil && rn.byHash[f.Hash] != nil {
		offer.Fallback = &rollout.Offer{Slot: rel.Slot, Scope: rel.Scope, Release: rn.byHash[f.Hash], Rollout: f.ID,
			Threshold: f.Threshold, All: f.All}
	}
	return offer
}

// reload reads the rollouts and the releases that they need, and publishes what is new. The caller holds the permit.
func (rn *Runner) reload(ctx context.Context) error {
	stored, err := rn.store.Rollouts(ctx)
	if err != nil {
		return err
	}
	next := make(map[string]*rollout.Rollout, len(stored))
	for _, r := range stored {
		next[r.ID] = r
		if err := rn.fetch(ctx, r.Hash); err != nil {
			return err
		}
		if r.Fallback != nil {
			if err := rn.fetch(ctx, r.Fallback.Hash); err != nil {
				return err
			}
		}
	}
	rn.lock.Lock()
	defer rn.lock.Unlock()
	changed := len(next) != len(rn.rollouts)
	for id, r := range next {
		if old := rn.rollouts[id]; old == nil || old.Revision != r.Revision {
			changed = true
		}
	}
	rn.rollouts = next
	if changed {
		rn.publish()
	}
	return nil
}

// fetch makes a release known that only the store still has. The caller holds the permit.
func (rn *Runner) fetch(ctx context.Context, hash string) error {
	rn.lock.Lock()
	known := rn.byHash[hash] != nil
	rn.lock.Unlock()
	if known {
		return nil
	}
	key, raw, err := rn.store.Release(ctx, hash)
	if err != nil || raw == nil {
		return err
	}
	rel, err := release.Parse(key, raw, rn.keys())
	if err != nil { // its key is no longer trusted: not to be gone back to
		rn.logger.Warn("a stored release is no longer accepted", "key", key, "error", err)
		return nil
	}
	rn.lock.Lock()
	defer rn.lock.Unlock()
	rn.byHash[hash] = rel
	return nil
}
