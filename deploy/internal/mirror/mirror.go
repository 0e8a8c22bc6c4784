// Package mirror is one replica's copy of a table of the store that people may change at every replica: who is revoked,
// what the kill switch turns off. A change is stored first; then this replica acts on it, and the others do within
// readEvery.
package mirror

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// readEvery is how late a replica sees a change that another one made: an AP that is revoked or switched off must not
// wait longer.
const readEvery = 250 * time.Millisecond

// Options are what a table is made of.
type Options[T comparable] struct {
	Read    func(context.Context) ([]T, error) // all rows in the store
	Key     func(row T) string                 // unique among them
	Shared  bool                               // other replicas may write to the store
	Publish func(rows map[string]T)            // is given the rows, under the lock, when they may have changed
	Failed  func(error)                        // is told that they cannot be read; what was known stays
}

// Table is the rows as they were last read or written.
type Table[T comparable] struct {
	Options[T]

	// lock guards rows. It is held while the store is written to: changes are rare, and each must see the one before.
	lock sync.Mutex
	rows map[string]T // by key
}

// New is empty.
func New[T comparable](o Options[T]) *Table[T] {
	return &Table[T]{Options: o, rows: map[string]T{}}
}

// Load reads the table.
func (t *Table[T]) Load(ctx context.Context) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.load(ctx)
}

// load is Load for callers that hold the lock.
func (t *Table[T]) load(ctx context.Context) error {
	stored, err := t.Read(ctx)
	if err != nil {
		return err
	}
	next := make(map[string]T, len(stored))
	for _, row := range stored {
		next[t.Key(row)] = row
	}
	if !maps.Equal(next, t.rows) {
		t.rows = next
		t.Publish(t.rows)
	}
	return nil
}

// Run reads what other replicas changed, until the context ends.
func (t *Table[T]) Run(ctx context.Context) {
	if !t.Shared {
		return
	}
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := t.Load(ctx); err != nil && ctx.Err() == nil {
			t.Failed(err)
		}
	}
}

// Change reads the latest rows and lets change store something and then write the same into them; they are published
// afterwards. An error of the reading, or of change, is returned; change must leave a row as it was that it could not
// store.
func (t *Table[T]) Change(ctx context.Context, change func(rows map[string]T) error) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if err := t.load(ctx); err != nil {
		return err
	}
	defer func() { t.Publish(t.rows) }()
	return change(t.rows)
}

// Get is the row of a key, if there is one.
func (t *Table[T]) Get(key string) (row T, known bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	row, known = t.rows[key]
	return row, known
}

// All are the rows, in no order.
func (t *Table[T]) All() []T {
	t.lock.Lock()
	defer t.lock.Unlock()
	return slices.Collect(maps.Values(t.rows))
}
