// Package store keeps what must survive the process: rollouts with their steps, the releases they need, and the APs.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
)

// ErrConflict: another replica was first.
var ErrConflict = errors.New("it was changed by another replica")

// ErrNoSnapshot: the state is not this service's to copy.
var ErrNoSnapshot = errors.New(
	"the state is in PostgreSQL; back it up with pg_dump, of the database in store.postgres_dsn_file")

// Entry is one line of the history. Kind is rollout, refused (a release at the door), denied (an AP), kill (the switch
// was turned), access (an AP was revoked or restored), ticket (made or withdrawn) or enrolled (an AP was).
type Entry struct {
	Seq    int64           `json:"seq"`
	TSUS   int64           `json:"ts_us"`
	Kind   string          `json:"kind"`
	Key    string          `json:"key"` // KEY of a release, the record's key as it came, the target of a kill, or an AP
	Detail string          `json:"detail"`
	Row    json.RawMessage `json:"row,omitempty"` // the row of platform.events.v1, for kind rollout
}

// Event is a row that waits to be acknowledged by Kafka.
type Event struct {
	Seq int64
	Row json.RawMessage
}

// Store is durable: a method that returned nil has written.
type Store interface {
	// Lead waits until this replica leads and returns a context that ends when it no longer does.
	Lead(ctx context.Context) (context.Context, error)

	Rollouts(ctx context.Context) ([]*rollout.Rollout, error)
	// Step stores a rollout whose Revision is one more than the stored one's, in one transaction with its history and
	// events.
	Step(ctx context.Context, r *rollout.Rollout, entries []Entry) error
	// Forget removes rollouts that nothing refers to.
	Forget(ctx context.Context, ids []string) error

	SaveRelease(ctx context.Context, hash, key string, raw []byte) error
	Release(ctx context.Context, hash string) (key string, raw []byte, err error) // nil raw: there is none
	KeepReleases(ctx context.Context, hashes map[string]bool) error

	Log(ctx context.Context, e Entry) error
	History(ctx context.Context, before int64, limit int) ([]Entry, error) // newest first; before 0: from the newest
	Pending(ctx context.Context, limit int) ([]Event, error)               // rows not yet acknowledged, oldest first
	Acknowledged(ctx context.Context, seqs []int64) error

	Kills(ctx context.Context) ([]fleet.Kill, error) // by target
	// SetKill adds or replaces the kill of its target, ClearKill removes it, each in one transaction with its line of
	// history.
	SetKill(ctx context.Context, k fleet.Kill, e Entry) error
	ClearKill(ctx context.Context, t fleet.Target, e Entry) error

	Tickets(ctx context.Context) ([]Ticket, error) // by AP
	// Ticket is the one of a token; nil: there is none.
	Ticket(ctx context.Context, hash string) (*Ticket, error)
	// AddTicket adds one and removes those that have lapsed.
	AddTicket(ctx context.Context, t Ticket, e Entry) error
	// UseTicket replaces a ticket by the same one used; ErrConflict when it is gone, or was used meanwhile.
	UseTicket(ctx context.Context, t Ticket, e Entry) error
	// RemoveTicket: ErrConflict when it is gone.
	RemoveTicket(ctx context.Context, hash string, e Entry) error

	Access(ctx context.Context) ([]Access, error) // by AP
	SetAccess(ctx context.Context, a Access, e Entry) error
	// AccessSent marks what Kafka has acknowledged, unless it was changed meanwhile.
	AccessSent(ctx context.Context, sent []Access) error

	LogAudit(ctx context.Context, a Audit) error
	AuditLog(ctx context.Context, before int64, limit int) ([]Audit, error) // newest first; before 0: from the newest

	// Snapshot gives a consistent copy of everything to write, or ErrNoSnapshot.
	Snapshot(ctx context.Context, write func(size int64, state io.WriterTo) error) error

	SaveAPs(ctx context.Context, aps []fleet.AP) error
	APs(ctx context.Context, changedSince time.Time) ([]fleet.AP, error) // zero time: all

	// Alive says that this replica lives, and gives the names of all that do.
	Alive(ctx context.Context, replica string) (map[string]bool, error)
	// Shared says whether other replicas may write to it.
	Shared() bool
	Ping(ctx context.Context) error
	Close() error
}

// MaxReason bounds, in bytes, the reason that a person gives for what they do: a few sentences.
const MaxReason = 500

// deadAfter is how long after its last sign of life, of which it gives one a second, a replica's APs count as not
// connected.
const deadAfter = 6 * time.Second

// keepHistory and keepAudit bound the history and the audit log.
const (
	keepHistory = 20000 // lines: years of rollouts; 10 MB
	keepAudit   = 50000 // lines: months of actions; 15 MB
)
