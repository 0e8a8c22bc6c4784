package rollouts

import (
	"context"
	"errors"
	"testing"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

// stalled is a store that several share and that does not answer until the context of who asks ends.
type stalled struct {
	store.Store
	asked chan struct{}
}

func (s *stalled) Shared() bool { return true }

func (s *stalled) Rollouts(ctx context.Context) ([]*rollout.Rollout, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// While the store does not answer, releases are taken and given to APs, and people see the rollouts.
func TestAStalledStoreHoldsUpNoRelease(t *testing.T) {
	x := start(t)
	x.release("rwnd-fair", release.Champion, 1, 0)
	away := &stalled{Store: x.store, asked: make(chan struct{}, 2)}
	x.runner.store = away
	ctx, end := context.WithCancel(t.Context())
	rounds := make(chan struct{})
	go func() {
		defer close(rounds)
		x.runner.round(ctx, true)
	}()
	<-away.asked
	served := make(chan bool)
	go func() {
		x.clock.advance(time.Second)
		key, value, hash := x.signer.Release(release.Champion, "fleet", 2, x.clock.now().UnixMicro(), nil)
		x.runner.Handle([]kafka.Record{{Key: key, Value: value}})
		p := x.fleet.Begin("a", fleet.Ask{Site: "lab", InForce: x.has["a"]["rwnd-fair"]})
		rel, _, send := x.fleet.Desired(p)
		served <- len(x.runner.All()) == 1 && x.runner.Complete() && send && rel.Bundle.Hash == hash
	}()
	select {
	case right := <-served:
		if !right {
			t.Error("the release was not given to an AP")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a store that does not answer holds up releases")
	}
	waits, stop := context.WithCancel(t.Context())
	stop()
	if _, err := x.runner.Abort(waits, "any", "by hand"); !errors.Is(err, context.Canceled) {
		t.Error("a step by hand does not give up:", err)
	}
	end()
	<-rounds
}
