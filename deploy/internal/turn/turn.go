// Package turn lets one caller at a time talk with something that may not answer: unlike with a lock, one that waits
// gives up when its context ends. What others read is guarded by a lock beside it that is never held over I/O.
package turn

import "context"

// Turn is had by one at a time.
type Turn chan struct{}

// New is a turn that nobody has.
func New() Turn { return make(Turn, 1) }

// Take waits for the turn; without an error, Give must follow.
func (t Turn) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Give lets the next have it.
func (t Turn) Give() { <-t }
