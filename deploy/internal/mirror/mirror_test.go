package mirror

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A change is published once, and what cannot be read stays as it was.
func TestFollow(t *testing.T) {
	type row struct{ key, value string }
	var rows []row
	var failing error
	published, failures := 0, make(chan error, 100)
	table := New(func(context.Context) ([]row, error) { return rows, failing }, func(r row) string { return r.key }, func() { published++ })
	for _, c := range []struct {
		rows      []row
		failing   error
		published int
	}{
		{nil, nil, 0},
		{[]row{{"a", "1"}, {"b", ""}}, nil, 1},
		{[]row{{"b", ""}, {"a", "1"}}, nil, 1},
		{[]row{{"a", "1"}, {"c", ""}}, nil, 2},
		{nil, errors.New("away"), 2},
		{[]row{{"a", "2"}, {"c", ""}}, nil, 3},
	} {
		rows, failing = c.rows, c.failing
		if err := table.Load(t.Context()); !errors.Is(err, c.failing) || published != c.published || c.failing == nil && len(table.Rows) != len(c.rows) || c.failing != nil && len(table.Rows) != 2 {
			t.Errorf("%+v: %v, published %d times, %v", c, err, published, table.Rows)
		}
	}
	failing = errors.New("away")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	table.Follow(ctx, func(err error) {
		failures <- err
		stop()
	})
	if err := <-failures; !errors.Is(err, failing) || published != 3 {
		t.Errorf("%v, published %d times", err, published)
	}
}
