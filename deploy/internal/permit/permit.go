// Package permit lets one caller at a time talk with something that may not answer: unlike with a lock, one that waits
// gives up when its context ends. What others read is guarded by a lock beside it that is never held over I/O.
package permit

import "context"

// Permit is held by one at a time.
type Permit chan struct{}

// New is a permit that nobody holds.
func New() Permit { return make(Permit, 1) }

// Acquire waits for the permit; without an error, Return must follow.
func (p Permit) Acquire(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Return lets the next have it.
func (p Permit) Return() { <-p }
