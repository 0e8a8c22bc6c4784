// Package access keeps APs out that were revoked: stored before anything follows from it, refused by this service from
// then on, and told to the stream jobs by ap.access.v1, so that nothing such an AP writes to Kafka counts either.
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
	sendEvery    = time.Second      // how soon records that Kafka did not acknowledge are sent again
	compareLimit = 20 * time.Second // to compare store and topic at the start; the service is not ready before
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
	// inTopic is what the topic says of each AP until all that was there at the start has come; then nil. Only Handle
	// uses it.
	inTopic map[string]record
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
	l := &List{fleet: f, store: s, metrics: m, now: now, logger: logger,
		unsent: make(chan struct{}, 1), compared: make(chan struct{}), inTopic: map[string]record{}}
	l.table = mirror.New(mirror.Options[store.Access]{
		Read:    s.Access,
		Key:     func(a store.Access) string { return a.APID },
		Shared:  s.Shared(),
		Publish: l.publish,
		Failed:  func(err error) { l.failed("store", "who is revoked cannot be read; what was known stays", err) },
	})
	return l
}

// Load reads what was stored; call it before an AP is answered.
func (l *List) Load(ctx context.Context) error { return l.table.Load(ctx) }

// Run reads what other replicas changed, until the context ends.
func (l *List) Run(ctx context.Context) { l.table.Run(ctx) }

// Revoked is why an AP is kept out; nil: it is not.
func (l *List) Revoked(id string) *store.Access {
	if a, known := l.table.Get(id); known && a.Revoked {
		return &a
	}
	return nil
}

// All are the revoked APs.
func (l *List) All() []store.Access {
	revoked := []store.Access{}
	for _, a := range l.table.All() {
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
	if reason == "" || len(reason) > store.MaxReason {
		return store.Access{}, fmt.Errorf("%w: say the reason, in at most %d bytes", ErrBad, store.MaxReason)
	}
	var a store.Access
	err := l.table.Change(ctx, func(rows map[string]store.Access) error {
		old := rows[id]
		if !revoked && !old.Revoked {
			return fmt.Errorf("%w: %s; ctl access shows who is", ErrNotRevoked, id)
		}
		a = store.Access{APID: id, Revoked: revoked, ChangedUS: max(l.now().UnixMicro(), old.ChangedUS+1), Who: who,
			Reason: reason}
		return l.set(ctx, rows, a)
	})
	return a, err
}

// set stores a row and then writes it into the rows.
func (l *List) set(ctx context.Context, rows map[string]store.Access, a store.Access) error {
	what := map[bool]string{true: "revoked", false: "restored"}[a.Revoked]
	entry := store.Entry{TSUS: l.now().UnixMicro(), Kind: "access", Key: a.APID, Detail: fmt.Sprintf("%s by %s: %s",
		what, a.Who, a.Reason)}
	if err := l.store.SetAccess(ctx, a, entry); err != nil {
		return err
	}
	rows[a.APID] = a
	l.logger.Warn("access", "ap", a.APID, "now", what, "who", a.Who, "reason", a.Reason)
	return nil
}

// publish ends the polls of those revoked, and wakes the sending.
func (l *List) publish(rows map[string]store.Access) {
	var revoked []string
	unsent := 0
	for id, a := range rows {
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

// Handle takes records of the topic until all that was there at the start has come, which an empty list says. A
// revocation that is newer than what is stored, or of which nothing is stored, is stored: a store that was lost, or put
// back from a backup, lets nobody in again.
func (l *List) Handle(records []kafka.Record) {
	if l.inTopic == nil {
		return
	}
	for _, r := range records {
		var said record
		if r.Value == nil || json.Unmarshal(r.Value, &said) != nil || said.APID != r.Key ||
			!release.Name.MatchString(r.Key) {
			delete(l.inTopic, r.Key) // restored, or not of this service's making
			continue
		}
		l.inTopic[r.Key] = said
	}
	if len(records) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), compareLimit)
	defer cancel()
	err := l.table.Change(ctx, func(rows map[string]store.Access) error {
		for id, said := range l.inTopic {
			if old, known := rows[id]; known && said.RevokedUS <= old.ChangedUS {
				continue
			}
			a := store.Access{APID: id, Revoked: true, ChangedUS: said.RevokedUS, Who: said.Who, Reason: said.Reason,
				Sent: true}
			if err := l.set(ctx, rows, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		l.failed("store", "revocations in Kafka cannot be compared with the store; they are at the next start", err)
	}
	l.inTopic = nil
	close(l.compared)
}

func (l *List) failed(of, what string, err error) {
	l.metrics.Errors.WithLabelValues(of).Inc()
	l.logger.Error(what, "error", err)
}
