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
	table := New(Options[row]{
		Read: func(context.Context) ([]row, error) { return rows, failing }, Key: func(r row) string { return r.key },
		Shared:  true,
		Publish: func(map[string]row) { published++ }, Failed: func(err error) { failures <- err },
	})
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
		err, want := table.Load(t.Context()), len(c.rows)
		if c.failing != nil {
			want = 2
		}
		if !errors.Is(err, c.failing) || published != c.published || len(table.All()) != want {
			t.Errorf("%+v: %v, published %d times, %v", c, err, published, table.All())
		}
	}
	failing = errors.New("away")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	table.Failed = func(err error) {
		failures <- err
		stop()
	}
	table.Run(ctx)
	if err := <-failures; !errors.Is(err, failing) || published != 3 {
		t.Errorf("%v, published %d times", err, published)
	}
}
