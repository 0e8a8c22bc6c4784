package rollouts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

const (
	roundEvery   = 500 * time.Millisecond // how late a replica sees a step of another, and the end of a soak
	measureEvery = 15 * time.Second       // between two readings of a rollout: six queries of a quota that people share
	leadRetry    = time.Second            // after the store could not be asked for the lead
	keepRollouts = 10                     // of each slot and scope: for people to look back
)

// Run leads when it can and follows until then; it returns when the context ends.
// onLead is called with a context that lives while this replica leads.
func (rn *Runner) Run(ctx context.Context, onLead func(context.Context)) {
	leads := make(chan context.Context)
	go rn.campaign(ctx, leads)
	go rn.rememberRefused(ctx)
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	var lead context.Context
	for {
		if lead != nil && lead.Err() != nil {
			lead = nil
			rn.setLeading(false)
			go rn.campaign(ctx, leads)
		}
		rn.round(ctx, lead != nil)
		select {
		case <-ctx.Done():
			rn.setLeading(false)
			return
		case lead = <-leads:
			rn.setLeading(true)
			go onLead(lead)
		case <-rn.wake:
		case <-ticker.C:
		}
	}
}

func (rn *Runner) setLeading(is bool) {
	if rn.leading.Swap(is) == is {
		return
	}
	rn.lock.Lock()
	rn.readings, rn.ledUS = map[string]reading{}, rn.us()
	rn.lock.Unlock()
	rn.logger.Info("leadership of rollouts", "leading", is)
	rn.metrics.Leader.Set(map[bool]float64{true: 1}[is])
}

func (rn *Runner) campaign(ctx context.Context, leads chan<- context.Context) {
	for ctx.Err() == nil {
		lead, err := rn.store.Lead(ctx)
		if err == nil {
			select {
			case leads <- lead:
			case <-ctx.Done():
			}
			return
		}
		if ctx.Err() == nil {
			rn.failed("store", "cannot ask for the lead; trying again", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(leadRetry):
		}
	}
}

// round is one round: read what others did, and when leading do what is due.
func (rn *Runner) round(ctx context.Context, lead bool) {
	if rn.permit.Acquire(ctx) != nil {
		return
	}
	defer rn.permit.Return()
	var err error
	if rn.store.Shared() {
		err = rn.reload(ctx)
	}
	if err == nil && lead && rn.Complete() {
		err = rn.act(ctx)
	}
	if err != nil && ctx.Err() == nil {
		if errors.Is(err, store.ErrConflict) {
			_ = rn.reload(ctx) // another replica or a person was first; the next round sees it
		} else {
			rn.failed("store", "the steps of rollouts wait for the store", err)
		}
	}
	rn.lock.Lock()
	defer rn.lock.Unlock()
	rn.count()
}

// count tells Prometheus how many rollouts wait, and for what. The caller holds the lock.
func (rn *Runner) count() {
	active, stalled, unapproved := 0, 0, 0
	for _, r := range rn.rollouts {
		if r.Active() {
			active++
		}
		if r.Step == rollout.Stalled {
			stalled++
		}
		if r.Unapproved(rn.Gate) {
			unapproved++
		}
	}
	rn.metrics.RolloutActive.Set(float64(active))
	rn.metrics.RolloutStalled.Set(float64(stalled))
	rn.metrics.RolloutUnapproved.Set(float64(unapproved))
}

// act begins, ends and advances rollouts. The caller holds the permit.
func (rn *Runner) act(ctx context.Context) error {
	present := rn.present()
	for _, r := range rn.sorted() {
		now := present[r.Key()]
		if r.Step == rollout.Superseded || now != nil && now.ID() == r.ID || r.Step == rollout.Aborted && now != nil {
			continue
		}
		reason := "withdrawn"
		if now != nil {
			reason = fmt.Sprintf("by version %d of %s, rollout %s", now.Bundle.Version, now.Bundle.Model, now.ID())
		}
		if err := rn.commit(ctx, r, rollout.Supersede(r, reason, now == nil, rn.us())); err != nil {
			return err
		}
	}
	for _, rel := range inOrder(present) {
		key, old := rel.Key(), rn.stored(rel.ID())
		if old != nil && old.Step != rollout.Superseded {
			continue
		}
		aps := rn.fleet.IDs(rel.Scope, rel.Policy())
		rn.lock.Lock()
		r := rollout.New(rel, rn.latestBut(key, rel.ID()), aps, rn.us())
		r.Admit(rn.Gate, rn.earlier(rel))
		rn.lock.Unlock()
		// Stored before its rollout is, so that it can be gone back to when it is no longer in the topic.
		if err := rn.store.SaveRelease(ctx, rel.Bundle.Hash, key, rel.Raw); err != nil {
			return err
		}
		if old != nil { // the same record again, after it was withdrawn
			r.Revision = old.Revision
		}
		if err := rn.commit(ctx, old, r); err != nil {
			return err
		}
	}
	for _, r := range rn.sorted() {
		if !r.Active() {
			continue
		}
		if earlier := rn.approvedSince(r); earlier != nil {
			next := rollout.Inherit(r, earlier, rn.known(r), rn.us())
			if err := rn.commit(ctx, r, next); err != nil {
				return err
			}
			r = next
		}
		next := rollout.Next(r, rollout.Look{Counts: rn.fleet.Count(r.Hash, r.Scope), Measure: rn.measure(ctx, r),
			IDs: func() []string { return rn.known(r) }, Gate: rn.Gate, NowUS: rn.us()})
		if next == r {
			continue
		}
		if err := rn.commit(ctx, r, next); err != nil {
			return err
		}
	}
	return rn.forget(ctx)
}

// present are the releases that the slots hold now, by KEY: a copy.
func (rn *Runner) present() map[string]*release.Release {
	rn.lock.Lock()
	defer rn.lock.Unlock()
	return maps.Clone(rn.byKey)
}

// inOrder are releases in the order in which they were made: so rollouts begin, and so the history tells them, also
// when a leader finds several at once.
func inOrder(present map[string]*release.Release) []*release.Release {
	return slices.SortedFunc(maps.Values(present), func(a, b *release.Release) int {
		return cmp.Or(cmp.Compare(a.CreatedUS, b.CreatedUS), strings.Compare(a.Key(), b.Key()))
	})
}

// stored is a rollout as it was stored; nil: there is none.
func (rn *Runner) stored(id string) *rollout.Rollout {
	rn.lock.Lock()
	defer rn.lock.Unlock()
	return rn.rollouts[id]
}

// sorted are the rollouts, oldest first: the order of the history.
func (rn *Runner) sorted() []*rollout.Rollout {
	rn.lock.Lock()
	defer rn.lock.Unlock()
	all := make([]*rollout.Rollout, 0, len(rn.rollouts))
	for _, r := range rn.rollouts {
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].StartedUS < all[j].StartedUS })
	return all
}

