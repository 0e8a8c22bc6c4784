// Package access keeps APs out that were revoked: stored before anything follows from it, refused by this service from then on, and
// told to the stream jobs by ap.access.v1, so that nothing such an AP writes to Kafka counts either.
package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/mirror"
	"oal/deploy/internal/release"
	"oal/deploy/internal/store"
)

// Topic is compacted: an AP with a record is revoked.
const Topic = "ap.access.v1"

// Errors of what people ask for.
var (
	ErrBad        = errors.New("this cannot be done")
	ErrNotRevoked = errors.New("it is not revoked")
)

const (
	sendEvery = time.Second
	maxReason = 500
)

// List is one replica's sight of who is revoked.
type List struct {
	fleet   *fleet.Fleet
	store   store.Store
	metrics *metric.Set
	now     func() time.Time
	logger  *slog.Logger
	unsent  chan struct{}
	// compared is closed when what is stored was compared with what Kafka says.
	compared chan struct{}

	table *mirror.Table[store.Access] // by AP: revoked, or restored once
	told  map[string]record           // by Kafka until all that was there at the start has come; then nil. The table's lock guards it too
}

// record is a value of ap.access.v1.
type record struct {
	APID      string `json:"ap_id"`
	RevokedUS int64  `json:"revoked_at_us"`
	Who       string `json:"who"`
	Reason    string `json:"reason"`
}

// New is inert.
func New(f *fleet.Fleet, s store.Store, m *metric.Set, now func() time.Time, logger *slog.Logger) *List {
	l := &List{fleet: f, store: s, metrics: m, now: now, logger: logger, unsent: make(chan struct{}, 1), compared: make(chan struct{}),
		told: map[string]record{}}
	l.table = mirror.New(s.Access, func(a store.Access) string { return a.APID }, l.publish)
	return l
}

// Load reads what was stored; call it before an AP is answered.
func (l *List) Load(ctx context.Context) error { return l.table.Load(ctx) }

// Run sees what other replicas were told, until the context ends.
func (l *List) Run(ctx context.Context) {
	if l.store.Shared() {
		l.table.Follow(ctx, func(err error) { l.failed("store", "who is revoked cannot be read; what was known stays", err) })
	}
}

// Revoked is why an AP is kept out; nil: it is not.
func (l *List) Revoked(id string) *store.Access {
	l.table.Lock()
	defer l.table.Unlock()
	if a, known := l.table.Rows[id]; known && a.Revoked {
		return &a
	}
	return nil
}

// All are the revoked APs.
func (l *List) All() []store.Access {
	l.table.Lock()
	defer l.table.Unlock()
	revoked := []store.Access{}
	for _, a := range l.table.Rows {
		if a.Revoked {
			revoked = append(revoked, a)
		}
	}
	sort.Slice(revoked, func(i, j int) bool { return revoked[i].APID < revoked[j].APID })
	return revoked
}

// Revoke keeps an AP out, whether or not it has ever asked. Again takes who and why, and keeps since when.
func (l *List) Revoke(ctx context.Context, id, who, reason string) (store.Access, error) {
	return l.change(ctx, id, who, reason, true)
}

// Restore lets it in again, with the certificate that it has.
func (l *List) Restore(ctx context.Context, id, who, reason string) (store.Access, error) {
	return l.change(ctx, id, who, reason, false)
}

func (l *List) change(ctx context.Context, id, who, reason string, revoked bool) (store.Access, error) {
	reason = strings.TrimSpace(reason)
	if !release.Name.MatchString(id) {
		return store.Access{}, fmt.Errorf("%w: `%.80s` is no AP's id", ErrBad, id)
	}
	if reason == "" || len(reason) > maxReason {
		return store.Access{}, fmt.Errorf("%w: say the reason, in at most %d bytes", ErrBad, maxReason)
	}
	l.table.Lock()
	defer l.table.Unlock()
	if err := l.table.Reload(ctx); err != nil {
		return store.Access{}, err
	}
	old := l.table.Rows[id]
	if !revoked && !old.Revoked {
		return store.Access{}, fmt.Errorf("%w: %s; ctl access shows who is", ErrNotRevoked, id)
	}
	a := store.Access{APID: id, Revoked: revoked, ChangedUS: max(l.now().UnixMicro(), old.ChangedUS+1), Who: who, Reason: reason}
	return a, l.set(ctx, a)
}

// set stores a change and makes it so. The caller holds the lock.
func (l *List) set(ctx context.Context, a store.Access) error {
	what := map[bool]string{true: "revoked", false: "restored"}[a.Revoked]
	entry := store.Entry{TSUS: l.now().UnixMicro(), Kind: "access", Key: a.APID, Detail: fmt.Sprintf("%s by %s: %s", what, a.Who, a.Reason)}
	if err := l.store.SetAccess(ctx, a, entry); err != nil {
		return err
	}
	l.table.Rows[a.APID] = a
	l.logger.Warn("access", "ap", a.APID, "now", what, "who", a.Who, "reason", a.Reason)
	l.publish()
	return nil
}

// publish ends the polls of those revoked, and wakes the sending. The caller holds the lock.
func (l *List) publish() {
	var revoked []string
	unsent := 0
	for id, a := range l.table.Rows {
		if a.Revoked {
			revoked = append(revoked, id)
		}
		if !a.Sent {
			unsent++
		}
	}
	l.metrics.Revoked.Set(float64(len(revoked)))
	l.metrics.AccessPending.Set(float64(unsent))
	l.fleet.SetRevoked(revoked)
	if unsent > 0 {
		select {
		case l.unsent <- struct{}{}:
		default:
		}
	}
}

// Handle takes records of the topic until all that was there at the start has come, which an empty list says. A revocation that is newer
// than what is stored, or of which nothing is stored, is stored: a store that was lost, or put back from a backup, lets nobody in again.
func (l *List) Handle(records []kafka.Record) {
	l.table.Lock()
	defer l.table.Unlock()
	if l.told == nil {
		return
	}
	for _, r := range records {
		var told record
		if r.Value == nil || json.Unmarshal(r.Value, &told) != nil || told.APID != r.Key || !release.Name.MatchString(r.Key) {
			delete(l.told, r.Key) // restored, or not of this service's making
			continue
		}
		l.told[r.Key] = told
	}
	if len(records) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := l.table.Reload(ctx)
	for id, told := range l.told {
		if old, known := l.table.Rows[id]; err == nil && (!known || told.RevokedUS > old.ChangedUS) {
			err = l.set(ctx, store.Access{APID: id, Revoked: true, ChangedUS: told.RevokedUS, Who: told.Who, Reason: told.Reason, Sent: true})
		}
	}
	if err != nil {
		l.failed("store", "revocations in Kafka cannot be compared with the store; they are at the next start", err)
	}
	l.told = nil
	close(l.compared)
}

func (l *List) failed(of, what string, err error) {
	l.metrics.Errors.WithLabelValues(of).Inc()
	l.logger.Error(what, "error", err)
}
