package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
)

// ErrNoAnswer: the store did not answer in time. A write may have happened all the same.
var ErrNoAnswer = errors.New("the store did not answer in time")

// maxCalls is how many calls of the store may run, those included that nobody waits for any more: each is a goroutine.
const maxCalls = 64

// Bounded is a store of which every call ends in time, whether the store heeds its context or not: PostgreSQL behind a
// network that drops packets, a file on a disk that hangs. What it wraps goes on by itself and is bounded in number.
// Lead waits as long as its context lives, and Snapshot as long as it writes.
type Bounded struct {
	store   Store
	timeout time.Duration
	calls   chan struct{}
	changed func(since time.Time, err error)

	lock sync.Mutex // guards away
	away time.Time  // of the first call without an answer since the last with one; zero: it answers
}

// Bound gives each call of a store a time. changed is called when the store is found to be away (since when, and
// why) and when it answers again (the zero time).
func Bound(s Store, timeout time.Duration, changed func(since time.Time, err error)) *Bounded {
	return &Bounded{store: s, timeout: timeout, calls: make(chan struct{}, maxCalls), changed: changed}
}

// Timeout is how long a call may take.
func (b *Bounded) Timeout() time.Duration { return b.timeout }

// ask calls the store with a deadline and comes back at it, whatever the store does.
func ask[T any](ctx context.Context, b *Bounded, call func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	began := time.Now()
	timed, cancel := context.WithTimeout(ctx, b.timeout)
	answers := make(chan answer, 1)
	select {
	case b.calls <- struct{}{}:
		go func() {
			defer cancel()
			value, err := call(timed)
			<-b.calls
			answers <- answer{value, err}
		}()
	case <-timed.Done():
		cancel()
	}
	var a answer
	select {
	case a = <-answers:
	case <-timed.Done():
		select { // both at once: it did answer
		case a = <-answers:
		default:
			a.err = timed.Err()
		}
	}
	if ctx.Err() != nil { // who asked has gone; that says nothing of the store
		return a.value, a.err
	}
	if errors.Is(a.err, context.DeadlineExceeded) {
		a.err = fmt.Errorf("%w (%s)", ErrNoAnswer, b.timeout)
	}
	b.note(began, a.err)
	return a.value, a.err
}

// note remembers since when the store is away.
func (b *Bounded) note(began time.Time, err error) {
	if errors.Is(err, ErrConflict) {
		err = nil
	}
	b.lock.Lock()
	since := time.Time{}
	if err != nil {
		since = began
	}
	changed := since.IsZero() != b.away.IsZero()
	if changed {
		b.away = since
	}
	b.lock.Unlock()
	if changed {
		b.changed(since, err)
	}
}

// Away is since when the store does not answer; the zero time: it does.
func (b *Bounded) Away() time.Time {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.away
}

// do is ask for calls that answer with an error alone.
func (b *Bounded) do(ctx context.Context, call func(context.Context) error) error {
	_, err := ask(ctx, b, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (b *Bounded) Shared() bool { return b.store.Shared() }

func (b *Bounded) Lead(ctx context.Context) (context.Context, error) { return b.store.Lead(ctx) }

func (b *Bounded) Snapshot(ctx context.Context, write func(size int64, state io.WriterTo) error) error {
	return b.store.Snapshot(ctx, write)
}

func (b *Bounded) Rollouts(ctx context.Context) ([]*rollout.Rollout, error) {
	return ask(ctx, b, b.store.Rollouts)
}

func (b *Bounded) Step(ctx context.Context, r *rollout.Rollout, entries []Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.Step(ctx, r, entries) })
}

func (b *Bounded) Forget(ctx context.Context, ids []string) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.Forget(ctx, ids) })
}

func (b *Bounded) SaveRelease(ctx context.Context, hash, key string, raw []byte) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.SaveRelease(ctx, hash, key, raw) })
}