// commit stores a rollout's new state, with a row and a line of history when it took a step, and then makes it so. The
// caller holds the permit.
func (rn *Runner) commit(ctx context.Context, before, next *rollout.Rollout) error {
	next.Revision++
	var entries []store.Entry
	steps := happened(before, next)
	for _, step := range steps {
		row, err := json.Marshal(rn.row(next, step))
		if err != nil {
			return err
		}
		entries = append(entries, store.Entry{TSUS: next.StepUS, Kind: "rollout", Key: next.Key(), Row: row,
			Detail: fmt.Sprintf("%s: version %d of %s %s", next.ID, next.Version, next.Model, step)})
	}
	if err := rn.store.Step(ctx, next, entries); err != nil {
		return err
	}
	rn.lock.Lock()
	rn.rollouts[next.ID] = next
	if entries != nil {
		rn.publish()
	}
	rn.lock.Unlock()
	if entries != nil {
		for _, step := range steps {
			rn.metrics.RolloutSteps.WithLabelValues(string(step)).Inc()
		}
		rn.logger.Info("rollout", "id", next.ID, "slot", next.Slot, "scope", next.Scope, "policy", next.Policy,
			"step", next.Step, "detail", next.Detail,
			"aps", next.APs, "applied", next.Applied, "rejected", next.Rejected)
		signal(rn.events)
	}
	return nil
}

// happened are the steps between two states of a rollout; before is nil when it begins.
func happened(before, next *rollout.Rollout) (steps []rollout.Step) {
	if before != nil && before.ID == next.ID && next.Approval != nil && next.Approval.Of == "" &&
		(before.Approval == nil || *before.Approval != *next.Approval) {
		steps = append(steps, rollout.Approved)
	}
	if before == nil || before.Step != next.Step {
		return append(steps, next.Step)
	}
	if before.At != next.At {
		steps = append(steps, rollout.Widened)
	}
	return steps
}

// row of the table rollout (schema/stream_tables.yaml).
func (rn *Runner) row(r *rollout.Rollout, step rollout.Step) map[string]any {
	counts := rn.fleet.Count(r.Hash, r.Scope)
	detail := r.Detail
	if r.Policy != "" {
		detail = strings.TrimSuffix("policy "+r.Policy+": "+detail, ": ")
	}
	return map[string]any{"ts": r.StepUS, "rollout": r.ID, "slot": r.Slot, "scope": r.Scope,
		"bundle": bundle.ID(r.Hash), "step": step,
		"aps": max(r.APs, counts.APs), "applied": r.Applied, "rejected": r.Rejected, "metric": r.Metric,
		"value": r.Value, "limit": r.Limit, "detail": detail}
}

// forget removes old rollouts, and releases that no rollout refers to.
func (rn *Runner) forget(ctx context.Context) error {
	count := map[string]int{}
	all := rn.sorted()
	var old []string
	for i := len(all) - 1; i >= 0; i-- {
		key := all[i].Key()
		if count[key]++; count[key] > keepRollouts && !all[i].Active() {
			old = append(old, all[i].ID)
		}
	}
	if len(old) == 0 {
		return nil
	}
	if err := rn.store.Forget(ctx, old); err != nil {
		return err
	}
	return rn.store.KeepReleases(ctx, rn.without(old))
}

// without forgets rollouts, and the releases that none refers to; it gives the hashes of the others.
func (rn *Runner) without(old []string) (keep map[string]bool) {
	rn.lock.Lock()
	defer rn.lock.Unlock()
	for _, id := range old {
		delete(rn.rollouts, id)
		delete(rn.readings, id)
	}
	keep = map[string]bool{}
	for _, rel := range rn.byKey {
		keep[rel.Bundle.Hash] = true
	}
	for _, r := range rn.rollouts {
		keep[r.Hash] = true
		if r.Fallback != nil {
			keep[r.Fallback.Hash] = true
		}
	}
	for hash := range rn.byHash {
		if !keep[hash] {
			delete(rn.byHash, hash)
		}
	}
	return keep
}
