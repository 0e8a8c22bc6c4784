package access

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/release"
	"oal/deploy/internal/store"
)

// topic is a compacted topic that can be away.
type topic struct {
	lock    sync.Mutex // guards what follows
	away    bool
	values  map[string][]byte
	written int
}

func (k *topic) Produce(_ context.Context, records []kafka.Record) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.away {
		return errors.New("away")
	}
	for _, r := range records {
		k.written++
		if r.Value == nil {
			delete(k.values, r.Key)
		} else {
			k.values[r.Key] = r.Value
		}
	}
	return nil
}

func (k *topic) records() (records []kafka.Record) {
	k.lock.Lock()
	defer k.lock.Unlock()
	for key, value := range k.values {
		records = append(records, kafka.Record{Key: key, Value: value})
	}
	return records
}

func (k *topic) revoked(id string) (told record) {
	k.lock.Lock()
	defer k.lock.Unlock()
	_ = json.Unmarshal(k.values[id], &told)
	return told
}

type fixture struct {
	t     *testing.T
	topic *topic
	path  string
	store *store.Bolt
	fleet *fleet.Fleet
	list  *List
}

func start(t *testing.T) *fixture {
	x := &fixture{t: t, topic: &topic{values: map[string][]byte{}}, path: filepath.Join(t.TempDir(), "state.db")}
	x.open()
	return x
}

// open starts a service anew, on the store and the topic that there are.
func (x *fixture) open() {
	x.t.Helper()
	var err error
	if x.store, err = store.OpenBolt(x.path); err != nil {
		x.t.Fatal(err)
	}
	x.fleet = fleet.New("test", time.Now, func(release.Slot, time.Duration) {})
	x.list = New(x.fleet, x.store, metric.New(), time.Now, slog.New(slog.DiscardHandler))
	if err := x.list.Load(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	list := x.list // this one's: a later open has its own
	go func() {
		defer close(done)
		list.Send(ctx, x.topic)
	}()
	x.t.Cleanup(func() { stop(); <-done })
}

func (x *fixture) catchUp() {
	if records := x.topic.records(); len(records) > 0 {
		x.list.Handle(records)
	}
	x.list.Handle(nil)
}

func (x *fixture) until(what string, condition func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatal("not within 20 s: " + what)
		}
	}
}

func (x *fixture) ids() string {
	var ids []string
	for _, a := range x.list.All() {
		ids = append(ids, a.APID)
	}
	return strings.Join(ids, " ")
}

func (x *fixture) revoke(id string) store.Access {
	x.t.Helper()
	a, stored, err := x.list.Revoke(x.t.Context(), id, "ann", "stolen")
	if err != nil || !stored {
		x.t.Fatal(err, stored)
	}
	return a
}

func TestRevokeAndRestore(t *testing.T) {
	x := start(t)
	x.catchUp()
	poll := x.fleet.Begin("a", fleet.Ask{})
	a := x.revoke("a")
	select {
	case <-poll.Wake():
	case <-time.After(20 * time.Second):
		t.Error("the poll of a revoked AP was not woken")
	}
	if x.list.Revoked("a") == nil || x.list.Revoked("b") != nil {
		t.Error(x.ids())
	}
	x.until("Kafka says so", func() bool {
		return x.topic.revoked("a") == record{"a", a.ChangedUS, "ann", "stolen"} && x.list.Revoked("a").Sent
	})
	for _, c := range []struct {
		id, reason string
		want       error
	}{{"a b", "x", ErrBad}, {"", "x", ErrBad}, {"a", " ", ErrBad}, {"a", strings.Repeat("x", store.MaxReason+1),
		ErrBad}, {"b", "x", ErrNotRevoked}} {
		if _, err := x.list.Restore(t.Context(), c.id, "ann", c.reason); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := x.list.Restore(t.Context(), "a", "bob", "found"); err != nil || x.list.Revoked("a") != nil {
		t.Error(err)
	}
	x.until("Kafka says so", func() bool { return len(x.topic.records()) == 0 })
	history, err := x.store.History(t.Context(), 0, 9)
	if err != nil || len(history) != 2 || history[0].Detail != "restored by bob: found" ||
		history[1].Detail != "revoked by ann: stolen" {
		t.Errorf("%+v %v", history, err)
	}
}

// What Kafka did not hear while it was away it hears later, after a restart too; a topic made anew hears all.
func TestKafkaIsAway(t *testing.T) {
	x := start(t)
	x.catchUp()
	x.topic.away = true
	x.revoke("a")
	x.store.Close()
	x.open()
	if x.ids() != "a" {
		t.Fatal("a restart let it in:", x.ids())
	}
	x.catchUp()
	x.topic.lock.Lock()
	x.topic.away = false
	x.topic.lock.Unlock()
	x.until("Kafka says so", func() bool { return x.topic.revoked("a").Reason == "stolen" && x.list.Revoked("a").Sent })
	x.store.Close()
	x.topic.values = map[string][]byte{}
	x.open()
	x.catchUp()
	x.until("a new topic says so", func() bool { return x.topic.revoked("a").Reason == "stolen" })
}

// A store that was lost, or is an older one, lets nobody in that Kafka knows to be revoked; who was restored since
// stays so.
func TestTheStoreIsOlderThanKafka(t *testing.T) {
	x := start(t)
	x.catchUp()
	x.revoke("a")
	b := x.revoke("b")
	x.until("Kafka says so", func() bool { return len(x.topic.records()) == 2 })
	before, _ := json.Marshal(record{"b", b.ChangedUS, "ann", "stolen"})
	if _, err := x.list.Restore(t.Context(), "b", "ann", "found"); err != nil {
		t.Fatal(err)
	}
	x.until("Kafka says so", func() bool { return len(x.topic.records()) == 1 })
	x.store.Close()
	x.topic.values["b"] = before // as if Kafka had lost the latest
	x.topic.values["c"] = []byte("nonsense")
	x.topic.values["d/e"] = []byte(`{"ap_id": "d/e"}`)
	x.open()
	x.catchUp()
	if x.ids() != "a" {
		t.Error("the store is the newer one:", x.ids())
	}
	x.until("Kafka says so again", func() bool { return x.topic.revoked("b") == record{} })
	x.topic.lock.Lock()
	x.topic.values["b"] = before
	x.topic.lock.Unlock()
	x.store.Close()
	x.path = filepath.Join(t.TempDir(), "new.db")
	x.open()
	if x.ids() != "" {
		t.Fatal(x.ids())
	}
	x.catchUp()
	// Of what is lost, the later restoration is too: who asks again is restored again.
	if x.ids() != "a b" || x.list.Revoked("a").Reason != "stolen" {
		t.Error("a lost store let someone in:", x.ids())
	}
	if stored, err := x.store.Access(t.Context()); err != nil || len(stored) != 2 {
		t.Errorf("%+v %v", stored, err)
	}
}
