package rollouts

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// meter answers what it is told; while blocked, not at all.
type meter struct {
	value   float64
	asked   atomic.Int32
	blocked chan struct{}
}

func (m *meter) Measure(ctx context.Context, r *rollout.Rollout) rollout.Measure {
	m.asked.Add(1)
	if m.blocked != nil {
		<-m.blocked
	}
	measure := rollout.Measure{Readings: map[string]rollout.Reading{}, Onsets: 100}
	for _, guard := range r.Watched() {
		measure.Readings[guard.Metric] = rollout.Reading{Value: &m.value}
	}
	return measure
}

// plan releases a champion with a plan, as the registry writes it.
func (x *fixture) plan(version uint32, plan map[string]any) (kafka.Record, string) {
	x.clock.advance(time.Second)
	key, value, hash := x.signer.Release(release.Champion, "fleet", version, x.clock.now().UnixMicro(),
		func(r map[string]any) { r["rollout"] = plan })
	record := kafka.Record{Key: key, Value: value}
	x.runner.Handle([]kafka.Record{record})
	x.settle()
	return record, hash
}

// read waits until the meter was asked once more, and its answer is there.
func (x *fixture) read(m *meter, n int32) {
	x.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); m.asked.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatalf("the meter was asked %d times, not %d", m.asked.Load(), n)
		}
	}
	<-x.runner.wake // of the answer
}

// A leader that takes over has the stored good value, and expands nothing before it has read itself.
func TestANewLeaderReadsBeforeItExpands(t *testing.T) {
	x := start(t)
	old := &meter{value: 0.01}
	x.runner.meter = old
	champion, first := x.release("rwnd-fair", release.Champion, 1, 0)
	record, hash := x.plan(2, map[string]any{"steps": []map[string]any{{"share": 0.5, "soak_s": 100}, {"share": 1}},
		"metric": "brier_rise", "limit": 0.1})
	for len(x.runner.wake) > 0 {
		<-x.runner.wake
	}
	x.clock.advance(time.Minute)
	x.settle()
	x.read(old, 1)
	x.settle()
	if r := x.of(hash); r.Value == nil || *r.Value != 0.01 || r.Step != rollout.Soaking {
		t.Fatalf("%+v", r)
	}

	_ = champion
	x.restart(x.record(first), record) // another process leads now
	silent := &meter{value: 0.01, blocked: make(chan struct{})}
	x.runner.meter = silent
	x.runner.setLeading(true)
	x.clock.advance(time.Hour)
	for len(x.runner.wake) > 0 {
		<-x.runner.wake
	}
	x.settle()
	x.clock.advance(time.Minute)
	x.settle()
	if r := x.of(hash); r.Step != rollout.Soaking || r.All || !strings.Contains(r.Detail,
		"soaked; waiting for a reading of brier_rise") {
		t.Fatalf("without a reading of its own: %s, %s", r.Step, r.Detail)
	}
	// It loses the lead and has it again; the answer of before is not of this time.
	x.runner.setLeading(false)
	x.clock.advance(time.Second)
	x.runner.setLeading(true)
	close(silent.blocked)
	x.read(silent, 1)
	x.runner.round(context.Background(), true)
	if r := x.of(hash); r.Step != rollout.Soaking {
		t.Fatalf("with a reading of before it led: %s", r.Step)
	}
	x.clock.advance(measureEvery)
	x.settle()
	x.read(silent, 2)
	x.settle()
	if r := x.of(hash); !r.All {
		t.Errorf("with a reading of its own: %s, %s", r.Step, r.Detail)
	}
}

// renew releases the models of version 1 again, in a mode.
func (x *fixture) renew(mode bundle.Mode, scope string, plan map[string]any) *rollout.Rollout {
	x.t.Helper()
	x.clock.advance(time.Second)
	key, value, hash := x.signer.Models(release.Champion, scope, "tree of version 1", mode, x.clock.now().UnixMicro(),
		func(r map[string]any) { r["rollout"] = plan })
	x.runner.Handle([]kafka.Record{{Key: key, Value: value}})
	x.settle()
	return x.of(hash)
}

func TestApprovalOfRenewals(t *testing.T) {
	x := start(t)
	x.runner.Gate = rollout.Gate{Required: true, Share: 0.1}
	ctx := context.Background()
	approve := func(r *rollout.Rollout) {
		t.Helper()
		if _, err := x.runner.Approve(ctx, r.ID, rollout.Approval{By: "ann", Reason: "good"}); err != nil {
			t.Fatal(err)
		}
		x.settle()
	}
	expect := func(r *rollout.Rollout, step rollout.Step, have int) {
		t.Helper()
		if now := x.of(r.Hash); now.Step != step || x.have(r.Hash) != have {
			t.Errorf("%s, %d APs have it; want %s, %d: %s", now.Step, x.have(r.Hash), step, have, now.Detail)
		}
	}
	first := x.renew(bundle.Shadow, "fleet", nil)
	expect(first, rollout.Held, 0)
	if _, err := x.runner.Expand(ctx, first.ID); !errors.Is(err, ErrUnapproved) {
		t.Error(err)
	}
	approve(first)
	expect(first, rollout.Completed, 4)
	expect(x.renew(bundle.Shadow, "fleet", nil), rollout.Completed, 4) // other numbers
	expect(x.renew(bundle.Off, "site/lab", nil), rollout.Completed, 4) // a site of its own that does less
	more := x.renew(bundle.Enforce, "site/lab", nil)                   // and one that does more
	expect(more, rollout.Held, 0)
	enforce := x.renew(bundle.Enforce, "fleet", nil)
	expect(enforce, rollout.Held, 0)
	approve(enforce) // of the fleet's, it is one of the site's as well
	if now := x.of(more.Hash); now.Step == rollout.Held || now.Approval == nil || now.Approval.Of != enforce.ID {
		t.Errorf("the site's waits on: %+v", now)
	}
	x.runner.Handle([]kafka.Record{{Key: "champion/site/lab"}})
	x.settle()
	expect(enforce, rollout.Completed, 4)
	// What takes power away waits for no canary, although its release has one.
	off := x.renew(bundle.Off, "fleet", map[string]any{"share": 0.1, "soak_s": 100})
	expect(off, rollout.Completed, 4)
	if _, err := x.runner.Abort(ctx, enforce.ID, "it was superseded"); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
	// After an abort the same models want an approval again.
	if _, err := x.runner.Abort(ctx, off.ID, "worse"); err != nil {
		t.Fatal(err)
	}
	expect(x.renew(bundle.Off, "fleet", nil), rollout.Held, 0)
}
