// Package control turns the releases in Kafka into what the slots offer to APs, and takes the steps of rollouts.
//
// Every replica reads all releases. One of them leads: it begins rollouts and takes their steps, each stored before anything
// follows from it. The others read the stored rollouts. A champion that goes to everyone at once needs no leader.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

// Meter reads abort metrics.
type Meter interface {
	Measure(ctx context.Context, r *rollout.Rollout) rollout.Measure
}

// Control holds the desired state.
type Control struct {
	fleet   *fleet.Fleet
	store   store.Store
	keys    func() bundle.Keys
	meter   Meter // nil: there is no ClickHouse
	metrics *metric.Set
	logger  *slog.Logger
	now     func() time.Time
	leading atomic.Bool

	wake   chan struct{} // the leader has something to look at
	events chan struct{} // there are rows to send

	// lock guards what follows. The store may be written to under it: steps are rare.
	lock     sync.Mutex
	complete bool                        // all that was in Kafka at the start is in current
	current  map[string]*release.Release // champion, canary, challenger by KEY
	rollouts map[string]*rollout.Rollout // by ID
	releases map[string]*release.Release // by hash: of current and of rollouts
	readings map[string]reading          // of abort metrics, by rollout
}

type reading struct {
	measure rollout.Measure
	at      time.Time
	running bool
}

// New is inert.
func New(f *fleet.Fleet, s store.Store, keys func() bundle.Keys, meter Meter, m *metric.Set, now func() time.Time, logger *slog.Logger) *Control {
	return &Control{fleet: f, store: s, keys: keys, meter: meter, metrics: m, logger: logger, now: now,
		wake: make(chan struct{}, 1), events: make(chan struct{}, 1), current: map[string]*release.Release{},
		rollouts: map[string]*rollout.Rollout{}, releases: map[string]*release.Release{}, readings: map[string]reading{}}
}

// Load reads what was stored; call it before the first Handle.
func (c *Control) Load(ctx context.Context) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	_, err := c.reload(ctx)
	return err
}

// Events is signalled when rows are waiting to be sent.
func (c *Control) Events() <-chan struct{} { return c.events }

// Complete says whether the desired state is complete.
func (c *Control) Complete() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.complete
}

// Leading says whether this replica takes the steps.
func (c *Control) Leading() bool { return c.leading.Load() }

// Handle takes records of ap.bundles.v1 in order. An empty list says that all that was there at the start has come.
func (c *Control) Handle(records []kafka.Record) {
	changed := len(records) == 0
	for _, r := range records {
		if c.take(r) {
			changed = true
		}
	}
	if !changed {
		return
	}
	c.lock.Lock()
	c.complete = c.complete || len(records) == 0
	c.publish()
	c.lock.Unlock()
	signal(c.wake)
}

// take is one record; true when a slot other than online changed.
func (c *Control) take(r kafka.Record) bool {
	slot, scope, err := release.ParseKey(r.Key)
	if err != nil {
		c.refuse(r.Key, &release.Error{Reason: "bad_record", Detail: err.Error()})
		return false
	}
	var rel *release.Release
	action := "withdraw"
	if r.Value != nil {
		action = "release"
		if rel, err = release.Parse(r.Key, r.Value, c.keys()); err != nil {
			c.refuse(r.Key, err)
			return slot != release.Online && c.keepEarlier(r.Key)
		}
	}
	c.metrics.Releases.WithLabelValues(string(slot), action).Inc()
	if slot == release.Online {
		c.fleet.SetOnline(scope[len("ap/"):], rel)
		return false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if rel == nil {
		delete(c.current, r.Key)
		return true
	}
	c.current[r.Key] = rel
	c.releases[rel.Bundle.Hash] = rel
	return true
}

// refuse keeps a record out, and says so.
func (c *Control) refuse(key string, err error) {
	reason := "bad_record"
	var refused *release.Error
	if errors.As(err, &refused) {
		reason = refused.Reason
	}
	c.metrics.Refused.WithLabelValues(reason).Inc()
	c.logger.Warn("a release is refused; what was there before stays", "key", key, "reason", reason, "error", err)
	if err := c.remember(store.Entry{TSUS: c.us(), Kind: "refused", Key: fmt.Sprintf("%.80s", key), Detail: err.Error()}); err != nil {
		c.failed("store", "history cannot be stored", err)
	}
}

// remember puts an entry into the history unless it stands there already: the record is read at every start, by every replica.
func (c *Control) remember(e store.Entry) error {
	ctx := context.Background()
	recent, err := c.store.History(ctx, 0, 200)
	if err != nil {
		return err
	}
	for _, old := range recent {
		if old.Kind == e.Kind && old.Key == e.Key && old.Detail == e.Detail {
			return nil
		}
	}
	return c.store.Log(ctx, e)
}

// keepEarlier puts back, after a start, what a refused record has pushed out of the compacted topic.
func (c *Control) keepEarlier(key string) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	last := c.latest(key)
	if c.current[key] != nil || last == nil || last.Withdrawn || c.releases[last.Hash] == nil {
		return false
	}
	c.current[key] = c.releases[last.Hash]
	return true
}

func (c *Control) us() int64 { return c.now().UnixMicro() }

func (c *Control) failed(of, what string, err error) {
	c.metrics.Errors.WithLabelValues(of).Inc()
	c.logger.Error(what, "error", err)
}

func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
