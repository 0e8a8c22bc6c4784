package store

import (
	"testing"
	"time"
)

// WaitForLock shortens how long an open store is waited for, for a test.
func WaitForLock(t *testing.T, wait time.Duration) {
	before := lockWait
	lockWait = wait
	t.Cleanup(func() { lockWait = before })
}
