// Package mirror is one replica's sight of a table of the store that every replica may change.
package mirror

import (
	"context"
	"sync"
	"time"
)

const lookEvery = 250 * time.Millisecond // how late a replica sees what another one was told

// Table is the rows of a table as they were last read or written.
type Table[T comparable] struct {
	read    func(context.Context) ([]T, error)
	key     func(T) string
	publish func()

	// It guards Rows, and is held while the store is written to: changes are rare, and the next sees the one before.
	sync.Mutex
	Rows map[string]T // by key
}

// New is empty. publish is called, with the lock, when what was read is not what was known.
func New[T comparable](read func(context.Context) ([]T, error), key func(T) string, publish func()) *Table[T] {
	return &Table[T]{read: read, key: key, publish: publish, Rows: map[string]T{}}
}

// Load reads the table.
func (t *Table[T]) Load(ctx context.Context) error {
	t.Lock()
	defer t.Unlock()
	return t.Reload(ctx)
}

// Reload is Load for who holds the lock.
func (t *Table[T]) Reload(ctx context.Context) error {
	stored, err := t.read(ctx)
	if err != nil {
		return err
	}
	next := make(map[string]T, len(stored))
	same := len(stored) == len(t.Rows)
	for _, row := range stored {
		key := t.key(row)
		next[key] = row
		old, known := t.Rows[key]
		same = same && known && old == row
	}
	if !same {
		t.Rows = next
		t.publish()
	}
	return nil
}

// Follow reads it again and again until the context ends. What cannot be read stays as it was known, and failed is told.
func (t *Table[T]) Follow(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := t.Load(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}
