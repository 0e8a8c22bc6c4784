package permit

import (
	"context"
	"errors"
	"testing"
)

// One holds it; another waits until it is returned, or its context ends.
func TestOneAtATime(t *testing.T) {
	permit := New()
	if err := permit.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := permit.Acquire(ended); !errors.Is(err, context.Canceled) {
		t.Error("two hold the permit:", err)
	}
	next := make(chan error)
	go func() { next <- permit.Acquire(t.Context()) }()
	permit.Return()
	if err := <-next; err != nil {
		t.Error(err)
	}
}
