package rollouts

import (
	"context"

	"oal/deploy/internal/rollout"
)

// measure starts a reading of what a rollout is watched for when one is due, and gives the latest that this replica
// began since it leads; nil: there is none yet.
func (rn *Runner) measure(ctx context.Context, r *rollout.Rollout) *rollout.Measure {
	if !r.Measured() {
		return nil
	}
	if rn.meter == nil {
		return unmeasured(r, rn.us())
	}
	rn.lock.Lock()
	defer rn.lock.Unlock()
	last := rn.readings[r.ID]
	if !last.running && rn.now().Sub(last.at) >= measureEvery {
		running := last
		running.running = true
		rn.readings[r.ID] = running
		asked, begunUS := *r, rn.us()
		go func() {
			measure := rn.meter.Measure(ctx, &asked)
			measure.BegunUS = begunUS
			rn.lock.Lock()
			rn.readings[asked.ID] = reading{measure: &measure, at: rn.now()}
			rn.lock.Unlock()
			signal(rn.wake)
		}()
	}
	if last.measure == nil || last.measure.BegunUS < rn.ledUS {
		return nil
	}
	return last.measure
}

// unmeasured is the reading of a service that has nothing to read from.
func unmeasured(r *rollout.Rollout, nowUS int64) *rollout.Measure {
	const why = "the service has no `clickhouse` in its configuration"
	m := &rollout.Measure{BegunUS: nowUS, Readings: map[string]rollout.Reading{}, OnsetsWhy: why}
	for _, guard := range r.Watched() {
		m.Readings[guard.Metric] = rollout.Reading{Why: why}
	}
	return m
}
