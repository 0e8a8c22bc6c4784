package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// example has a line for each rule: those that end with `// bad` are to be found, and no others.
const example = `package example

import (
	"context"
	"os"
	"sync"
	"time"
)

type Store interface {
	Read(ctx context.Context) error
	Shared() bool
}

type T struct {
	lock    sync.Mutex
	others  sync.RWMutex
	store   Store
	now     func() time.Time
	publish func(int) // no I/O in it
	read    func() error
	wake    chan int
	n       int
}

func New(s Store) *T {
	return &T{store: s, now: time.Now,
		publish: func(int) { _, _ = os.Stat("x") }, // bad
		read:    func() error { _, err := os.Stat("x"); return err }}
}

func (t *T) direct(ctx context.Context) {
	t.lock.Lock()
	defer t.lock.Unlock()
	_ = t.store.Read(ctx) // bad
	_ = t.store.Shared()
	t.n = int(t.now().Unix())
	t.publish(t.n)
	_ = t.read() // bad
	select {
	case t.wake <- 1:
	default:
	}
	select { // bad
	case <-t.wake:
	}
	<-t.wake     // bad
	t.wake <- 1  // bad
	time.Sleep(1) // bad
	go func() { _ = t.store.Read(ctx) }()
}

func (t *T) around(ctx context.Context) {
	t.lock.Lock()
	if t.n == 0 {
		t.lock.Unlock()
		_ = t.store.Read(ctx)
		return
	}
	t.far()  // bad
	t.near() 
	t.lock.Unlock()
	_ = t.store.Read(ctx)
	for range 3 {
		t.others.RLock()
		t.far() // bad
		t.others.RUnlock()
		t.far()
	}
}

func (t *T) far()  { t.farther() }
func (t *T) near() { t.n++ }
func (t *T) farther() {
	_, _ = os.ReadFile("x")
	t.far()
}

func (t *T) literals(ctx context.Context) {
	slow := func() { _ = t.store.Read(ctx) }
	quick := func() int { return t.n }
	slow()
	t.lock.Lock()
	t.n = quick()
	slow() // bad
	each(func(int) { t.n++ })
	each(func(int) { _ = t.store.Read(ctx) }) // bad
	t.lock.Unlock()
}

func each(do func(int)) { do(1) }

// all calls match under the lock: no I/O in it.
func (t *T) all(match func(int) bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	match(t.n)
}

func (t *T) uses() {
	t.all(func(int) bool { return true })
	t.all(func(int) bool { _, err := os.Stat("x"); return err == nil }) // bad
}
`

func TestFindsWhatIsBadAndNothingElse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "example")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module example\n\ngo 1.24\n", "example.go": example} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := check(folder, "./...")
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, line := range found {
		place, says, _ := strings.Cut(line, ": ")
		at[place] = says
	}
	for i, line := range strings.Split(example, "\n") {
		place := "example/example.go:" + strconv.Itoa(i+1)
		if bad := strings.HasSuffix(strings.TrimSpace(line), "// bad"); bad != (at[place] != "") {
			t.Errorf("%s: found %q\n%s", place, at[place], line)
		}
	}
}