func (b *Bounded) Release(ctx context.Context, hash string) (string, []byte, error) {
	found, err := ask(ctx, b, func(ctx context.Context) (s stored, err error) {
		s.Key, s.Raw, err = b.store.Release(ctx, hash)
		return s, err
	})
	return found.Key, found.Raw, err
}

func (b *Bounded) KeepReleases(ctx context.Context, hashes map[string]bool) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.KeepReleases(ctx, hashes) })
}

func (b *Bounded) Log(ctx context.Context, e Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.Log(ctx, e) })
}

func (b *Bounded) History(ctx context.Context, before int64, limit int) ([]Entry, error) {
	return ask(ctx, b, func(ctx context.Context) ([]Entry, error) { return b.store.History(ctx, before, limit) })
}

func (b *Bounded) Pending(ctx context.Context, limit int) ([]Event, error) {
	return ask(ctx, b, func(ctx context.Context) ([]Event, error) { return b.store.Pending(ctx, limit) })
}

func (b *Bounded) Acknowledged(ctx context.Context, seqs []int64) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.Acknowledged(ctx, seqs) })
}

func (b *Bounded) Kills(ctx context.Context) ([]fleet.Kill, error) { return ask(ctx, b, b.store.Kills) }

func (b *Bounded) SetKill(ctx context.Context, k fleet.Kill, e Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.SetKill(ctx, k, e) })
}

func (b *Bounded) ClearKill(ctx context.Context, t fleet.Target, e Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.ClearKill(ctx, t, e) })
}

func (b *Bounded) Tickets(ctx context.Context) ([]Ticket, error) { return ask(ctx, b, b.store.Tickets) }

func (b *Bounded) Ticket(ctx context.Context, hash string) (*Ticket, error) {
	return ask(ctx, b, func(ctx context.Context) (*Ticket, error) { return b.store.Ticket(ctx, hash) })
}

func (b *Bounded) AddTicket(ctx context.Context, t Ticket, e Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.AddTicket(ctx, t, e) })
}

func (b *Bounded) UseTicket(ctx context.Context, t Ticket, e Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.UseTicket(ctx, t, e) })
}

func (b *Bounded) RemoveTicket(ctx context.Context, hash string, e Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.RemoveTicket(ctx, hash, e) })
}

func (b *Bounded) Access(ctx context.Context) ([]Access, error) { return ask(ctx, b, b.store.Access) }

func (b *Bounded) SetAccess(ctx context.Context, a Access, e Entry) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.SetAccess(ctx, a, e) })
}

func (b *Bounded) AccessSent(ctx context.Context, sent []Access) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.AccessSent(ctx, sent) })
}

func (b *Bounded) LogAudit(ctx context.Context, a Audit) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.LogAudit(ctx, a) })
}

func (b *Bounded) AuditLog(ctx context.Context, before int64, limit int) ([]Audit, error) {
	return ask(ctx, b, func(ctx context.Context) ([]Audit, error) { return b.store.AuditLog(ctx, before, limit) })
}

func (b *Bounded) SaveAPs(ctx context.Context, aps []fleet.AP) error {
	return b.do(ctx, func(ctx context.Context) error { return b.store.SaveAPs(ctx, aps) })
}

func (b *Bounded) APs(ctx context.Context, changedSince time.Time) ([]fleet.AP, error) {
	return ask(ctx, b, func(ctx context.Context) ([]fleet.AP, error) { return b.store.APs(ctx, changedSince) })
}

func (b *Bounded) Alive(ctx context.Context, replica string) (map[string]bool, error) {
	return ask(ctx, b, func(ctx context.Context) (map[string]bool, error) { return b.store.Alive(ctx, replica) })
}

func (b *Bounded) Ping(ctx context.Context) error { return b.do(ctx, b.store.Ping) }

// Close waits for calls that still run no longer than one may take.
func (b *Bounded) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- b.store.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(b.timeout):
		return fmt.Errorf("%w (%s)", ErrNoAnswer, b.timeout)
	}
}

var _ Store = (*Bounded)(nil)
