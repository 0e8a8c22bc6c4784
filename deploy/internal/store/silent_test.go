package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// quickly is a timeout for tests; soon is what no call may take, on a machine however busy.
const (
	quickly = 50 * time.Millisecond
	soon    = 30 * time.Second
)

// silent accepts connections and never says anything.
func silent(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn) // kept open
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
		for _, conn := range conns {
			conn.Close()
		}
	})
	return listener.Addr().String()
}

// dropping is an address at which packets that ask for a connection are dropped: the queue of its listener is full.
func dropping(t *testing.T) (address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0))
	bound, err2 := syscall.Getsockname(fd)
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	address = (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: bound.(*syscall.SockaddrInet4).Port}).String()
	for range 4 { // until one more gets no answer
		conn, err := net.DialTimeout("tcp", address, quickly)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the queue of the listener is not full")
	return ""
}

func dsnFile(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(path, []byte("postgres://oal@"+address+"/oal?sslmode=disable"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A start with a PostgreSQL that is a black hole ends with an error.
func TestASilentServerEndsTheStart(t *testing.T) {
	for name, hole := range map[string]func(*testing.T) string{"silent": silent, "dropping": dropping} {
		ended := make(chan error, 1)
		path := dsnFile(t, hole(t))
		go func() {
			_, err := OpenPostgres(t.Context(), path, quickly)
			ended <- err
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, ErrAway) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(soon):
			t.Fatalf("%s: the start hangs", name)
		}
	}
}

// What nobody listens for is away; what a server said is an answer, unless that it is starting.
func TestWhoIsAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if _, err := OpenPostgres(t.Context(), dsnFile(t, listener.Addr().String()), quickly); !errors.Is(err, ErrAway) {
		t.Errorf("a closed port: %v", err)
	}
	for code, is := range map[string]bool{"57P03": true, "28P01": false, "3D000": false} {
		if err := fmt.Errorf("connect: %w", &pgconn.PgError{Code: code}); away(err) != is {
			t.Errorf("%s: %t", code, away(err))
		}
	}
}

// Every call of every method comes back with an error from a PostgreSQL that is a black hole: none is left out.
func TestNothingWaitsForASilentServer(t *testing.T) {
	for name, hole := range map[string]func(*testing.T) string{"silent": silent, "dropping": dropping} {
		pool, err := connect(t.Context(), "postgres://oal@"+hole(t)+"/oal?sslmode=disable", quickly)
		if err != nil {
			t.Fatal(err)
		}
		b := Bound(&Postgres{pool, quickly}, quickly, func(time.Time, error) {})
		kind := reflect.TypeFor[Store]()
		var calls sync.WaitGroup
		for i := range kind.NumMethod() {
			method := kind.Method(i)
			if method.Name == "Close" || method.Name == "Shared" {
				continue
			}
			calls.Add(1)
			args := []reflect.Value{reflect.ValueOf(context.Background())}
			for at := 1; at < method.Type.NumIn(); at++ {
				args = append(args, reflect.Zero(method.Type.In(at)))
			}
			go func() {
				defer calls.Done()
				out := reflect.ValueOf(Store(b)).MethodByName(method.Name).Call(args)
				if err, _ := out[len(out)-1].Interface().(error); err == nil {
					t.Errorf("%s: %s said that all is well", name, method.Name)
				}
			}()
		}
		done := make(chan struct{})
		go func() { calls.Wait(); b.Close(); close(done) }()
		select {
		case <-done:
		case <-time.After(soon):
			t.Fatalf("%s: a call hangs", name)
		}
		if b.Away().IsZero() {
			t.Errorf("%s: the store does not count as away", name)
		}
	}
}

// stuck is a store that never answers, whatever becomes of the context.
type stuck struct {
	Store
	err chan error
}

func (s *stuck) Ping(context.Context) error { return <-s.err }
func (s *stuck) Snapshot(context.Context, func(int64, io.WriterTo) error) error {
	return ErrNoSnapshot
}

// A store that heeds no context does not hold its caller; it is away until it answers, be it with a no.
func TestAStoreThatHeedsNoContext(t *testing.T) {
	s := &stuck{err: make(chan error)}
	defer close(s.err)
	var told []time.Time
	b := Bound(s, quickly, func(since time.Time, _ error) { told = append(told, since) })
	before := time.Now()
	if err := b.Ping(t.Context()); !errors.Is(err, ErrNoAnswer) {
		t.Error(err)
	}
	if since := b.Away(); since.Before(before) || len(told) != 1 || !told[0].Equal(since) {
		t.Error(b.Away(), told)
	}
	since := b.Away()
	gone, end := context.WithCancel(t.Context())
	end()
	if err := b.Ping(gone); !errors.Is(err, context.Canceled) || b.Away() != since {
		t.Error("someone who has gone says nothing of the store:", err)
	}
	answering := Bound(s, soon, func(time.Time, error) {})
	answers := func(with error) error {
		got := make(chan error)
		go func() { got <- answering.Ping(t.Context()) }()
		for {
			select {
			case s.err <- with: // one that hung takes some of them
			case err := <-got:
				return err
			}
		}
	}
	disk := errors.New("the disk is full")
	if err := answers(disk); !errors.Is(err, disk) || answering.Away().IsZero() {
		t.Error("a store that fails answers well:", err)
	}
	if err := answers(ErrConflict); !errors.Is(err, ErrConflict) || !answering.Away().IsZero() {
		t.Error("a conflict is an answer:", err)
	}
}

// So many calls that hang are the most; more of them fail without a goroutine each.
func TestCallsThatHangAreBounded(t *testing.T) {
	s := &stuck{err: make(chan error)}
	defer close(s.err)
	b := Bound(s, quickly, func(time.Time, error) {})
	var calls sync.WaitGroup
	for range 2 * maxCalls {
		calls.Add(1)
		go func() {
			defer calls.Done()
			if err := b.Ping(t.Context()); !errors.Is(err, ErrNoAnswer) {
				t.Error(err)
			}
		}()
	}
	calls.Wait()
	if len(b.calls) != maxCalls {
		t.Errorf("%d calls run, at most %d may", len(b.calls), maxCalls)
	}
}
