package turn

import (
	"context"
	"errors"
	"testing"
)

// One has it; another waits until it is given, or its context ends.
func TestOneAtATime(t *testing.T) {
	turn := New()
	if err := turn.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := turn.Take(ended); !errors.Is(err, context.Canceled) {
		t.Error("two have the turn:", err)
	}
	next := make(chan error)
	go func() { next <- turn.Take(t.Context()) }()
	turn.Give()
	if err := <-next; err != nil {
		t.Error(err)
	}
}
