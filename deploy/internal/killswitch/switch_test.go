package killswitch

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/release"
	"oal/deploy/internal/store"
)

var ctx = context.Background()

// failing is a store whose writes of kills fail while it is told to.
type failing struct {
	store.Store
	fail atomic.Bool
}

var errStore = errors.New("the disk is full")

func (f *failing) SetKill(ctx context.Context, k fleet.Kill, e store.Entry) error {
	if f.fail.Load() {
		return errStore
	}
	return f.Store.SetKill(ctx, k, e)
}

func (f *failing) ClearKill(ctx context.Context, t fleet.Target, e store.Entry) error {
	if f.fail.Load() {
		return errStore
	}
	return f.Store.ClearKill(ctx, t, e)
}

type fixture struct {
	t      *testing.T
	path   string
	store  *failing
	fleet  *fleet.Fleet
	kills  *Switch
	now    time.Time
	counts *metric.Set
}

func start(t *testing.T) *fixture {
	x := &fixture{t: t, path: filepath.Join(t.TempDir(), "state.db"), now: time.UnixMicro(1790000000000000)}
	x.open()
	return x
}

// open is a start of the service: the fleet knows the APs that were stored.
func (x *fixture) open() {
	x.t.Helper()
	db, err := store.OpenBolt(x.path)
	if err != nil {
		x.t.Fatal(err)
	}
	x.store = &failing{Store: db}
	now := func() time.Time { return x.now }
	x.fleet = fleet.New("test", now, func(release.Slot, time.Duration) {})
	x.fleet.Merge([]fleet.AP{{ID: "a", Site: "lab"}, {ID: "b", Site: "hall"}})
	x.counts = metric.New()
	x.kills = New(x.fleet, x.store, x.counts, now, slog.New(slog.DiscardHandler))
	if err := x.kills.Load(ctx); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { db.Close() })
}

func (x *fixture) off() (ids string) {
	page, _ := x.fleet.List("", 9, func(v *fleet.View) bool { return v.Killed })
	for _, v := range page {
		ids += v.ID
	}
	return ids
}

func TestKillsAreKept(t *testing.T) {
	x := start(t)
	first, stored, err := x.kills.Kill(ctx, fleet.Target{Scope: "site/lab"}, "ann", "", "users complain")
	if err != nil || !stored || x.off() != "a" {
		t.Fatal(err, stored, x.off())
	}
	x.now = x.now.Add(time.Minute)
	again, _, err := x.kills.Kill(ctx, fleet.Target{Scope: "site/lab"}, "ann", " bob ", "still")
	if err != nil || again.SinceUS != first.SinceUS || again.Who != "ann" || again.Note != "bob" ||
		again.Reason != "still" {
		t.Errorf("a second one of the same scope: %+v, %v", again, err)
	}
	all := fleet.Target{Scope: "fleet"}
	if _, _, err = x.kills.Kill(ctx, all, "ann", "", "everything"); err != nil || x.off() != "ab" {
		t.Error(err, x.off())
	}
	x.store.Close()
	x.open()
	if kills := x.kills.Kills(); len(kills) != 2 || kills[0].Scope != "fleet" || kills[1] != again || x.off() != "ab" {
		t.Fatalf("after a restart %+v %s", kills, x.off())
	}
	if k, err := x.kills.Unkill(ctx, all, "ann", "", "over"); err != nil || k.Reason != "everything" ||
		x.off() != "a" {
		t.Errorf("%+v %v %s: the narrower one stays", k, err, x.off())
	}
	if _, err := x.kills.Unkill(ctx, all, "ann", "", "over"); !errors.Is(err, ErrNotOff) {
		t.Error(err)
	}
	history, err := x.store.History(ctx, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range history {
		lines = append(lines, e.Kind+" "+e.Key+" "+e.Detail)
	}
	want := "kill fleet control on by ann: over\nkill fleet control off by ann: everything\nkill site/lab control " +
		"off by ann for bob: still\nkill site/lab control off by ann: users complain"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("history\n%s", got)
	}
}

