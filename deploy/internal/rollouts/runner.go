// Package rollouts runs all rollouts: it turns the releases in Kafka into what the slots offer to APs, and takes the
// steps. The rules of one rollout are in package rollout, which has no clock and no I/O.
//
// Every replica reads all releases. One of them leads: it begins rollouts and takes their steps, each stored before
// anything follows from it. The others read the stored rollouts. A champion that goes to everyone at once needs no
// leader.
package rollouts

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
	"oal/deploy/internal/permit"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

const (
	// rememberedEntries is how far back, in lines of history, a refusal is looked for before it is written down again.
	rememberedEntries = 200
	// maxQueued is how many refusals wait for the store: of those beyond only the counter knows until the next start.
	maxQueued = 100
)

// Meter reads rollout metrics.
type Meter interface {
	Measure(ctx context.Context, r *rollout.Rollout) rollout.Measure
}

// Runner holds the releases and rollouts of one replica.
type Runner struct {
	fleet   *fleet.Fleet
	store   store.Store
	keys    func() bundle.Keys
	meter   Meter // nil: there is no ClickHouse
	metrics *metric.Set
	logger  *slog.Logger
	now     func() time.Time
	leading atomic.Bool
	// Gate is what needs an approval; set before Run, and not changed. Its zero value: nothing does.
	Gate rollout.Gate

	wake    chan struct{}    // the leader has work
	events  chan struct{}    // there are rows to send
	refused chan store.Entry // refusals for the history: the reader of Kafka does not wait for the store

	// permit is held while rollouts are read from the store or stepped: each must see the one before. Who holds it
	// may write rollouts, under the lock.
	permit permit.Permit

	// lock guards what follows. It is never held over I/O: records of Kafka and people's questions wait for no store.
	lock     sync.Mutex
	complete bool                        // all that was in Kafka at the start is in byKey
	byKey    map[string]*release.Release // the present champion, canary and challenger of each KEY
	byHash   map[string]*release.Release // those, and the releases that rollouts need
	rollouts map[string]*rollout.Rollout // by ID
	readings map[string]reading          // of rollout metrics, by rollout
	ledUS    int64                       // since when this replica leads; earlier readings do not count
}

type reading struct {
	measure *rollout.Measure // nil: none yet
	at      time.Time
	running bool
}

// New is inert.
func New(f *fleet.Fleet, s store.Store, keys func() bundle.Keys, meter Meter, m *metric.Set, now func() time.Time,
	logger *slog.Logger) *Runner {
	return &Runner{fleet: f, store: s, keys: keys, meter: meter, metrics: m, logger: logger, now: now,
		wake: make(chan struct{}, 1), events: make(chan struct{}, 1), permit: permit.New(),
		refused: make(chan store.Entry, maxQueued),
		byKey:   map[string]*release.Release{}, byHash: map[string]*release.Release{},
		rollouts: map[string]*rollout.Rollout{}, readings: map[string]reading{}}
}

// Load reads what was stored; call it before the first Handle.
func (rn *Runner) Load(ctx context.Context) error {
	if err := rn.permit.Acquire(ctx); err != nil {
		return err
	}
	defer rn.permit.Return()
	return rn.reload(ctx)
}

// Events is signalled when rows are waiting to be sent.
func (rn *Runner) Events() <-chan struct{} { return rn.events }

// Complete says whether the desired state is complete.
func (rn *Runner) Complete() bool {
	rn.lock.Lock()
	defer rn.lock.Unlock()
	return rn.complete
}

// Leading says whether this replica takes the steps.
func (rn *Runner) Leading() bool { return rn.leading.Load() }

// Handle takes records of ap.bundles.v1 in order. An empty list says that all that was there at the start has come.
func (rn *Runner) Handle(records []kafka.Record) {
	changed := len(records) == 0
	for _, r := range records {
		if rn.handleRecord(r) {
			changed = true
		}
	}
	if !changed {
		return
	}
	rn.lock.Lock()
	rn.complete = rn.complete || len(records) == 0
	rn.publish()
	rn.lock.Unlock()
	signal(rn.wake)
}

// handleRecord takes one record; true when a slot other than online changed.
func (rn *Runner) handleRecord(r kafka.Record) bool {
	slot, scope, _, err := release.ParseKey(r.Key)
	if err != nil {
		rn.refuse(r.Key, &release.Error{Reason: "bad_record", Detail: err.Error()})
		return false
	}
	var rel *release.Release
	action := "withdraw"
	if r.Value != nil {
		action = "release"
		if rel, err = release.Parse(r.Key, r.Value, rn.keys()); err == nil {
			err = rel.Ahead(rn.us())
		}
		if err != nil {
			rn.refuse(r.Key, err)
			return slot != release.Online && rn.keepEarlier(r.Key)
		}
	}
	rn.metrics.ReleasesTaken.WithLabelValues(string(slot), action).Inc()
	if slot == release.Online {
		rn.fleet.SetOnline(scope[len("ap/"):], rel)
		return false
	}
	rn.lock.Lock()
	defer rn.lock.Unlock()
	if rel == nil {
		delete(rn.byKey, r.Key)
		return true
	}
	rn.byKey[r.Key] = rel
	rn.byHash[rel.Bundle.Hash] = rel
	return true
}

// refuse keeps a record out, and logs it.
func (rn *Runner) refuse(key string, err error) {
	reason := "bad_record"
	var refused *release.Error
	if errors.As(err, &refused) {
		reason = refused.Reason
	}
	rn.metrics.ReleasesRefused.WithLabelValues(reason).Inc()
	rn.logger.Warn("a release is refused; what was there before stays", "key", key, "reason", reason, "error", err)
	select {
	case rn.refused <- store.Entry{TSUS: rn.us(), Kind: "refused", Key: fmt.Sprintf("%.80s", key), Detail: err.Error()}:
	default:
	}
}

// rememberRefused writes refusals down until the context ends.
func (rn *Runner) rememberRefused(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-rn.refused:
			if err := rn.remember(ctx, e); err != nil && ctx.Err() == nil {
				rn.failed("store", "history cannot be stored", err)
			}
		}
	}
}

// remember puts an entry into the history unless it is there already: the record is read at every start, by every
// replica.
func (rn *Runner) remember(ctx context.Context, e store.Entry) error {
	recent, err := rn.store.History(ctx, 0, rememberedEntries)
	if err != nil {
		return err
	}
	for _, old := range recent {
		if old.Kind == e.Kind && old.Key == e.Key && old.Detail == e.Detail {
			return nil
		}
	}
	return rn.store.Log(ctx, e)
}

// keepEarlier puts back, after a start, what a refused record has pushed out of the compacted topic.
func (rn *Runner) keepEarlier(key string) bool {
	rn.lock.Lock()
	defer rn.lock.Unlock()
	last := rn.latest(key)
	if rn.byKey[key] != nil || last == nil || last.Withdrawn || rn.byHash[last.Hash] == nil {
		return false
	}
	rn.byKey[key] = rn.byHash[last.Hash]
	return true
}

func (rn *Runner) us() int64 { return rn.now().UnixMicro() }

func (rn *Runner) failed(of, what string, err error) {
	rn.metrics.Errors.WithLabelValues(of).Inc()
	rn.logger.Error(what, "error", err)
}

func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
