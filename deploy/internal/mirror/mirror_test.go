package mirror

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

type row struct{ key, value string }

// source is a store of rows that fails, or does not answer, while it is told to.
type source struct {
	lock  sync.Mutex // guards what follows
	rows  map[string]row
	err   error
	block chan struct{} // closed: it answers
	asked chan struct{}
}

func newSource() *source {
	open := make(chan struct{})
	close(open)
	return &source{rows: map[string]row{}, block: open, asked: make(chan struct{}, 1000)}
}

func (s *source) set(err error, rows ...row) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.err = err
	clear(s.rows)
	for _, r := range rows {
		s.rows[r.key] = r
	}
}

// answer waits until the source answers, or who asks has gone.
func (s *source) answer(ctx context.Context) error {
	s.lock.Lock()
	block, err := s.block, s.err
	s.lock.Unlock()
	s.asked <- struct{}{}
	select {
	case <-block:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stall makes it silent until the function that it gives is called.
func (s *source) stall() (end func()) {
	block := make(chan struct{})
	s.lock.Lock()
	defer s.lock.Unlock()
	s.block = block
	return func() { close(block) }
}

func (s *source) read(ctx context.Context) ([]row, error) {
	if err := s.answer(ctx); err != nil {
		return nil, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	var all []row
	for _, r := range s.rows {
		all = append(all, r)
	}
	return all, nil
}

func (s *source) put(ctx context.Context, _ row, _ bool, r row) (row, error) {
	if err := s.answer(ctx); err != nil {
		return row{}, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.rows[r.key] = r
	return r, nil
}

func (s *source) table(published func(map[string]row), failed func(error, bool)) *Table[row] {
	return New(Options[row]{Read: s.read, Put: s.put, Key: func(r row) string { return r.key }, Shared: true,
		Publish: published, Failed: failed, Now: time.Now})
}

// within fails when something waits for what it must not wait for.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs: " + what)
	}
}

// A change is published once, and what cannot be read stays as it was.
func TestFollow(t *testing.T) {
	s := newSource()
	published, failures := 0, make(chan error, 100)
	table := s.table(func(map[string]row) { published++ }, nil)
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
		s.set(c.failing, c.rows...)
		before := table.State()
		err, want := table.Load(t.Context()), len(c.rows)
		if c.failing != nil {
			want = 2
		}
		stale := table.State().StaleSince
		if !errors.Is(err, c.failing) || published != c.published || len(table.All()) != want ||
			stale.IsZero() != (c.failing == nil) || !before.StaleSince.IsZero() && !stale.IsZero() {
			t.Errorf("%+v: %v, published %d times, %v, stale since %v", c, err, published, table.All(), stale)
		}
	}
	away := errors.New("away")
	s.set(away)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	table.Failed = func(err error, again bool) {
		failures <- err
		if again {
			stop()
		}
	}
	table.Run(ctx)
	if err := <-failures; !errors.Is(err, away) || published != 3 {
		t.Errorf("%v, published %d times", err, published)
	}
}

// While the store does not answer, what is known is read, and what is asserted is in force and published, at once.
func TestNobodyWaitsForTheStore(t *testing.T) {
	s := newSource()
	s.set(nil, row{"a", "1"})
	var published map[string]row
	table := s.table(func(rows map[string]row) { published = rows }, nil)
	if err := table.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-s.asked
	end := s.stall()
	changes := make(chan error, 1)
	go func() { changes <- table.Change(t.Context(), func(map[string]row) error { return nil }) }()
	<-s.asked // it holds the permit and waits
	within(t, "reading and asserting", func() {
		table.Assert(row{"b", "2"})
		if r, known := table.Get("b"); !known || r.value != "2" || len(table.All()) != 2 || published["b"] != r {
			t.Error("what was asserted is not in force:", table.All(), published)
		}
	})
	impatient, give := context.WithCancel(t.Context())
	give()
	within(t, "a change whose caller has gone", func() {
		err := errors.Join(table.Flush(impatient), table.Load(impatient))
		if !errors.Is(err, context.Canceled) || !table.State().Unstored["b"] {
			t.Error(err, table.State())
		}
	})
	end()
	if err := <-changes; err != nil { // it stores what was asserted before it changes something
		t.Error(err)
	}
	if len(table.State().Unstored) != 0 || s.rows["b"].value != "2" || len(table.All()) != 2 {
		t.Error(table.State(), s.rows)
	}
}

// What was asserted stays in force over what the store says, until it is stored; asserted anew meanwhile, the later one
// is stored too.
func TestWhatIsAssertedGoesBefore(t *testing.T) {
	s := newSource()
	s.set(nil, row{"a", "old"})
	table := s.table(func(map[string]row) {}, nil)
	table.Assert(row{"a", "mine"})
	if err := table.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, _ := table.Get("a"); r.value != "mine" {
		t.Error("the store took back what is not stored:", r)
	}
	table.Put = func(ctx context.Context, old row, known bool, r row) (row, error) {
		if !known || old.value != "old" && old.value != "mine" {
			t.Error(old, known)
		}
		if r.value == "mine" {
			table.Assert(row{"a", "later"})
		}
		return s.put(ctx, old, known, r)
	}
	if err := table.Flush(t.Context()); err != nil || !table.State().Unstored["a"] {
		t.Error(err, table.State())
	}
	if err := table.Flush(t.Context()); err != nil || len(table.State().Unstored) != 0 || s.rows["a"].value != "later" {
		t.Error(err, table.State(), s.rows)
	}
	s.set(errors.New("away"))
	err := table.Change(t.Context(), func(rows map[string]row) error { delete(rows, "a"); return nil })
	if r, known := table.Get("a"); err == nil || !known || r.value != "later" {
		t.Error("it was taken away while the store is away:", err, r, known)
	}
}
