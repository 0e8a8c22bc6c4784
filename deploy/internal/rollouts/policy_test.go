package rollouts

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/sim"
	"oal/deploy/internal/store"
)

const other = "example"

type fixture struct {
	t      *testing.T
	clock  clock
	fleet  *fleet.Fleet
	store  store.Store
	signer *sim.Signer
	runner *Runner
	has    map[string]map[string]string // hashes by AP and policy
}

// clock is the time of a fixture: tests move it on while readings that run beside them look at it.
type clock struct{ passed atomic.Int64 } // ns

func (c *clock) now() time.Time {
	return time.UnixMicro(1790000000000000).Add(time.Duration(c.passed.Load()))
}

func (c *clock) advance(by time.Duration) { c.passed.Add(int64(by)) }

func start(t *testing.T) *fixture {
	t.Helper()
	x := &fixture{t: t, has: map[string]map[string]string{}}
	db, err := store.OpenBolt(filepath.Join(t.TempDir(), "state.db"))
	if err == nil {
		x.signer, err = sim.NewSigner(filepath.Join(t.TempDir(), "keys"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	x.store = db
	x.restart()
	for _, id := range []string{"a", "b", "c", "d"} {
		x.has[id] = map[string]string{}
	}
	x.poll()
	return x
}

// restart is the service after its process ended: it has its store and what the topic says.
func (x *fixture) restart(topic ...kafka.Record) {
	x.t.Helper()
	now := x.clock.now
	x.fleet = fleet.New("test", now, func(release.Slot, time.Duration) {})
	x.runner = New(x.fleet, x.store, x.signer.Keys, nil, metric.New(), now, slog.New(slog.DiscardHandler))
	if err := x.runner.Load(context.Background()); err != nil {
		x.t.Fatal(err)
	}
	x.runner.Handle(topic)
	x.runner.Handle(nil)
}

// release hands a release of a policy to the runner.
func (x *fixture) release(policy string, slot release.Slot, version uint32, share float64, rollbackTo ...string) (
	kafka.Record, string) {
	x.clock.advance(time.Second)
	key, value, hash := x.signer.ReleaseOf(policy, slot, "fleet", version, x.clock.now().UnixMicro(),
		func(r map[string]any) {
			if share > 0 {
				r["rollout"] = map[string]any{"share": share, "soak_s": 10}
			}
		}, rollbackTo...)
	record := kafka.Record{Key: key, Value: value}
	x.runner.Handle([]kafka.Record{record})
	x.settle()
	return record, hash
}

// settle lets the leader act and the APs ask until nothing changes.
func (x *fixture) settle() {
	for range 4 {
		x.runner.round(context.Background(), true)
		x.poll()
	}
}

// poll lets each AP ask and take what it gets, until it has what it should have.
func (x *fixture) poll() {
	for id, has := range x.has {
		for range 8 {
			ask := fleet.Ask{Site: "lab", InForce: has["rwnd-fair"], Others: map[string]string{}}
			for policy, hash := range has {
				if policy != "rwnd-fair" {
					ask.Others[policy] = hash
				}
			}
			p := x.fleet.Begin(id, ask)
			rel, _, send := x.fleet.Desired(p)
			should, surplus := x.fleet.Policies(p)
			x.fleet.End(p)
			if !send && !surplus {
				break
			}
			for policy := range ask.Others {
				if !strings.Contains(" "+strings.Join(should, " ")+" ", " "+policy+" ") {
					delete(has, policy)
				}
			}
			if send {
				has[rel.Policy()] = rel.Bundle.Hash
				x.fleet.Report(id, fleet.Status{Bundle: rel.Bundle.Hash, Serial: rel.Bundle.Serial,
					State: fleet.Applied})
			}
		}
	}
}

// have is how many APs have a bundle.
func (x *fixture) have(hash string) (n int) {
	for _, has := range x.has {
		for _, other := range has {
			if other == hash {
				n++
			}
		}
	}
	return n
}

func (x *fixture) expect(what string, want map[string]int) {
	x.t.Helper()
	for hash, n := range want {
		if got := x.have(hash); got != n {
			x.t.Errorf("%s: %d APs have %.8s, want %d", what, got, hash, n)
		}
	}
}

func (x *fixture) of(hash string) *rollout.Rollout {
	x.t.Helper()
	for _, r := range x.runner.rollouts {
		if r.Hash == hash {
			return r
		}
	}
	x.t.Fatalf("no rollout of %s", hash)
	return nil
}

func TestCanaryAndRollbackOfOnePolicyLeaveTheOtherAlone(t *testing.T) {
	x := start(t)
	_, fair := x.release("rwnd-fair", release.Champion, 1, 0)
	_, example := x.release(other, release.Champion, 1, 0)
	x.expect("a champion each", map[string]int{fair: 4, example: 4})
	_, canary := x.release(other, release.Canary, 2, 0.25, example)
	x.expect("a canary of one", map[string]int{fair: 4, example: 3, canary: 1})
	r := x.of(canary)
	if r.Policy != other || r.Key() != "canary/fleet/example" || r.Step != rollout.Soaking || x.of(fair).Policy != "" ||
		x.of(fair).Key() != "champion/fleet" {
		t.Errorf("%+v", r)
	}
	if _, err := x.runner.Abort(context.Background(), r.ID, "worse"); err != nil {
		t.Fatal(err)
	}
	// Its member has no way back but the older champion, which the canary names in rollback_to.
	x.settle()
	x.expect("after its abort", map[string]int{fair: 4, example: 4, canary: 0})

	_, next := x.release(other, release.Champion, 3, 0.5, example)
	x.expect("a staged champion", map[string]int{fair: 4, example: 2, next: 2})
	// While it is under way the service ends; the topic holds the latest champion of each policy.
	x.restart(x.record(next), x.record(fair))
	x.settle()
	x.expect("after a restart", map[string]int{fair: 4, example: 2, next: 2})
	x.clock.advance(11 * time.Second)
	x.settle()
	x.expect("after its soak", map[string]int{fair: 4, next: 4})
	if _, err := x.runner.Abort(context.Background(), x.of(next).ID, "worse after all"); err != nil {
		t.Fatal(err)
	}
	x.settle()
	x.expect("back to what the slot had before", map[string]int{fair: 4, example: 4})
	if step := x.of(fair).Step; step != rollout.Completed {
		t.Errorf("the rollout of rwnd-fair is %s", step)
	}
}

// record is the stored release of a hash.
func (x *fixture) record(hash string) kafka.Record {
	x.t.Helper()
	key, raw, err := x.store.Release(context.Background(), hash)
	if err != nil || raw == nil {
		x.t.Fatal(key, err)
	}
	return kafka.Record{Key: key, Value: raw}
}

func TestWithdrawalOfOnePolicy(t *testing.T) {
	x := start(t)
	_, fair := x.release("rwnd-fair", release.Champion, 1, 0)
	record, example := x.release(other, release.Champion, 1, 0)
	x.runner.Handle([]kafka.Record{{Key: record.Key}})
	x.settle()
	x.expect("one is withdrawn", map[string]int{fair: 4, example: 0})
	if r := x.of(example); r.Step != rollout.Superseded || !r.Withdrawn || x.of(fair).Step != rollout.Completed {
		t.Errorf("%+v", r)
	}
	x.runner.Handle([]kafka.Record{{Key: "champion/fleet"}})
	x.settle()
	x.expect("rwnd-fair stays until it is replaced", map[string]int{fair: 4})
}

// A refused record of one policy leaves what each policy had.
func TestRefusedReleaseOfAPolicy(t *testing.T) {
	x := start(t)
	_, fair := x.release("rwnd-fair", release.Champion, 1, 0)
	record, example := x.release(other, release.Champion, 1, 0)
	x.runner.Handle([]kafka.Record{{Key: "champion/fleet/another", Value: record.Value},
		{Key: "champion/fleet", Value: record.Value}, {Key: record.Key, Value: []byte("{}")},
		{Key: "online/ap/a/example", Value: record.Value}, {Key: "champion/fleet/rwnd-fair", Value: record.Value}})
	x.settle()
	x.expect("refused", map[string]int{fair: 4, example: 4})
	go x.runner.rememberRefused(t.Context())
	refused := 0
	for deadline := time.Now().Add(20 * time.Second); refused != 5; time.Sleep(2 * time.Millisecond) {
		entries, err := x.store.History(context.Background(), 0, 100)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d refusals, %v", refused, err)
		}
		refused = 0
		for _, e := range entries {
			if e.Kind == "refused" {
				refused++
			}
		}
	}
}

func TestRowsNameThePolicy(t *testing.T) {
	x := start(t)
	_, fair := x.release("rwnd-fair", release.Champion, 1, 0)
	_, example := x.release(other, release.Canary, 1, 0.25)
	details := map[string]string{}
	entries, err := x.store.History(context.Background(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var row struct{ Rollout, Step, Detail string }
		if err := json.Unmarshal(e.Row, &row); err != nil {
			t.Fatal(err)
		}
		details[row.Rollout+row.Step] = e.Key + ", " + row.Detail
	}
	for at, want := range map[string]string{x.of(fair).ID + "started": "champion/fleet, ",
		x.of(example).ID + "started": "canary/fleet/example, policy example",
		x.of(example).ID + "soaking": "canary/fleet/example, policy example: for 10 s"} {
		if details[at] != want {
			t.Errorf("%s: %q, want %q", at, details[at], want)
		}
	}
}

// A leader that finds several releases at once begins their rollouts as they were made, whatever their slots.
func TestRolloutsBeginInTheOrderOfTheirReleases(t *testing.T) {
	for range 8 {
		x := start(t)
		var topic []kafka.Record
		var want []string
		for version, slot := range []release.Slot{release.Champion, release.Canary} {
			for _, policy := range []string{"rwnd-fair", other} {
				x.clock.advance(time.Second)
				key, value, hash := x.signer.ReleaseOf(policy, slot, "fleet", uint32(version+1),
					x.clock.now().UnixMicro(), nil)
				topic, want = append(topic, kafka.Record{Key: key, Value: value}), append(want, hash)
			}
		}
		x.runner.now = func() time.Time { x.clock.advance(time.Millisecond); return x.clock.now() }
		x.runner.Handle(topic)
		x.settle()
		var began []string
		for _, r := range x.runner.sorted() {
			began = append(began, r.Hash)
		}
		if !slices.Equal(began, want) {
			t.Fatalf("began %.8q, want %.8q", began, want)
		}
	}
}
