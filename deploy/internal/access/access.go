// Package access keeps APs out that were revoked: refused by this service at once, stored as soon as the store takes
// it, and told to the stream jobs by ap.access.v1, so that nothing such an AP writes to Kafka counts either. Who is
// restored is stored first.
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
	compareLimit = 20 * time.Second // to store, at the start, what only the topic said; it counts before
	// answerLimit is how long the answer to a revocation waits to say that it is stored.
	answerLimit = 4 * time.Second
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
		Put:     l.put,
		Publish: l.publish,
		Failed: func(err error, again bool) {
			l.metrics.Errors.WithLabelValues("store").Inc()
			if !again {
				l.logger.Error("who is revoked cannot be read or stored; what was known stays", "error", err)
			}
		},
		Now: now,
	})
	return l
}

// Load reads what was stored; call it before an AP is answered.
func (l *List) Load(ctx context.Context) error { return l.table.Load(ctx) }

// State says how far this replica knows who is revoked, and what is not stored yet.
func (l *List) State() mirror.State { return l.table.State() }

// Run reads what other replicas changed and stores what is not stored, until the context ends.
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

// Revoke keeps an AP out, whether or not it has ever asked. Again takes who and why. It is kept out here at once;
// stored says whether the store has it, and with it the other replicas and the stream jobs. If not, that is tried until
// it is.
func (l *List) Revoke(ctx context.Context, id, who, reason string) (a store.Access, stored bool, err error) {
	if reason, err = check(id, reason); err != nil {
		return a, false, err
	}
	old, _ := l.table.Get(id)
	a = store.Access{APID: id, Revoked: true, ChangedUS: max(l.now().UnixMicro(), old.ChangedUS+1), Who: who,
		Reason: reason}
	l.table.Assert(a)
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := l.table.Flush(limited); err != nil {
		l.failed("store", "a revocation is in force here and not stored yet; it is tried again", err)
	}
	if now, known := l.table.Get(id); known {
		a = now
	}
	return a, !l.table.State().Unstored[id], nil
}

// Restore lets it in again, with the certificate that it has.
func (l *List) Restore(ctx context.Context, id, who, reason string) (a store.Access, err error) {
	if reason, err = check(id, reason); err != nil {
		return a, err
	}
	err = l.table.Change(ctx, func(rows map[string]store.Access) error {
		old := rows[id]
		if !old.Revoked {
			return fmt.Errorf("%w: %s; ctl access shows who is", ErrNotRevoked, id)
		}
		a = store.Access{APID: id, ChangedUS: max(l.now().UnixMicro(), old.ChangedUS+1), Who: who, Reason: reason}
		if err := l.set(ctx, a); err != nil {
			return err
		}
		rows[id] = a
		return nil
	})
	return a, err
}

func check(id, reason string) (string, error) {
	reason = strings.TrimSpace(reason)
	if !release.Name.MatchString(id) {
		return reason, fmt.Errorf("%w: `%.80s` is no AP's id", ErrBad, id)
	}
	if reason == "" || len(reason) > store.MaxReason {
		return reason, fmt.Errorf("%w: say the reason, in at most %d bytes", ErrBad, store.MaxReason)
	}
	return reason, nil
}

// put stores what was asserted. What a person said goes before what was stored meanwhile; what the topic said, only if
// it is newer.
func (l *List) put(ctx context.Context, old store.Access, known bool, a store.Access) (store.Access, error) {
	if known && old.ChangedUS >= a.ChangedUS {
		if a.Sent {
			return old, nil
		}
		a.ChangedUS = old.ChangedUS + 1
	}
	return a, l.set(ctx, a)
}

// set stores a row.
func (l *List) set(ctx context.Context, a store.Access) error {
	what := map[bool]string{true: "revoked", false: "restored"}[a.Revoked]
	entry := store.Entry{TSUS: l.now().UnixMicro(), Kind: "access", Key: a.APID, Detail: fmt.Sprintf("%s by %s: %s",
		what, a.Who, a.Reason)}
	if err := l.store.SetAccess(ctx, a, entry); err != nil {
		return err
	}
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
// revocation that is newer than what is stored, or of which nothing is stored, counts from then on, and is stored: a
// store that was lost, or put back from a backup, lets nobody in again.
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
	for id, said := range l.inTopic {
		if old, known := l.table.Get(id); !known || said.RevokedUS > old.ChangedUS {
			l.table.Assert(store.Access{APID: id, Revoked: true, ChangedUS: said.RevokedUS, Who: said.Who,
				Reason: said.Reason, Sent: true})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), compareLimit)
	defer cancel()
	if err := l.table.Flush(ctx); err != nil {
		l.failed("store", "revocations that only Kafka knew count, and are not stored yet; it is tried again", err)
	}
	l.inTopic = nil
	close(l.compared)
}

func (l *List) failed(of, what string, err error) {
	l.metrics.Errors.WithLabelValues(of).Inc()
	l.logger.Error(what, "error", err)
}
