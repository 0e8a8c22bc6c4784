// Package mirror is one replica's copy of a table of the store that people may change at every replica: who is revoked,
// what the kill switch turns off. What opens is stored first; then this replica acts on it, and the others do within
// readEvery. What closes is acted on here at once and stored as soon as the store takes it: a store that is away stops
// no kill. Reading never waits for the store.
package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oal/deploy/internal/permit"
)

// readEvery is how late a replica sees a change that another one made: an AP that is revoked or switched off must not
// wait longer.
const readEvery = 250 * time.Millisecond

// Options are what a table is made of.
type Options[T comparable] struct {
	Read   func(context.Context) ([]T, error) // all rows in the store
	Key    func(row T) string                 // unique among them; no I/O in it
	Shared bool                               // other replicas may write to the store
	// Put stores a row that was asserted, where old is what is stored of its key (known says whether there is). It
	// gives what is stored then.
	Put     func(ctx context.Context, old T, known bool, row T) (T, error)
	Publish func(rows map[string]T) // is given the rows when they changed, one change after another; no I/O in it
	// Failed is called when the store did not take, or give, the rows; what was known stays. again: as the last time.
	Failed func(err error, again bool)
	Now    func() time.Time
}

// Table is the rows as they were last read or written, and over them those that were asserted and are not stored yet.
type Table[T comparable] struct {
	Options[T]

	// permit is held while talking with the store: each must see the change before. Who holds it may write stored,
	// under the lock.
	permit permit.Permit
	rows   atomic.Pointer[map[string]T] // what readers see: never changed, only replaced

	lock     sync.Mutex // guards what follows, and the order of publications; it is never held over I/O
	stored   map[string]T
	unstored map[string]T
	fresh    time.Time // stored was what the store has
	failing  bool      // the store did not answer since
}

// New is empty.
func New[T comparable](o Options[T]) *Table[T] {
	t := &Table[T]{Options: o, permit: permit.New(), stored: map[string]T{}, unstored: map[string]T{}}
	t.rows.Store(&map[string]T{})
	return t
}

// State says how far the rows are what the store has.
type State struct {
	// StaleSince is when the rows were last what the store has, if it does not answer; otherwise zero.
	StaleSince time.Time
	// Unstored are the keys of rows that are in force here and nowhere else: they end with the process.
	Unstored map[string]bool
}

// State is that of now.
func (t *Table[T]) State() State {
	t.lock.Lock()
	defer t.lock.Unlock()
	s := State{Unstored: make(map[string]bool, len(t.unstored))}
	for key := range t.unstored {
		s.Unstored[key] = true
	}
	if t.failing {
		s.StaleSince = t.fresh
	}
	return s
}

// Load reads the table.
func (t *Table[T]) Load(ctx context.Context) error {
	if err := t.permit.Acquire(ctx); err != nil {
		return err
	}
	defer t.permit.Return()
	return t.load(ctx)
}

// load is Load for callers that hold the permit.
func (t *Table[T]) load(ctx context.Context) error {
	began := t.Now()
	read, err := t.Read(ctx)
	next := make(map[string]T, len(read))
	for _, row := range read {
		next[t.Key(row)] = row
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if err != nil {
		t.failing = true
		return err
	}
	t.stored, t.fresh, t.failing = next, began, false
	t.settle()
	return nil
}

// settle publishes what changed. The caller holds the lock.
func (t *Table[T]) settle() {
	next := maps.Clone(t.stored)
	maps.Copy(next, t.unstored)
	if !maps.Equal(next, *t.rows.Load()) {
		t.rows.Store(&next)
		t.Publish(next)
	}
}

// Run reads what other replicas changed, and stores what was asserted, until the context ends.
func (t *Table[T]) Run(ctx context.Context) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	again := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var err error
		if t.Shared {
			err = t.Load(ctx)
		}
		if err == nil {
			err = t.Flush(ctx)
		}
		if err != nil && ctx.Err() == nil {
			t.Failed(err, again)
		}
		again = err != nil
	}
}

// Assert puts a row in force here, at once and whatever becomes of the store; Flush, or Run, stores it. It is for what
// takes power away: until it is stored no other replica knows of it.
func (t *Table[T]) Assert(row T) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.unstored[t.Key(row)] = row
	t.settle()
}

// Flush stores what was asserted; without an error nothing is left of it.
func (t *Table[T]) Flush(ctx context.Context) error {
	if len(t.State().Unstored) == 0 {
		return nil
	}
	if err := t.permit.Acquire(ctx); err != nil {
		return fmt.Errorf("another change still waits for the store: %w", err)
	}
	defer t.permit.Return()
	if err := t.load(ctx); err != nil {
		return err
	}
	return t.flush(ctx)
}

// flush is Flush for callers that hold the permit and have loaded.
func (t *Table[T]) flush(ctx context.Context) error {
	t.lock.Lock()
	due := maps.Clone(t.unstored)
	t.lock.Unlock()
	for key, row := range due {
		t.lock.Lock()
		old, known := t.stored[key]
		t.lock.Unlock()
		stored, err := t.Put(ctx, old, known, row)
		t.lock.Lock()
		if err != nil {
			t.failing = true
			t.lock.Unlock()
			return err
		}
		t.stored[key] = stored
		if t.unstored[key] == row { // not asserted anew meanwhile
			delete(t.unstored, key)
		}
		t.settle()
		t.lock.Unlock()
	}
	return nil
}

// Change reads the latest rows, stores what was asserted, and lets change store something and then write the same into
// the rows that it is given; they are published afterwards. An error of the store, or of change, is returned; change
// must leave a row as it was that it could not store.
func (t *Table[T]) Change(ctx context.Context, change func(rows map[string]T) error) error {
	if err := t.permit.Acquire(ctx); err != nil {
		return fmt.Errorf("another change still waits for the store: %w", err)
	}
	defer t.permit.Return()
	if err := t.load(ctx); err != nil {
		return err
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	t.lock.Lock()
	rows := maps.Clone(t.stored)
	t.lock.Unlock()
	err := change(rows)
	t.lock.Lock()
	defer t.lock.Unlock()
	t.stored = rows
	t.settle()
	return err
}

// Get is the row of a key, if there is one.
func (t *Table[T]) Get(key string) (row T, known bool) {
	row, known = (*t.rows.Load())[key]
	return row, known
}

// All are the rows, in no order.
func (t *Table[T]) All() []T { return slices.Collect(maps.Values(*t.rows.Load())) }
