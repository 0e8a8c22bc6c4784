package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

const (
	lookEvery    = 500 * time.Millisecond
	measureEvery = 5 * time.Second
	keepRollouts = 10 // of each slot and scope
)

// Run leads when it can and follows until then; it returns when the context ends.
// onLead is called with a context that lives while this replica leads.
func (c *Control) Run(ctx context.Context, onLead func(context.Context)) {
	leads := make(chan context.Context)
	go c.campaign(ctx, leads)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var lead context.Context
	for {
		if lead != nil && lead.Err() != nil {
			lead = nil
			c.setLeading(false)
			go c.campaign(ctx, leads)
		}
		c.look(ctx, lead != nil)
		select {
		case <-ctx.Done():
			c.setLeading(false)
			return
		case lead = <-leads:
			c.setLeading(true)
			go onLead(lead)
		case <-c.wake:
		case <-ticker.C:
		}
	}
}

func (c *Control) setLeading(is bool) {
	if c.leading.Swap(is) == is {
		return
	}
	c.logger.Info("leadership of rollouts", "leading", is)
	c.metrics.Leader.Set(map[bool]float64{true: 1}[is])
}

func (c *Control) campaign(ctx context.Context, leads chan<- context.Context) {
	for ctx.Err() == nil {
		lead, err := c.store.Lead(ctx)
		if err == nil {
			select {
			case leads <- lead:
			case <-ctx.Done():
			}
			return
		}
		if ctx.Err() == nil {
			c.failed("store", "cannot ask for the lead; trying again", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// look is one round: read what others did, and when leading do what is due.
func (c *Control) look(ctx context.Context, lead bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	var changed bool
	var err error
	if c.store.Shared() {
		changed, err = c.reload(ctx)
	}
	if err == nil && lead && c.complete {
		var acted bool
		acted, err = c.act(ctx)
		changed = changed || acted
	}
	if err != nil && ctx.Err() == nil {
		if errors.Is(err, store.ErrConflict) {
			_, _ = c.reload(ctx) // another replica or a person was first; the next round sees it
		} else {
			c.failed("store", "the steps of rollouts wait for the store", err)
		}
	}
	if changed {
		c.publish()
	}
	active := 0
	for _, r := range c.rollouts {
		if r.Active() {
			active++
		}
	}
	c.metrics.RolloutActive.Set(float64(active))
}

// act begins, ends and advances rollouts. The caller holds the lock.
func (c *Control) act(ctx context.Context) (changed bool, err error) {
	for _, r := range c.sorted() {
		now := c.current[release.Key(r.Slot, r.Scope)]
		if r.Step == rollout.Superseded || now != nil && now.ID() == r.ID || r.Step == rollout.Aborted && now != nil {
			continue
		}
		reason := "withdrawn"
		if now != nil {
			reason = fmt.Sprintf("by version %d of %s, rollout %s", now.Bundle.Version, now.Bundle.Model, now.ID())
		}
		if err := c.commit(ctx, r, rollout.Supersede(r, reason, now == nil, c.us())); err != nil {
			return changed, err
		}
		changed = true
	}
	for key, rel := range c.current {
		if r := c.rollouts[rel.ID()]; r != nil && r.Step != rollout.Superseded {
			continue
		}
		r := rollout.New(rel, c.latestBut(key, rel.ID()), c.fleet.IDs(rel.Scope), c.us())
		// Stored before its rollout is, so that it can be gone back to when it is no longer in the topic.
		if err := c.store.SaveRelease(ctx, rel.Bundle.Hash, key, rel.Raw); err != nil {
			return changed, err
		}
		old := c.rollouts[r.ID] // the same record again, after it was withdrawn
		if old != nil {
			r.Revision = old.Revision
		}
		if err := c.commit(ctx, old, r); err != nil {
			return changed, err
		}
		changed = true
	}
	for _, r := range c.sorted() {
		if !r.Active() {
			continue
		}
		next := rollout.Next(r, c.fleet.Count(r.Hash, r.Scope), c.measure(ctx, r), c.us())
		if next == r {
			continue
		}
		if err := c.commit(ctx, r, next); err != nil {
			return changed, err
		}
		changed = changed || next.Step != r.Step
	}
	return changed, c.forget(ctx)
}

// sorted are the rollouts, oldest first: the order of the history.
func (c *Control) sorted() []*rollout.Rollout {
	all := make([]*rollout.Rollout, 0, len(c.rollouts))
	for _, r := range c.rollouts {
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].StartedUS < all[j].StartedUS })
	return all
}

// commit stores a rollout's new state, with a row and a line of history when it took a step, and then makes it so.
func (c *Control) commit(ctx context.Context, before, next *rollout.Rollout) error {
	next.Revision++
	var entries []store.Entry
	if before == nil || before.Step != next.Step {
		row, err := json.Marshal(c.row(next))
		if err != nil {
			return err
		}
		entries = append(entries, store.Entry{TSUS: next.StepUS, Kind: "rollout", Key: release.Key(next.Slot, next.Scope), Row: row,
			Detail: fmt.Sprintf("%s: version %d of %s %s", next.ID, next.Version, next.Model, next.Step)})
	}
	if err := c.store.Step(ctx, next, entries); err != nil {
		return err
	}
	c.rollouts[next.ID] = next
	if entries != nil {
		c.metrics.RolloutSteps.WithLabelValues(string(next.Step)).Inc()
		c.logger.Info("rollout", "id", next.ID, "slot", next.Slot, "scope", next.Scope, "step", next.Step, "detail", next.Detail,
			"aps", next.APs, "applied", next.Applied, "rejected", next.Rejected)
		signal(c.events)
	}
	return nil
}

// row of the table rollout (schema/stream_tables.yaml).
func (c *Control) row(r *rollout.Rollout) map[string]any {
	counts := c.fleet.Count(r.Hash, r.Scope)
	return map[string]any{"ts": r.StepUS, "rollout": r.ID, "slot": r.Slot, "scope": r.Scope, "bundle": bundle.ID(r.Hash), "step": r.Step,
		"aps": max(r.APs, counts.APs), "applied": r.Applied, "rejected": r.Rejected, "metric": r.Metric, "value": r.Value, "limit": r.Limit, "detail": r.Detail}
}

// measure starts a reading of the abort metric when one is due, and gives the latest; nil when there is none yet.
func (c *Control) measure(ctx context.Context, r *rollout.Rollout) *rollout.Measure {
	if r.Step != rollout.Soaking || !r.FromClickHouse() {
		return nil
	}
	if c.meter == nil {
		return &rollout.Measure{Why: "the service has no `clickhouse` in its configuration"}
	}
	last := c.readings[r.ID]
	if !last.running && c.now().Sub(last.at) >= measureEvery {
		running := last
		running.running = true
		c.readings[r.ID] = running
		asked := *r
		go func() {
			measure := c.meter.Measure(ctx, &asked)
			c.lock.Lock()
			c.readings[asked.ID] = reading{measure: measure, at: c.now()}
			c.lock.Unlock()
			signal(c.wake)
		}()
	}
	if last.at.IsZero() {
		return nil
	}
	return &last.measure
}

// forget removes old rollouts, and releases that no rollout refers to.
func (c *Control) forget(ctx context.Context) error {
	count := map[string]int{}
	all := c.sorted()
	var old []string
	for i := len(all) - 1; i >= 0; i-- {
		key := release.Key(all[i].Slot, all[i].Scope)
		if count[key]++; count[key] > keepRollouts && !all[i].Active() {
			old = append(old, all[i].ID)
		}
	}
	if len(old) == 0 {
		return nil
	}
	if err := c.store.Forget(ctx, old); err != nil {
		return err
	}
	for _, id := range old {
		delete(c.rollouts, id)
		delete(c.readings, id)
	}
	keep := map[string]bool{}
	for _, rel := range c.current {
		keep[rel.Bundle.Hash] = true
	}
	for _, r := range c.rollouts {
		keep[r.Hash] = true
		if r.Fallback != nil {
			keep[r.Fallback.Hash] = true
		}
	}
	for hash := range c.releases {
		if !keep[hash] {
			delete(c.releases, hash)
		}
	}
	return c.store.KeepReleases(ctx, keep)
}