// A policy's kill and that of all are kept apart: one is ended without the other.
func TestAPolicysKillIsKept(t *testing.T) {
	x := start(t)
	x.fleet.Merge([]fleet.AP{{ID: "b", Site: "hall", LastSeenUS: 1, Several: true,
		Switched: fleet.Switched{ByPolicy: true}, Policies: map[string]fleet.Held{"mark": {Applied: "h"}}}})
	mark, all := fleet.Target{Scope: "fleet", Policy: "mark"}, fleet.Target{Scope: "fleet"}
	for _, target := range []fleet.Target{mark, all} {
		if _, stored, err := x.kills.Kill(ctx, target, "ann", "", "loss"); err != nil || !stored {
			t.Fatal(target, err)
		}
	}
	x.store.Close()
	x.open()
	x.fleet.Merge([]fleet.AP{{ID: "b", Site: "hall", LastSeenUS: 1, Switched: fleet.Switched{ByPolicy: true}}})
	kills := x.kills.Kills()
	if len(kills) != 2 || kills[0].Target != all || kills[1].Target != mark || x.off() != "ab" {
		t.Fatalf("after a restart %+v", kills)
	}
	if _, err := x.kills.Unkill(ctx, all, "ann", "", "over"); err != nil || x.off() != "a" {
		t.Error(err, x.off(), "a knows no policies' kills, b has mark alone off")
	}
	if v, _ := x.fleet.Get("b"); strings.Join(v.KilledPolicies, " ") != "mark" {
		t.Errorf("%+v", v)
	}
	if _, err := x.kills.Unkill(ctx, mark, "ann", "", "over"); err != nil || x.off() != "" {
		t.Error(err, x.off())
	}
	typed := fleet.Target{Scope: "fleet", Policy: "marks"}
	if _, _, err := x.kills.Kill(ctx, typed, "ann", "", "x"); !errors.Is(err, ErrUnknown) ||
		!strings.Contains(err.Error(), "rwnd-fair") {
		t.Error("nobody has that policy, and somebody may rest on it:", err)
	}
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	x := start(t)
	for _, c := range []struct {
		scope, note, reason string
		want                error
	}{
		{"site/la", "ann", "typing error", ErrUnknown}, {"ap/lab", "ann", "typing error", ErrUnknown},
		{"sites/lab", "ann", "x", ErrBad}, {"", "ann", "x", ErrBad},
		{"fleet", "ann", "", ErrBad}, {"fleet", "ann", " \t", ErrBad}, {"fleet", strings.Repeat("x", MaxNote+1), "x",
			ErrBad},
		{"fleet", "ann", strings.Repeat("x", store.MaxReason+1), ErrBad},
	} {
		_, _, err := x.kills.Kill(ctx, fleet.Target{Scope: c.scope}, "ann", c.note, c.reason)
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, _, err := x.kills.Kill(ctx, fleet.Target{Scope: "ap/b"}, "ann", "", "x"); err != nil {
		t.Fatal(err)
	}
	x.store.fail.Store(true)
	_, err := x.kills.Unkill(ctx, fleet.Target{Scope: "ap/b"}, "ann", "", "x")
	if !errors.Is(err, errStore) || x.off() != "b" {
		t.Error("a kill ended that is still stored:", err, x.off())
	}
}

// A kill is in force whatever the store says to it, is shown as not stored, cannot be taken back until the store takes
// both, and is stored by itself as soon as that does.
func TestAKillDoesNotWaitForTheStore(t *testing.T) {
	x := start(t)
	x.store.fail.Store(true)
	k, stored, err := x.kills.Kill(ctx, fleet.Target{Scope: "site/lab"}, "ann", "", "users complain")
	if err != nil || stored || x.off() != "a" {
		t.Fatal(k, stored, err, x.off())
	}
	if s := x.kills.State(); !s.Unstored["site/lab"] || s.StaleSince.IsZero() {
		t.Errorf("%+v", s)
	}
	site := fleet.Target{Scope: "site/lab"}
	if _, err := x.kills.Unkill(ctx, site, "ann", "", "over"); !errors.Is(err, errStore) || x.off() != "a" {
		t.Error("a kill was taken back while the store is away:", err, x.off())
	}
	x.now = x.now.Add(time.Minute)
	run, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); x.kills.Run(run) }()
	x.store.fail.Store(false)
	for deadline := time.Now().Add(20 * time.Second); len(x.kills.State().Unstored) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it was not stored within 20 s")
		}
	}
	stop()
	<-done
	kept, err := x.store.Kills(ctx)
	if err != nil || len(kept) != 1 || kept[0] != k || !x.kills.State().StaleSince.IsZero() {
		t.Errorf("%+v %v", kept, err)
	}
	if history, err := x.store.History(ctx, 0, 9); err != nil || len(history) != 1 {
		t.Errorf("%+v %v", history, err)
	}
	if _, err := x.kills.Unkill(ctx, fleet.Target{Scope: "site/lab"}, "ann", "", "over"); err != nil || x.off() != "" {
		t.Error(err, x.off())
	}
}
